"""Pactgate: an MCP gateway that keeps its promises.

The public names are made when they are asked for, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = [
    "Call",
    "Gateway",
    "Image",
    "Message",
    "NotAnswered",
    "Retryable",
    "ToolError",
    "__version__",
    "check_capture",
    "prompt",
    "resource",
    "tool",
]
__version__ = "0.1.0"

_LAZY = {
    "Gateway": "pactgate.app",
    "check_capture": "pactgate.conformance.check",
    **dict.fromkeys(("Retryable", "ToolError", "prompt", "resource", "tool"), "pactgate.tools"),
    **dict.fromkeys(("Call", "Image", "Message", "NotAnswered"), "pactgate.tool_values"),
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
