"""Masks secrets in text and values, at the entrance, before anything is stored or used.

Called wherever text comes in (parser, child output, HTTP body, exception) and by the ledger as a
last line. It knows the values of the configured secrets in every form in which programs repeat
them, and the shapes of well-known tokens. It must never raise and never show what it masks.
"""

import base64
import codecs
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from urllib.parse import quote, quote_plus

from config.json_values import Json, JsonMap

MASK = "[redacted]"

_SHORTEST = 4
"""Shorter secrets are not masked by value: every text would be full of masks."""
_SHORTEST_CORE = 6
"""Shorter pieces of base64 appear by chance."""
_HELD = 512
"""Characters a stream holds back, so that a token cut in two is still seen whole."""
_LONGEST_OPEN = 8_192
"""A match that is still growing is masked and cut down at this length."""

_NAME = r"(?:pass(?:word|wd|phrase)|secret|token|api[_-]?key|access[_-]?key|credentials?)"

# No pattern may begin with an open repetition or hold one behind another: text from outside would
# choose how long a search takes (measured: 20 ms for 900 letters).
_PATTERNS = (
    r"xox[a-z]-[A-Za-z0-9-]{8,}",
    r"xapp-[A-Za-z0-9-]{8,}",
    r"(?:AKIA|ASIA)[0-9A-Z]{16}(?![0-9A-Z])",
    r"gh[pousr]_[A-Za-z0-9]{30,}",
    r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{8,}",
    r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+",
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)",
)
_AFTER_NAME = (
    r"(?i)\bbearer\s{1,8}([A-Za-z0-9._~+/=-]{6,})",
    r"(?i)\bauthorization\W{1,6}(?:basic|bearer|token)\s{1,8}([A-Za-z0-9._~+/=-]{6,})",
    rf"(?i){_NAME}[A-Za-z0-9_.-]{{0,24}}\\?[\"']?\s{{0,4}}[=:]\s{{0,4}}\\?[\"']?([^\s\"'\\,;&]{{3,}})",
    r"(?i)[a-z0-9+.-]{2,20}://[^\s/:@]{0,200}:([^\s/@]{3,200})@",
)
_REFERENCE = re.compile(r"(?:env|file):\S+|\[redacted\]?\S*")
_SECRET_KEY = re.compile(rf"(?i)(?:^|[_.-]){_NAME}$|^authorization$|private[_-]?key$")

