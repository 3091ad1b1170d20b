"""Capabilities as far as the gateway passes them on: those of its servers to clients, and those of a client to servers.

The gateway always declares `listChanged`, because it notices changed lists by itself if a server does not announce them. Pure.
While servers are still starting, it declares what they may offer: a client reads capabilities once. Otherwise must not: declare what no
connected server offers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pactgate.core.values import Caller
from pactgate.protocol import era_bridge
from pactgate.protocol.versions import Era

_LISTS: Final = ("tools", "prompts", "resources")
_WHOLE: Final = ("completions", "logging")
TASKS: Final = "io.modelcontextprotocol/tasks"
_OWN: Final = ("experimental", "extensions", "tasks")

Offered = Mapping[str, Any]
"""The capabilities of one connected server."""


def merged(offered: Iterable[Offered], *, is_starting: bool = False) -> dict[str, Any]:
    """The capabilities of the merged view: every kind of list, and what at least one server offers, or may offer when it has started."""
    servers = list(offered)
    shown: dict[str, Any] = {kind: {"listChanged": True} for kind in _LISTS}
    if is_starting or any(_subscribes(each) for each in servers):
        shown["resources"]["subscribe"] = True
    for name in _WHOLE:
        if is_starting or any(name in each for each in servers):
            shown[name] = {}
    return shown


def alone(offered: Offered | None, *, is_same_era: bool = False) -> dict[str, Any]:
    """The capabilities of the endpoint of one server; None for one that is not connected. Extensions and tasks do not pass between eras."""
    if offered is None:
        return {"tools": {"listChanged": True}}
    shown: dict[str, Any] = {kind: {"listChanged": True} for kind in _LISTS if kind in offered}
    if _subscribes(offered):
        shown["resources"]["subscribe"] = True
    shown.update({name: {} for name in _WHOLE if name in offered})
    if is_same_era:
        shown.update({name: offered[name] for name in _OWN if name in offered})
    return shown


def has_extensions(offered: Offered) -> bool:
    """Whether a server may know methods that no revision has."""
    return any(offered.get(name) for name in _OWN)


def has_tasks(offered: Offered) -> bool:
    extensions = offered.get("extensions")
    return "tasks" in offered or (isinstance(extensions, dict) and TASKS in extensions)


def relayable_of(caller: Caller, towards: Era) -> dict[str, Any]:
    """The capabilities of a caller that hold for servers behind the gateway."""
    if not caller.capabilities or (caller.era is Era.LEGACY and not caller.channel.can_ask):
        return {}
    follows_tasks = caller.scope is not None and caller.era is towards
    return era_bridge.relayable(caller.capabilities, caller.version, towards=towards, follows_tasks=follows_tasks)


def _subscribes(offered: Offered) -> bool:
    resources = offered.get("resources")
    return isinstance(resources, dict) and resources.get("subscribe") is True
