"""Health checks, metrics and a read-only JSON API.

`/health/live` and `/health/ready` answer everybody who can connect with one word, because load balancers have no token and use addresses
as Host. `/health` adds the servers for clients that the guard admits; `/api/...` and `/metrics` are for admitted clients only. A client
sees its own calls, an administrator sees all. Must not: change anything.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from pactgate.core.principal import Principal
from pactgate.core.values import ServerStatus
from pactgate.inbound.call_filter import CallFilter, CallFilterError, filter_of, read_filter
from pactgate.inbound.http_exchange import JSON_HEAD, HttpExchange
from pactgate.policy.access import sees_everything, shown_row
from pactgate.protocol.messages import encode_json

_HEAD: Final = JSON_HEAD + b"Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
_READ_ONLY: Final = b"Allow: GET, HEAD, OPTIONS\r\n"
_FRESH_S: Final = 0.2
_LIVE: Final = b'{"status":"ok"}'
_UNFINISHED: Final = frozenset({ServerStatus.CONNECTING.value, ServerStatus.DISCONNECTED.value})
_NOT_READY: Final = frozenset({"starting", "draining"})
_SHOWN: Final = ("serverId", "status", "toolCount", "lastError", "lastErrorCode", "trouble", "latencyMs")


_LOGS: Final = "/api/logs/"
_NUMBER: Final = re.compile("[0-9]{0,18}")
_ADMIN_ONLY: Final = b'{"status":"forbidden"}'
_CALLS: Final = "/api/calls"
_LISTED_CALLS: Final = 100
_NOTHING: Final[Mapping[str, Any]] = {}


class CallTraces(Protocol):
    """The last calls; `subject` limits them to those of one caller."""

    def get(self, request_id: str, subject: str | None = None) -> dict[str, Any] | None: ...

    def latest(
        self, count: int, subject: str | None = None, keeps: CallFilter | None = None
    ) -> list[dict[str, Any]]: ...


class Reach(Protocol):
    """What callers can reach."""

    def is_served(self, path: str, principal: Principal) -> bool:
        """Whether there is something for a caller at a path below `/mcp/`."""

    def shown_to(self, principal: Principal, facts: Mapping[str, Any]) -> dict[str, Any] | None:
        """Facts about the gateway as a caller sees them; None where no permissions are configured."""


class ServerLogReader(Protocol):
    """The last lines that servers wrote."""

    def read(self, server: str, after: int) -> dict[str, Any]: ...


class Admin:
    """Takes a snapshot of the gateway at most a few times a second, however many requests there are."""

    def __init__(
        self,
        snapshot: Callable[[], dict[str, Any]],
        metrics: Callable[[str], tuple[bytes, str]],
        stories: CallTraces,
        reach: Reach,
        server_logs: ServerLogReader,
        traffic: Callable[[], dict[str, Any]],
        clock: Callable[[], float],
        is_draining: Callable[[], bool] = lambda: False,
    ) -> None:
        self._is_draining = is_draining
        self._stories = stories
        self._reach = reach
        self._server_logs = server_logs
        self._traffic = traffic
        self._take = snapshot
        self._metrics = metrics
        self._clock = clock
        self._seen: dict[str, Any] = {}
        self._seen_until = -math.inf

    def _snapshot(self) -> dict[str, Any]:
        now = self._clock()
        if now >= self._seen_until:
            self._seen = self._take()
            self._seen_until = now + _FRESH_S
        return self._seen

    def answer_plainly(self, exchange: HttpExchange) -> bool:
        """Answer one of the two health checks that need no guard. Returns whether the path is one of theirs."""
        if exchange.path == "/health/live":
            self._say(exchange, 200, _LIVE)
        elif exchange.path == "/health/ready":
            snapshot = self._snapshot()
            status = "draining" if self._is_draining() else _status(snapshot["servers"])
            facts = {"status": status, "lists": snapshot["lists"]}
            self._say(exchange, 503 if status in _NOT_READY else 200, encode_json(facts))
        else:
            return False
        return True

    def health(self, exchange: HttpExchange, admitted: Principal | None) -> None:
        facts: dict[str, Any] = {"status": _status(self._servers())}
        if admitted is not None:
            rows = self._servers_for(admitted)
            facts["servers"] = [{name: server.get(name) for name in _SHOWN} for server in rows]
            state = self._snapshot().get("state")
            if state is not None:  # why the store does not answer names its address, which is for administrators
                is_for_all = not sees_everything(admitted.roles)
                facts["state"] = {name: fact for name, fact in state.items() if name != "trouble" or not is_for_all}
        self._say(exchange, 200, encode_json(facts))

    def answer(self, exchange: HttpExchange, admitted: Principal) -> bool:
        """Answer a path of the JSON API or the metrics. Returns whether the path is one of theirs."""
        if exchange.path.startswith(_CALLS):
            return self._answer_calls(exchange, None if sees_everything(admitted.roles) else admitted.shown)
        if exchange.path.startswith(_LOGS):
            return self._answer_logs(exchange, admitted)
        if exchange.path == "/metrics":
            return self._answer_metrics(exchange, admitted)
        if exchange.path == "/api/status":
            servers, tools = self._servers_for(admitted), self._tools_for(admitted)
            facts = {name: fact for name, fact in self._snapshot().items() if name not in ("servers", "tools")}
            shown = self._shown_to(admitted, facts)
            if shown is not None:
                facts = {name: fact for name, fact in shown.items() if name != "views"}
            facts |= {"status": _status(servers), "serverCount": len(servers), "toolCount": len(tools)}
        elif exchange.path == "/api/traffic" and self._shown_to(admitted) is None:
            facts = self._traffic()
        elif exchange.path == "/api/servers":
            facts = {"servers": self._servers_for(admitted)}
        elif exchange.path == "/api/tools":
            facts = {"tools": self._tools_for(admitted)}
        else:
            return False
        self._say(exchange, 200, encode_json(facts))
        return True

    def _answer_calls(self, exchange: HttpExchange, subject: str | None) -> bool:
        rest = exchange.path.removeprefix(_CALLS)
        if not rest:
            self._list_calls(exchange, subject)
            return True
        story = self._stories.get(rest[1:], subject) if rest.startswith("/") else None
        if story is None:
            return False
        self._say(exchange, 200, encode_json(story))
        return True

    def _answer_logs(self, exchange: HttpExchange, admitted: Principal) -> bool:
        """`/api/logs/{server}/{number}`: the lines after that one, for administrators, because a line may be about any client."""
        server, _, after = exchange.path.removeprefix(_LOGS).partition("/")
        if not any(row["serverId"] == server for row in self._servers_for(admitted)) or not _NUMBER.fullmatch(after):
            return False
        if not sees_everything(admitted.roles):
            self._say(exchange, 403, _ADMIN_ONLY)
            return True
        self._say(exchange, 200, encode_json(self._server_logs.read(server, int(after or 0))))
        return True

    def _list_calls(self, exchange: HttpExchange, subject: str | None) -> None:
        try:
            wanted = filter_of(exchange)
            keeps = read_filter(wanted) if wanted else None
        except CallFilterError as problem:
            self._say(exchange, 400, encode_json({"error": {"message": str(problem)}}))
            return
        self._say(exchange, 200, encode_json({"calls": self._stories.latest(_LISTED_CALLS, subject, keeps)}))

    def _servers(self) -> list[dict[str, Any]]:
        servers: list[dict[str, Any]] = self._snapshot()["servers"]
        return servers

    def _servers_for(self, admitted: Principal) -> list[dict[str, Any]]:
        """What a server wrote itself may be about another caller, so only an admin sees it, who sees every server too."""
        facts = {"servers": self._servers()}
        rows = (self._shown_to(admitted, facts) or facts)["servers"]
        return [shown_row(row, admitted.roles) for row in rows]

    def _tools_for(self, admitted: Principal) -> list[dict[str, Any]]:
        facts = {"tools": self._snapshot()["tools"]}
        rows: list[dict[str, Any]] = (self._shown_to(admitted, facts) or facts)["tools"]
        return rows

    def _shown_to(self, admitted: Principal, facts: Mapping[str, Any] = _NOTHING) -> dict[str, Any] | None:
        """Facts as a client sees them; None for administrators, and where no permissions are configured."""
        return None if sees_everything(admitted.roles) else self._reach.shown_to(admitted, facts)

    def _answer_metrics(self, exchange: HttpExchange, admitted: Principal) -> bool:
        """The metrics name servers and tools of everybody, so permissions leave them to administrators."""
        if self._shown_to(admitted) is not None:
            return False
        body, content_type = self._metrics(",".join(exchange.headers.get("accept", ())))
        self._say(exchange, 200, body, b"Content-Type: %b\r\nCache-Control: no-store\r\n" % content_type.encode())
        return True

    def say(self, exchange: HttpExchange, facts: dict[str, Any]) -> None:
        """Answer with a JSON document."""
        self._say(exchange, 200, encode_json(facts))

    def _say(self, exchange: HttpExchange, status: int, body: bytes, head: bytes = _HEAD) -> None:
        if exchange.method in ("GET", "HEAD"):
            exchange.respond(status, head, body)
        else:
            exchange.respond(405, _READ_ONLY)


def _status(servers: list[dict[str, Any]]) -> str:
    """`ok`, `degraded` (some can't be reached), `down` (none can), or `starting` (none yet, some still trying)."""
    states = [server["status"] for server in servers if server["status"] != ServerStatus.DISABLED.value]
    usable = [server for server in servers if server["status"] == ServerStatus.CONNECTED.value or server.get("isIdle")]
    connected = sum(not server.get("trouble") for server in usable)
    if connected == len(states):
        return "ok"
    if connected:
        return "degraded"
    return "starting" if _UNFINISHED.intersection(states) else "down"
