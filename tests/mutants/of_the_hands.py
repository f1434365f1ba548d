"""Promises of the hands and the doors: nobody's node, nobody's text, nobody's blind list."""

from tests.mutants.mutant import Mutant

_DRAIN = "tests/actions/node/test_drain.py"
_RETURN = "tests/actions/node/test_return.py"

MUTANTS = (
    Mutant(
        promise="a node that somebody holds is not drained",
        file="actions/node/drain.py",
        old="    if found.holder is not Holder.NOBODY:",
        new="    if found is None:",
        test=_DRAIN,
    ),
    Mutant(
        promise="the holder is looked at once more right before the drain",
        file="actions/node/drain.py",
        old="        if standing is not Standing.NOT_SO:",
        new="        if standing is None:",
        test=_DRAIN,
    ),
    Mutant(
        promise="a Reason that a person wrote ends our ownership",
        file="actions/ownership.py",
        old="    if reading.kind is ReasonKind.FOREIGN or not node.reason.strip():",
        new="    if not node.reason.strip():",
        test="tests/actions/node",
    ),
    Mutant(
        promise="a mark of another bot is not ours",
        file="actions/ownership.py",
        old="    if found is None or found.instance != call.instance:",
        new="    if found is None:",
        test="tests/actions/node",
    ),
    Mutant(
        promise="only our own drain is taken back",
        file="actions/node/gate.py",
        old="    if holding.holder is not Holder.US:",
        new="    if holding is None:",
        test=_RETURN,
    ),
    Mutant(
        promise="no return with a GPU missing",
        file="actions/node/gate.py",
        old="    elif facts.gpus_seen != wanted.node.gpus:",
        new="    elif facts.gpus_seen is None:",
        test=_RETURN,
    ),
    Mutant(
        promise="no return of a node whose registration is invalid",
        file="actions/node/gate.py",
        old='    if "INVALID_REG" in node.flags:',
        new="    if not node.flags and node.flags:",
        test=_RETURN,
    ),
    Mutant(
        promise="no return after a restart that nobody planned",
        file="actions/node/gate.py",
        old="    elif mark is not None and mark.boot_id != boot:",
        new="    elif mark is not None and not boot:",
        test=_RETURN,
    ),
    Mutant(
        promise="an empty job list needs proof",
        file="actions/slurm/sight.py",
        old="        if node.busy and node.name not in seen",
        new="        if node.busy and node.name is None",
        test="tests/actions/slurm",
    ),
    Mutant(
        promise="a blind job list on one node refuses",
        file="actions/slurm/cli.py",
        old="        if seen is not None:\n            raise Refusal(",
        new="        if seen is not None and seen is None:\n            raise Refusal(",
        test="tests/actions/slurm/test_client.py",
    ),
    Mutant(
        promise="an answer of another cluster is not believed",
        file="actions/slurm/tools.py",
        old='        if told not in {self._settings.cluster, "N/A", "(null)", ""}:',
        new="        if told is None:",
        test="tests/actions/slurm",
    ),
    Mutant(
        promise="a write that may have happened is not called failed",
        file="actions/slurm/cli.py",
        old="    if done.exit_code is None or _LOST_ON_THE_WAY.search(words):",
        new="    if done is None:",
        test="tests/actions/slurm/test_client_writes.py",
    ),
    Mutant(
        promise="a hostile node name reaches no library and no tool",
        file="config/node_names.py",
        old="        if not _ITEM.fullmatch(item):",
        new="        if not item:",
        test="tests/faults/test_hostile_names.py",
    ),
    Mutant(
        promise="one unknown node refuses the whole set",
        file="config/node_names.py",
        old="    unknown = [name for name in names if name not in known]",
        new="    unknown: list[str] = []",
        test="tests/faults/test_hostile_names.py",
    ),
    Mutant(
        promise="no secret leaves by stderr",
        file="actions/shell.py",
        old="            stderr=self._text(talk.stderr),",
        new='            stderr=talk.stderr.kept.decode("utf-8", errors="backslashreplace"),',
        test="tests/actions/test_shell.py",
    ),
    Mutant(
        promise="a child dies with the bot",
        file="actions/shell.py",
        old='        self._prefix = (setpriv, "--pdeathsig", "KILL", "--")',
        new='        self._prefix = (setpriv, "--")',
        test="tests/actions/test_shell.py",
    ),
    Mutant(
        promise="a command that was cut off has no exit code",
        file="actions/shell.py",
        old="            exit_code=None if timed_out or code < 0 else code,",
        new="            exit_code=code,",
        test="tests/actions/test_shell.py",
    ),
    Mutant(
        promise="text from outside means nothing in Slack",
        file="bot/slack/blocks.py",
        old="    if character in _ENTITIES:",
        new="    if not character:",
        test="tests/bot/slack/test_blocks.py",
    ),
    Mutant(
        promise="the desk asks the gate",
        file="bot/desk.py",
        old="        if isinstance(decision, Denied):\n            raise _Refused",
        new="        if isinstance(decision, Denied) and decision is None:\n            raise _Refused",
        test="tests/bot/slack/test_decisions.py",
    ),
)