_HINTS = (
    *("passw", "passphrase", "secret", "token", "credential", "authorization", "bearer"),
    *("apikey", "api_key", "api-key", "accesskey", "access_key", "access-key", "private"),
    *("xox", "xapp-", "akia", "asia", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    *("hooks.slack", "eyj", "://"),
)
"""In lower case: where none of these stands, no pattern and no secret key can match. Not simply
`key`: the engine's own records all have a member of that name, and each would be searched in full.
"""

Span = tuple[int, int]


class Redactor:
    """Masks known secret values and things shaped like secrets."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        """`secrets` are the values themselves; they are kept in memory only."""
        known = {secret for secret in secrets if len(secret) >= _SHORTEST}
        self._literals = tuple(sorted(_literals(known), key=lambda form: (-len(form), form)))
        self._cores = tuple(sorted(_cores(known)))
        self._patterns = tuple(re.compile(pattern) for pattern in _PATTERNS)
        self._named = tuple(re.compile(pattern) for pattern in _AFTER_NAME)
        escaped = {_json(form, True) for form in self._literals}
        self._quick = (*sorted({*self._literals, *escaped}), *self._cores)
        longest = max((len(form) for form in (*self._literals, *self._cores)), default=0)
        self.held = max(_HELD, longest + 2)

    def __repr__(self) -> str:
        """Without the values."""
        return f"Redactor({len(self._literals)} forms)"

    def text(self, text: str) -> str:
        """`text` with every secret masked."""
        spans = self.spans(text)
        return _masked(text, spans, 0, len(text)) if spans else text

    def values(self, values: JsonMap) -> dict[str, Json]:
        """A mapping with every secret masked, in keys and at every depth."""
        return {self.text(key): self._member(key, value) for key, value in values.items()}

    def is_clean(self, json_text: str) -> bool:
        """Whether this JSON certainly holds nothing to mask; a fast answer for the ledger."""
        lower = json_text.lower()
        return not any(map(lower.__contains__, _HINTS)) and not any(
            map(json_text.__contains__, self._quick)
        )

    def stream(self) -> "StreamRedactor":
        """A redactor for output that arrives in pieces."""
        return StreamRedactor(self)

    def spans(self, text: str) -> list[Span]:
        """Where `text` holds secrets: sorted, without overlaps."""
        found: list[Span] = []
        for form in self._literals:
            found.extend(_occurrences(text, form))
        for core in self._cores:
            found.extend(_widened(text, span) for span in _occurrences(text, core))
        for pattern in self._patterns:
            found.extend(match.span() for match in pattern.finditer(text))
        for pattern in self._named:
            found.extend(
                match.span(1)
                for match in pattern.finditer(text)
                if not _REFERENCE.fullmatch(match[1])
            )
        return _merged(found)

    def _member(self, key: str, value: Json) -> Json:
        """A value, masked wholly when its key says that it is a secret."""
        if isinstance(value, str) and _SECRET_KEY.search(key):
            return value if not value or _REFERENCE.fullmatch(value) else MASK
        return self._value(value)

    def _value(self, value: Json) -> Json:
        """A value at any depth."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return self.values(value)
        if isinstance(value, Sequence):
            return [self._value(item) for item in value]
        return value


class StreamRedactor:
    """Redacts output that arrives in pieces: a secret cut in two across reads is masked whole."""

    def __init__(self, redactor: Redactor) -> None:
        """One per stream."""
        self._redactor = redactor
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._buffer = ""
        self._shown = 0
        """How much of the buffer is already out: context for patterns that began before."""
        self._again_at = 2 * redactor.held
        """Length of the buffer at which looking again is worth the time."""

    def feed(self, data: bytes) -> str:
        """What can be shown now, after these bytes."""
        self._buffer += self._decoder.decode(data)
        return self._emit(final=False)

    def close(self) -> str:
        """The rest."""
        self._buffer += self._decoder.decode(b"", True)
        return self._emit(final=True)

    def _emit(self, *, final: bool) -> str:
        """Everything that no later byte can make part of a secret."""
        size, held = len(self._buffer), self._redactor.held
        if not final and size < self._again_at:
            return ""
        cut = size if final else size - held
        spans = self._redactor.spans(self._buffer)
        self._again_at = size + held
        crossing = [span for span in spans if span[0] < cut <= span[1] and not final]
        if not crossing:
            return self._show(spans, cut)
        start, end = crossing[0]
        if start < self._shown:
            return self._go_on(start, end)
        if size - start <= _LONGEST_OPEN:
            return self._show(spans, start)
        shown = self._show(spans, start) + MASK
        self._trim(self._shown)
        return shown

    def _show(self, spans: list[Span], cut: int) -> str:
        """The text up to `cut`. Some of it is kept as context: `PASSWORD=` before its value."""
        shown = _masked(self._buffer, spans, self._shown, cut)
        start = max(0, cut - self._redactor.held)
        self._buffer = self._buffer[start:]
        self._shown = cut - start
        self._again_at -= start
        return shown

    def _go_on(self, start: int, end: int) -> str:
        """Nothing to show: this is more of a match whose mask is out already."""
        if end < len(self._buffer):
            return self._show([(start, end)], end)
        if len(self._buffer) > _LONGEST_OPEN:
            self._trim(start)
        return ""

    def _trim(self, start: int) -> None:
        """Cut the middle out of a match that begins at `start`; its two ends keep it a match."""
        held = self._redactor.held
        head = self._buffer[max(0, start - held) : start + held]
        self._buffer = head + self._buffer[-held:]
        self._shown = len(head)
        self._again_at = len(self._buffer) + held


def _literals(secrets: Iterable[str]) -> set[str]:
    """Each secret raw, as JSON, as JSON within JSON, and as in a URL."""
    forms: set[str] = set()
    for secret in secrets:
        plain = {secret, secret.strip()}
        for ascii_only in (True, False):
            once = _json(secret, ascii_only)
            plain |= {once, once.replace("/", "\\/"), _json(once, ascii_only)}
        for safe in ("", "/"):
            for escape in (quote, quote_plus):
                url = escape(secret, safe=safe, errors="backslashreplace")
                plain |= {url, re.sub("%..", lambda found: found[0].lower(), url)}
        forms |= {form for form in plain if len(form) >= _SHORTEST}
    return forms


def _json(text: str, ascii_only: bool) -> str:
    """The inside of a JSON string."""
    return json.dumps(text, ensure_ascii=ascii_only)[1:-1]


def _cores(secrets: Iterable[str]) -> set[str]:
    """The part of each secret's base64 that does not depend on what stands around it."""
    cores: set[str] = set()
    encoders: tuple[Callable[[bytes], bytes], ...] = (base64.b64encode, base64.urlsafe_b64encode)
    for secret in secrets:
        raw = secret.encode("utf-8", "backslashreplace")
        for offset, lead in ((0, 0), (1, 2), (2, 3)):
            end = 8 * (offset + len(raw)) // 6
            for encoder in encoders:
                core = encoder(b"\0" * offset + raw).decode("ascii")[lead:end]
                if len(core) >= _SHORTEST_CORE:
                    cores.add(core)
    return cores


def _occurrences(text: str, form: str) -> Iterable[Span]:
    """Every place of `form`; `find` first, because almost always there is none."""
    start = text.find(form)
    while start >= 0:
        yield start, start + len(form)
        start = text.find(form, start + 1)


def _widened(text: str, span: Span) -> Span:
    """One base64 character more on each side: they carry the first and last bits of the secret."""
    start, end = span
    if start and re.match(r"[A-Za-z0-9+/_-]", text[start - 1]):
        start -= 1
    if end < len(text) and re.match(r"[A-Za-z0-9+/_=-]", text[end]):
        end += 1
    return start, end


def _merged(spans: list[Span]) -> list[Span]:
    """Sorted, overlapping ones joined."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _masked(text: str, spans: list[Span], begin: int, end: int) -> str:
    """`text[begin:end]` with the spans that lie in it masked."""
    parts: list[str] = []
    at = begin
    for start, stop in spans:
        if stop <= begin or start >= end:
            continue
        parts.append(text[at : max(at, start)])
        if start >= begin:
            parts.append(MASK)
        at = max(at, min(stop, end))
    parts.append(text[at:end])
    return "".join(parts)
