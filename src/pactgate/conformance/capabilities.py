"""How a capability is read: what counts as advertised, and how to reach the settings inside it.

Must not: know who advertised it.
"""

from __future__ import annotations

from typing import Any

from pactgate.conformance.message import as_object


def is_advertised(value: Any) -> bool:
    """A capability is there when its member is; null and false mean that it is not."""
    return value is not None and value is not False


def has(capabilities: Any, *path: str) -> bool:
    """Whether `resources.subscribe` and the like are there and not null or false."""
    value: Any = capabilities
    for name in path:
        value = as_object(value).get(name)
    return is_advertised(value)
