"""The built-in server `pactgate`: the gateway's settings, servers, tools and calls, as tools like any other (D17).

Lists, names, gates and records treat it as they treat every server; that only administrators see it is decided elsewhere. What it shows
holds no secret, and nothing here can define a server (D13). Answers are bounded: lists come in pages. Must not: decide who may call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

from pactgate.catalog.connections import Connections
from pactgate.config import change
from pactgate.config.problems import spell
from pactgate.core.failures import ErrorCode, GatewayFailure, Kind
from pactgate.core.values import Tool
from pactgate.pipeline.live_configuration import LiveConfiguration, Wish
from pactgate.pipeline.management_tools import DECLARED, DEFAULT_PAGE
from pactgate.pipeline.tool_policy import PolicyTable
from pactgate.policy.access import ADMINISTRATOR, shown_row
from pactgate.policy.rate_limits import RatePolicy
from pactgate.protocol import messages
from pactgate.protocol.messages import encode_json
from pactgate.upstreams.in_process import CURRENT_CALL, unknown_tool

_TEXT_SHARE: Final = 3
"""Facts of more than this part of the largest response are not repeated as text, which is longer than they are."""
_TOO_LONG: Final = "See structuredContent: it is too long to be repeated here."
_DESCRIPTION_CHARS: Final = 300
_NOBODY: Final = "the gateway"

Arguments = dict[str, Any]
Tell = Callable[[str], dict[str, Any] | None]
"""The story of one request, or None when nothing is known of it."""


class Management:
    """An `InsideServer`. Arguments have passed the input schemas before they come here."""

    def __init__(
        self,
        *,
        info: dict[str, Any],
        configuration: LiveConfiguration,
        connections: Callable[[], Connections],
        rates: RatePolicy,
        book: Callable[[], PolicyTable],
        tell: Tell,
    ) -> None:
        self.info = info
        self._configuration = configuration
        self._connections = connections
        self._rates = rates
        self._book = book
        self._tell = tell
        self._definitions = [declared.definition() for declared in DECLARED]
        self._tools: dict[str, Callable[[Arguments], Awaitable[dict[str, Any]]]] = {
            "config_get": self.config_get,
            "config_set": self.config_set,
            "config_show": self.config_show,
            "servers_list": self.servers_list,
            "server_enable": self.server_enable,
            "server_disable": self.server_disable,
            "tools_discover": self.tools_discover,
            "tools_list": self.tools_list,
            "explain": self.explain,
        }

    def definitions(self) -> list[Raw]:
        return self._definitions

    async def call(self, name: str, params: dict[str, Raw]) -> bytes:
        tool = self._tools.get(name)
        if tool is None:
            raise unknown_tool(self.info["name"], name)
        facts = await tool(messages.value(params.get("arguments", Raw(b"{}"))))
        text = encode_json(facts)
        shown = text.decode()
        if len(text) * _TEXT_SHARE > self._configuration.current.response.max_response_bytes:
            shown = _TOO_LONG  # the same facts twice would need twice the room
        return encode_json(
            {"content": [{"type": "text", "text": shown}], "structuredContent": Raw(text), "isError": False}
        )

    async def close(self) -> None:
        return

    async def config_get(self, given: Arguments) -> dict[str, Any]:
        path = change.read_path(given["path"])
        config = self._configuration.current
        return {
            "path": spell(path),
            "value": change.value_at(config, path),
            "settable": change.is_settable(path),
            "unwritten": spell(path) in self._configuration.unwritten,
            "revision": change.revision(config),
        }

    async def config_set(self, given: Arguments) -> dict[str, Any]:
        wish = Wish(
            change.read_path(given["path"]),
            given["value"],
            _who(),
            given.get("expectedRevision"),
            given.get("persist", False),
        )
        is_dry = given.get("dryRun", False)
        done = self._configuration.plan(wish) if is_dry else await self._configuration.change(wish)
        return {
            "path": spell(wish.path),
            "oldValue": done.old,
            "newValue": done.new,
            "revision": done.revision,
            "persisted": done.is_persisted,
            "applied": not is_dry,
            "needsRestart": bool(done.needs_restart),
        }

    async def config_show(self, given: Arguments) -> dict[str, Any]:
        configuration, scope = self._configuration, given.get("scope", "merged")
        if scope == "changes":
            view = {name: self._value(name) for name in configuration.unwritten}
        else:
            view = change.shown(configuration.written if scope == "file" else configuration.current)
        return {
            "scope": scope,
            "config": view,
            "unwritten": list(configuration.unwritten),
            "origins": configuration.current.origins,
            "settable": [*change.SETTABLE, *(f"{change.SERVERS}.*.{name}" for name in change.SERVER_SETTABLE)],
            "revision": change.revision(configuration.current),
        }

    async def servers_list(self, given: Arguments) -> dict[str, Any]:
        rows = [
            shown_row(row, ADMINISTRATOR)
            for row in self._connections().rows()
            if given.get("status") in (None, row["status"])
        ]
        return _page("servers", rows, given)

    async def server_enable(self, given: Arguments) -> dict[str, Any]:
        return await self._toggle(given, enabled=True)

    async def server_disable(self, given: Arguments) -> dict[str, Any]:
        return await self._toggle(given, enabled=False)

    async def tools_discover(self, given: Arguments) -> dict[str, Any]:
        report = await self._connections().discover(
            only=given.get("serverIds"),
            force=given.get("forceRefresh", False),
            include_disabled=given.get("includeDisabled", False),
        )
        facts: dict[str, Any] = msgspec.to_builtins(report)
        facts.pop("tools")
        return facts

    async def tools_list(self, given: Arguments) -> dict[str, Any]:
        wanted = given.get("query", "").casefold()
        found = [
            tool
            for tool in self._connections().surfaces.everything.tools.entries(given.get("serverId"))
            if given.get("category") in (None, tool.traits.category) and wanted in tool.full_name.casefold()
        ]
        page = _page("tools", found, given)
        page["tools"] = [self._tool_row(tool) for tool in page["tools"]]
        return page

    async def explain(self, given: Arguments) -> dict[str, Any]:
        story = self._tell(given["requestId"])
        if story is None:
            raise GatewayFailure(
                Kind.INVALID_ARGUMENTS,
                f"Nothing is known of the request {given['requestId']!r}: it is too long ago, or was never made here. "
                "The command `pactgate explain` also looks into the audit log, where there is one.",
                code=ErrorCode.NOT_FOUND,
            )
        return {"requestId": given["requestId"], "story": story}

    async def _toggle(self, given: Arguments, *, enabled: bool) -> dict[str, Any]:
        server = given["serverId"]
        wish = Wish((change.SERVERS, server, "enabled"), enabled, _who(), persist=given.get("persist", False))
        done = await self._configuration.change(wish)
        supervisor = self._connections().servers[server]
        return {
            "serverId": server,
            "wasEnabled": done.old,
            "enabled": done.new,
            "status": supervisor.status.value,
            "revision": done.revision,
            "persisted": done.is_persisted,
        }

    def _value(self, name: str) -> Any:
        try:
            return change.value_at(self._configuration.current, change.read_path(name))
        except GatewayFailure:
            return None  # taken back to nothing: an entry that was removed

    def _tool_row(self, tool: Tool) -> dict[str, Any]:
        definition: Mapping[str, Any] = messages.value(tool.definition)
        description = definition.get("description")
        limit = self._book().of(tool).limit
        return {
            "fullName": tool.full_name,
            "exposedName": tool.exposed_name,
            "serverId": tool.server,
            "description": description[:_DESCRIPTION_CHARS] if isinstance(description, str) else None,
            "category": tool.traits.category,
            "categoryReason": tool.traits.reason,
            "readOnly": tool.traits.is_read_only,
            "idempotent": tool.traits.is_idempotent,
            "timeoutMs": limit.ms,
            "timeoutSource": limit.source,
            "rateLimit": self._rates.facts_of(tool),
        }


def _page(name: str, rows: list[Any], given: Arguments) -> dict[str, Any]:
    limit, offset = given.get("limit", DEFAULT_PAGE), given.get("offset", 0)
    return {
        name: rows[offset : offset + limit],
        "total": len(rows),
        "limit": limit,
        "offset": offset,
        "hasMore": offset + limit < len(rows),
    }


def _who() -> str:
    """Whose call this is: the name of their token."""
    under_way = CURRENT_CALL.get(None)
    return _NOBODY if under_way is None else under_way.caller.principal.shown
