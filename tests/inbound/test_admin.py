from __future__ import annotations

from typing import Any

import pytest

from pactgate.inbound.auth import Guard
from pactgate.inbound.call_filter import CallFilter
from tests.support.facing import SNAPSHOT, Clock, credentials, serving
from tests.support.raw_http import get, post, request


def with_states(*states: str) -> dict[str, Any]:
    servers = [{"serverId": f"s{number}", "status": state} for number, state in enumerate(states)]
    return {**SNAPSHOT, "servers": servers}


@pytest.mark.parametrize(
    ("states", "status", "ready"),
    [
        ((), "ok", 200),
        (("connected", "connected"), "ok", 200),
        (("connected", "disabled"), "ok", 200),
        (("disabled",), "ok", 200),
        (("connected", "error"), "degraded", 200),
        (("connected", "connecting"), "degraded", 200),
        (("connecting", "error"), "starting", 503),
        (("error", "error"), "down", 200),
    ],
)
async def test_health_sums_up_the_servers(states: tuple[str, ...], status: str, ready: int) -> None:
    async with serving(snapshot=lambda: with_states(*states)) as served:
        health = await served.ask(get("/health"))
        assert (health.status, health.json["status"]) == (200, status)
        assert [server["status"] for server in health.json["servers"]] == list(states)
        answer = await served.ask(get("/health/ready"))
        assert (answer.status, answer.json) == (ready, {"status": status, "lists": "whole"})


async def test_plain_health_checks_need_neither_token_nor_name() -> None:
    async with serving(
        guard=Guard(host="127.0.0.1", credentials=credentials({"x" * 20: ("ops", frozenset())}))
    ) as served:
        for path in ("/health/live", "/health/ready"):
            answer = await served.ask(get(path, host="10.1.2.3:7411"))
            assert (answer.status, answer.json["status"]) == (200, "ok")
        assert (await served.ask(get("/health", host="evil.example"))).status == 421
        assert (await served.ask(get("/health", origin="http://evil.example"))).status == 403


async def test_details_are_for_callers_who_are_admitted() -> None:
    async with serving(
        guard=Guard(host="127.0.0.1", credentials=credentials({"x" * 20: ("ops", frozenset())}))
    ) as served:
        assert (await served.ask(get("/health"))).json == {"status": "ok"}
        assert "servers" in (await served.ask(get("/health", authorization="Bearer " + "x" * 20))).json
        for path in ("/api/status", "/api/servers", "/api/tools", "/metrics"):
            assert (await served.ask(get(path))).status == 401
            assert (await served.ask(get(path, authorization="Bearer " + "x" * 20))).status == 200


async def test_the_api_shows_the_snapshot() -> None:
    async with serving() as served:
        status = (await served.ask(get("/api/status"))).json
        assert status == {
            "name": "pactgate",
            "version": "0",
            "uptimeMs": 1,
            "calls": {"total": 0, "failed": 0},
            "status": "ok",
            "lists": "whole",
            "serverCount": 1,
            "toolCount": 1,
        }
        servers = await served.ask(get("/api/servers"))
        assert servers.json == {"servers": SNAPSHOT["servers"]}
        assert (servers.header("cache-control"), servers.header("x-content-type-options")) == ("no-store", "nosniff")
        assert (await served.ask(get("/api/tools"))).json == {"tools": SNAPSHOT["tools"]}


@pytest.mark.parametrize("path", ["/health", "/health/live", "/health/ready", "/api/status", "/api/tools", "/metrics"])
async def test_nothing_can_be_changed(path: str) -> None:
    async with serving() as served, served.client() as client:
        for wire in (post(b"{}", path), request("DELETE", path, {"host": "localhost"})):
            answer = await client.ask(wire)
            assert (answer.status, answer.header("allow")) == (405, "GET, HEAD, OPTIONS")
        await client.send(request("HEAD", path, {"host": "localhost"}))
        assert (await client.head()).status == 200
        assert (await client.ask(get(path))).status == 200


async def test_the_gateway_is_looked_at_only_so_often() -> None:
    taken: list[int] = []
    clock = Clock()

    def snapshot() -> dict[str, Any]:
        taken.append(1)
        return SNAPSHOT

    async with serving(snapshot=snapshot, clock=clock) as served:
        for _ in range(10):
            await served.ask(get("/health/ready"))
        assert len(taken) == 1
        clock.now += 1
        await served.ask(get("/health/ready"))
        assert len(taken) == 2


async def test_metrics_are_plain_text() -> None:
    async with serving() as served:
        answer = await served.ask(get("/metrics"))
        assert answer.status == 200
        assert (answer.header("content-type") or "").startswith("text/plain; version=0.0.4")
        assert answer.body == b"pactgate_up 1\n"


class Told:
    """Stories of two calls, one of each caller."""

    def __init__(self) -> None:
        self.owners = {"r1": "ops", "r2": "app"}

    def get(self, request_id: str, subject: str | None = None) -> dict[str, Any] | None:
        owner = self.owners.get(request_id)
        return {"requestId": request_id} if owner is not None and subject in (None, owner) else None

    def latest(self, count: int, subject: str | None = None, keeps: CallFilter | None = None) -> list[dict[str, Any]]:
        return [{"requestId": one} for one, owner in self.owners.items() if subject in (None, owner)][:count]


async def test_callers_see_their_own_calls_and_an_admin_all() -> None:
    tokens = {"x" * 20: ("ops", frozenset({"admin"})), "y" * 20: ("app", frozenset[str]())}
    async with serving(guard=Guard(host="127.0.0.1", credentials=credentials(tokens)), stories=Told()) as served:
        admin, app = ("Bearer " + letter * 20 for letter in "xy")
        assert (await served.ask(get("/api/calls"))).status == 401
        listed = (await served.ask(get("/api/calls", authorization=admin))).json
        assert listed == {"calls": [{"requestId": "r1"}, {"requestId": "r2"}]}
        assert (await served.ask(get("/api/calls", authorization=app))).json == {"calls": [{"requestId": "r2"}]}
        for token, path, status in ((admin, "r2", 200), (app, "r2", 200), (app, "r1", 404), (admin, "r3", 404)):
            assert (await served.ask(get(f"/api/calls/{path}", authorization=token))).status == status
        assert (await served.ask(get("/api/callsr1", authorization=admin))).status == 404
        assert (await served.ask(post(b"{}", "/api/calls", authorization=admin))).status == 405
