"""Recognises tool names with a server prefix. Names that look alike are the subject of `catalog.lookalikes`."""

from __future__ import annotations

import re
from typing import Final

_PREFIXED: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*?__.+|[a-z][a-z0-9-]*\..+", re.DOTALL)


def is_prefixed(name: str) -> bool:
    """Whether a name has the form `server__tool` or `server.tool`."""
    return _PREFIXED.fullmatch(name) is not None
