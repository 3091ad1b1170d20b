"""Names that carry a server's: how a prefix looks.

Which names are taken for one another is `catalog.lookalikes`'s knowledge. Must not: know servers or captures.
"""

from __future__ import annotations

import re
from typing import Final

_PREFIXED: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*?__.+|[a-z][a-z0-9-]*\..+", re.DOTALL)


def is_prefixed(name: str) -> bool:
    """Whether a name is spelt `server__tool` or `server.tool`."""
    return _PREFIXED.fullmatch(name) is not None
