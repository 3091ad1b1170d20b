"""Reads capabilities: whether one is advertised, and the settings inside it. Must not: know who advertised it."""

from __future__ import annotations

from typing import Any

from pactgate.conformance.message import as_object


def is_advertised(value: Any) -> bool:
    """A capability is advertised by a member that is neither null nor false."""
    return value is not None and value is not False


def has(capabilities: Any, *path: str) -> bool:
    """Whether a path such as `resources.subscribe` is advertised."""
    value: Any = capabilities
    for name in path:
        value = as_object(value).get(name)
    return is_advertised(value)
