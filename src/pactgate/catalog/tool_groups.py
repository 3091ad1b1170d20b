"""The groups of a view with `surface: groups`, as the draft extension `io.modelcontextprotocol/groups` has them. Experimental.

Tools that are not pinned are in no list. A client that knows the extension fetches them by group: one of each server, and one of each other
view. The list depends on URL and credential alone, so a client that does not know it sees the pinned tools. Must not: show a tool that is
not in the view, or change a definition; a group is no right either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Raw, Struct

from pactgate.core.display import flat
from pactgate.core.values import Tool
from pactgate.protocol.messages import encode_json

EXTENSION: Final = "io.modelcontextprotocol/groups"
_NAMED: Final = 5
_TEXT_CHARS: Final = 300


class _Group(Struct, frozen=True):
    facts: dict[str, str]
    tools: tuple[Tool, ...]


class ToolGroups:
    """The groups of one view and one class of callers. `views` are the tools of each other view, whatever it calls them."""

    def __init__(
        self, tools: Sequence[Tool], instructions: Mapping[str, str], views: Iterable[tuple[str, Sequence[Tool]]]
    ) -> None:
        own: dict[str, list[Tool]] = {}
        for tool in tools:
            own.setdefault(tool.server, []).append(tool)
        made = [_group(server, held, instructions.get(server)) for server, held in sorted(own.items())]
        made += [_group(view, held) for view, held in views if held]
        self._groups = {group.facts["name"]: group for group in made}

    def listing(self) -> dict[str, Raw]:
        """The result of `groups/list`."""
        return {"groups": Raw(encode_json([group.facts for group in self._groups.values()]))}

    def get(self, name: str) -> dict[str, Raw] | None:
        """The result of `groups/get`: the definitions as a list would have them."""
        group = self._groups.get(name)
        if group is None:
            return None
        definitions = b",".join(tool.exposed_definition for tool in group.tools)
        return {"contents": Raw(b'{"tools":[%b]}' % definitions)}


def is_known_to(capabilities: Mapping[str, Any]) -> bool:
    """Whether a client says in its request that it knows groups."""
    extensions = capabilities.get("extensions")
    return isinstance(extensions, dict) and EXTENSION in extensions


def _group(name: str, tools: Sequence[Tool], text: str | None = None) -> _Group:
    named = ", ".join(tool.exposed_name for tool in tools[:_NAMED])
    described = flat(text, _TEXT_CHARS) if text else f"Tools: {named}{', ...' * (len(tools) > _NAMED)}"
    return _Group({"name": name, "description": described}, tuple(tools))
