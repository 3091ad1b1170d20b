"""Pactgate: an MCP gateway that keeps its promises.

The public names are made when they are asked for, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["Call", "Gateway", "Retryable", "ToolError", "__version__", "check_capture", "tool"]
__version__ = "0.1.0"

_LAZY = {
    "Gateway": "pactgate.app",
    "check_capture": "pactgate.conformance.check",
    **dict.fromkeys(("Call", "Retryable", "ToolError", "tool"), "pactgate.tools"),
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
