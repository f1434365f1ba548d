"""The node's program as the one file that is installed there, the same bytes wherever it is made.

Used by `actions.catalogue` for `nodewarden helper` and for `doctor`. The modules are stored as they
are, uncompressed, so that whoever is asked to install it as root can read it with any viewer.
"""

import hashlib
import io
import zipfile
from functools import lru_cache
from pathlib import Path

_FIRST_LINE = b"#!/usr/bin/python3 -I\n"
_PACKAGE = Path(__file__).with_name("on_node")
_AS = "actions/remote/on_node"
_START = """\
import sys

from actions.remote.on_node.main import main

if __name__ == "__main__":
    sys.exit(main())
"""
_LONG_AGO = (1980, 1, 1, 0, 0, 0)


@lru_cache(maxsize=1)
def program() -> bytes:
    """The file."""
    texts = {f"{_AS}/{path.name}": path.read_bytes() for path in _PACKAGE.glob("*.py")}
    texts |= {"__main__.py": _START.encode(), "actions/__init__.py": b""}
    texts["actions/remote/__init__.py"] = b""
    packed = io.BytesIO()
    packed.write(_FIRST_LINE)
    with zipfile.ZipFile(packed, "a", zipfile.ZIP_STORED) as archive:
        for name in sorted(texts):
            entry = zipfile.ZipInfo(name, _LONG_AGO)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, texts[name])
    return packed.getvalue()


@lru_cache(maxsize=1)
def digest() -> str:
    """SHA-256 of the file, which an installed one says of itself."""
    return hashlib.sha256(program()).hexdigest()
