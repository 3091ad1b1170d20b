"""Tells an entry of a client that is the gateway itself from all others."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

_OWN_PORT: Final = 7411
_PROGRAM: Final = "pactgate"


def points_here(entry: Mapping[str, Any], addresses: frozenset[str] = frozenset()) -> bool:
    """Whether an entry starts a gateway, or has the address of one: one of `addresses` (`host:port`), or our usual port on this machine."""
    words, args = entry.get("command") or entry.get("cmd"), entry.get("args")
    argv = words if isinstance(words, list) else [words, *(args if isinstance(args, list) else [])]
    if argv and isinstance(argv[0], str):
        is_own = os.path.basename(argv[0]) == _PROGRAM or argv[1:3] == ["-m", _PROGRAM]
        return is_own and "serve" in argv
    url = next((entry[key] for key in ("url", "httpUrl", "serverUrl", "uri") if isinstance(entry.get(key), str)), None)
    if url is None:
        return False
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    is_usual = port == _OWN_PORT and parts.hostname in ("127.0.0.1", "localhost", "::1")
    return is_usual or parts.netloc.lower() in addresses
