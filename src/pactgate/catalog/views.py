"""A view, compiled: which entries it shows, in which order, under which names, and which arguments it fixes.

Shown definitions are made once per catalog. A call reaches the tool under its own name and with its own schema: the fixed arguments are
put into the bytes of the call, and whoever sends one of them is refused, so nothing stands twice. Must not: give a right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from pactgate.config.sections.views import ViewSection
from pactgate.config.selectors import Selector, SelectorKind, matches, read_selector, servers_of
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.values import Entry, Prompt, Resource, Tool
from pactgate.policy.permissions.selection import Subject, selects
from pactgate.protocol import messages
from pactgate.protocol.messages import encode_json

ORIGINAL_KEY: Final = "dev.pactgate/original"
"""In the `_meta` of a tool that a view renames or describes: its full name."""
_object: Final = msgspec.json.Decoder(dict[str, Raw])


class BoundTool(Struct, frozen=True, gc=False, eq=False):
    """What a name of a view means: the tool as its server has it, and the arguments that the view fixes."""

    tool: Tool
    fixed: Mapping[str, bytes] = {}
    members: bytes = b""
    """The fixed arguments, as the members of an object."""

    def fill(self, arguments: bytes) -> bytes:
        """The arguments of a call with the fixed ones. Raises if a client sends one itself, in whatever case: servers may ignore it."""
        given, fixed = messages.members(arguments), {name.casefold() for name in self.fixed}
        twice = [name for name in given if name.casefold() in fixed]
        if twice:
            raise GatewayFailure(
                Kind.INVALID_ARGUMENTS,
                f"The argument {twice[0]!r} is fixed here; leave it out.",
                server=self.tool.server,
                tool=self.tool.full_name,
                operation="tools/call",
            )
        rest = arguments[1:].lstrip()
        return b"{%b%b%b" % (self.members, b"," if given else b"", rest)


class View:
    """One view of a configuration."""

    def __init__(self, name: str, settings: ViewSection) -> None:
        self.name = name
        self.settings = settings
        self._tools, self._exclude, self._prompts, self._resources, self._pinned = (
            tuple(map(read_selector, given))
            for given in (settings.tools, settings.exclude, settings.prompts, settings.resources, settings.pin)
        )

    @property
    def is_search(self) -> bool:
        return self.settings.surface == "search"

    @property
    def has_groups(self) -> bool:
        return self.settings.surface == "groups"

    def may_show(self, server: str) -> bool:
        """Whether anything of a server can be in the view."""
        whole = Selector(SelectorKind.SERVER, server)
        if any(one.covers(whole) for one in self._exclude):
            return False
        return any(servers_of(one, (server,)) for one in (*self._tools, *self._prompts, *self._resources))

    def has_tool(self, tool: Tool) -> bool:
        return self._has(self._tools, Subject.of(tool))

    def has_prompt(self, prompt: Prompt) -> bool:
        return self._has(self._prompts, Subject(prompt.server, prompt.full_name))

    def has_uri(self, server: str, full_uri: str) -> bool:
        return self._has(self._resources, Subject(server, full_uri))

    def has_resource(self, item: Resource) -> bool:
        return self.has_uri(item.server, item.full_uri)

    def is_pinned(self, tool: Tool) -> bool:
        return any(selects(one, Subject.of(tool)) for one in self._pinned)

    def rank(self, entry: Entry) -> tuple[int, str, str]:
        """The place of an entry in its list, whatever the order in which servers connect and list."""
        chosen = self._tools if isinstance(entry, Tool) else self._prompts
        subject = Subject(entry.server, entry.full_name, entry if isinstance(entry, Tool) else None)
        place = next((at for at, one in enumerate(chosen) if selects(one, subject)), len(chosen))
        return place, entry.server, entry.name

    def bind(self, tool: Tool) -> tuple[Tool, BoundTool]:
        """The tool as the view shows it, and what a call of it means."""
        settings, full_name = self.settings, tool.full_name
        fixed = self._fixed(tool)
        shown, text = settings.rename.get(full_name), settings.describe.get(full_name)
        if shown is None and text is None and not fixed:
            return tool, BoundTool(tool)
        definition = messages.members(tool.exposed_definition)
        if shown is not None:
            definition["name"] = Raw(encode_json(shown))
            definition.pop("title", None)
        if text is not None:
            definition["description"] = Raw(encode_json(text))
        if fixed:
            definition["inputSchema"] = _without(definition.get("inputSchema", Raw(b"{}")), fixed)
        meta = _members(definition.get("_meta"))
        definition["_meta"] = Raw(encode_json({**meta, ORIGINAL_KEY: full_name}))
        data = encode_json(definition)
        made = replace(tool, exposed_name=shown or tool.exposed_name, exposed_definition=data)
        members = b",".join(b"%b:%b" % (encode_json(name), value) for name, value in fixed.items())
        return made, BoundTool(tool, fixed, members)

    def _has(self, chosen: Iterable[Selector], subject: Subject) -> bool:
        return any(selects(one, subject) for one in chosen) and not any(selects(one, subject) for one in self._exclude)

    def _fixed(self, tool: Tool) -> dict[str, bytes]:
        """The fixed arguments of a tool: by its name all that are given, by a pattern those that its schema has."""
        found: dict[str, bytes] = {}
        patterns = [pattern for pattern in self.settings.arguments if matches(pattern, tool.full_name)]
        if not patterns:
            return found
        properties = _members(_members(messages.members(tool.definition).get("inputSchema")).get("properties"))
        for pattern in sorted(patterns, key=lambda text: (text == tool.full_name, len(text))):
            for name, value in self.settings.arguments[pattern].items():
                if pattern == tool.full_name or name in properties:
                    found[name] = encode_json(value)
        return found


def _members(value: Raw | None) -> dict[str, Raw]:
    try:
        return {} if value is None else _object.decode(value)
    except msgspec.DecodeError:
        return {}


def _without(schema: Raw, fixed: Mapping[str, Any]) -> Raw:
    """An input schema without the fixed arguments: narrower than that of the server, never wider."""
    members = _members(schema)
    if "properties" in members:
        kept = {name: one for name, one in _members(members["properties"]).items() if name not in fixed}
        members["properties"] = Raw(encode_json(kept))
    if "required" in members:
        try:
            required = msgspec.json.decode(members["required"], type=list[str])
        except msgspec.DecodeError:
            return Raw(encode_json(members))
        left = [name for name in required if name not in fixed]
        members.pop("required")
        if left:
            members["required"] = Raw(encode_json(left))
    return Raw(encode_json(members))
