"""`pactgate://status`: which servers are there, which are not and why, for a model or a person to read (D14)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pactgate.catalog.connections import Connections
from pactgate.catalog.shown_facts import shown_facts
from pactgate.core.values import Caller
from pactgate.protocol.messages import encode_json

URI: Final = "pactgate://status"
DEFINITION: Final = encode_json(
    {
        "uri": URI,
        "name": "status",
        "title": "Gateway status",
        "description": "The servers behind this gateway: which are connected, what they offer, what is missing and why; and the limits on "
        "calls and arguments.",
        "mimeType": "application/json",
    }
)
_SHOWN: Final = (
    "serverId",
    "status",
    "era",
    "protocolVersion",
    "toolCount",
    "promptCount",
    "resourceCount",
    "lastError",
    "lastErrorCode",
    "leftOut",
    "mayHide",
)


class Status:
    """Reads the state of all servers at the moment it is asked, and the limits every caller lives with (S2/MCP-007)."""

    def __init__(self, connections: Connections, limits: Callable[[], dict[str, Any]]) -> None:
        self._connections = connections
        self._limits = limits

    def read(self, uri: str, caller: Caller) -> bytes | None:
        """The result of `resources/read` for our one resource, or None for any other URI."""
        if uri != URI:
            return None
        text = encode_json(self.facts(caller)).decode()
        return encode_json({"contents": [{"uri": URI, "mimeType": "application/json", "text": text}]})

    def _told(self, server: str) -> dict[str, str]:
        """The instructions of a server. A client that was connected before the server had started finds them only here."""
        instructions = self._connections.instructions_of(server)
        return {"instructions": instructions} if instructions else {}

    def facts(self, caller: Caller) -> dict[str, Any]:
        """The servers that exist for the caller."""
        catalog = self._connections.catalog_for(caller)
        facts = shown_facts(
            {"servers": self._connections.rows(), "missing": catalog.missing, **self._limits()}, catalog
        )
        facts["servers"] = [
            {**{name: row[name] for name in _SHOWN}, **self._told(row["serverId"])} for row in facts["servers"]
        ]
        return facts
