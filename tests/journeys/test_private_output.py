"""What a server wrote about one client, looked for by another client in every place of a gateway that is a process of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Served, scripted, write_config
from tests.support.eventually import eventually
from tests.support.facing import initialize, message, modern
from tests.support.raw_http import RawClient, get, post

SECRET = "ALICE-PRIVATE-RECORD"
TOLD = "what the server says in its refusal"
TOKENS: dict[str, Any] = {name: {"token": f"token-of-{name}-0123456789"} for name in ("alice", "bob", "root")}
TOKENS["root"]["roles"] = ["admin"]
ALICE, BOB, ROOT = ({"authorization": f"Bearer {entry['token']}"} for entry in TOKENS.values())


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Served]:
    """`db` can't start again after its crash, and then writes the same text; `listless` refuses its lists in words of its own."""
    (tmp_path / "up").touch()
    db = scripted(
        era="legacy", tools=["mutter"], starts_while=str(tmp_path / "up"), tells_at_start=str(tmp_path / "last")
    )
    listless = scripted(era="legacy", broken_lists=["tools/list"], broken_words=TOLD)
    halflisted = scripted(era="legacy", broken_lists=["prompts/list"], broken_words=TOLD, prompts=["x"])
    servers = {"db": {**db, "maxRetries": 0}, "listless": listless, "halflisted": halflisted}
    write_config(tmp_path, servers, auth={"tokens": TOKENS}, rateLimits={"enabled": False})
    with Served(tmp_path) as served:
        served.wait_for("ok    db")
        yield served


async def crashed(client: RawClient, gateway: Served, folder: Path) -> str:
    """What Alice is told after her call has ended the server."""
    (folder / "up").unlink()
    (folder / "last").write_text(f"fatal: cannot process {SECRET}\n")
    answer = await client.ask(modern("tools/call", name="db__crash", arguments={"last": f"fatal: {SECRET}"}, **ALICE))

    async def is_given_up() -> bool:
        rows = (await client.ask(get("/api/servers", **BOB))).json["servers"]
        return any(row["serverId"] == "db" and row["status"] == "error" for row in rows)

    await eventually(is_given_up)
    return answer.body.decode()


async def shown_to(client: RawClient, who: dict[str, str]) -> dict[str, str]:
    """Everything that a client reads about the servers, by the place where it stands."""
    modern_read = message("resources/read", {"uri": "pactgate://status"})
    asked = {
        "/health": get("/health", **who),
        "/api/servers": get("/api/servers", **who),
        "/api/status": get("/api/status", **who),
        "/api/calls": get("/api/calls", **who),
        "/metrics": get("/metrics", **who),
        "tools/list": modern("tools/list", **who),
        "prompts/list": modern("prompts/list", **who),
        "resources/list": modern("resources/list", **who),
        "instructions": post(initialize(), **who),
        "instructions of one server": post(initialize(), "/mcp/db", **who),
        "server/discover": modern("server/discover", **who),
        "a call": modern("tools/call", name="db__echo", **who),
        "a call by the bare name": modern("tools/call", name="db.echo", **who),
        "a prompt": post(message("prompts/get", {"name": "db.x"}), **who, **await session(client, who)),
        "a resource": post(message("resources/read", {"uri": "db+x:y"}), **who, **await session(client, who)),
        "status": post(modern_read, **who, **await session(client, who)),
        "a call to a server without lists": modern("tools/call", name="listless__echo", **who),
    }
    return {place: (await client.ask(request)).body.decode() for place, request in asked.items()}


async def session(client: RawClient, who: dict[str, str]) -> dict[str, str]:
    answer = await client.ask(post(initialize(), **who))
    session = {"mcp_session_id": str(answer.header("mcp-session-id"))}
    await client.ask(post(message("notifications/initialized", id_=None), **who, **session))
    return session


async def test_what_a_server_wrote_reaches_the_call_the_log_and_administrators_only(
    gateway: Served, tmp_path: Path
) -> None:
    async with RawClient(int(gateway.url.rpartition(":")[2])) as client:
        told = await crashed(client, gateway, tmp_path)
        assert SECRET in told
        seen = await shown_to(client, BOB)
        assert [place for place, text in seen.items() if SECRET in text or TOLD in text] == []
        for place in ("/health", "/api/servers", "tools/list", "instructions", "status", "a call"):
            assert "db ended with exit code" in seen[place], place
        seen = await shown_to(client, ROOT)
        assert {place for place, text in seen.items() if SECRET in text} == {"/health", "/api/servers"}
        assert TOLD in seen["/api/servers"]
        assert TOLD not in seen["instructions"]
    assert SECRET in (tmp_path / "log.jsonl").read_text()


async def test_output_about_an_earlier_call_is_not_shown_to_a_later_one(gateway: Served) -> None:
    async with RawClient(int(gateway.url.rpartition(":")[2])) as client:
        await client.ask(modern("tools/call", name="db__mutter", arguments={"last": SECRET}, **ALICE))
        answer = await client.ask(modern("tools/call", name="db__crash", **BOB))
    assert "ended with exit code 7" in json.dumps(answer.json)
    assert SECRET not in answer.body.decode()


async def test_of_two_running_calls_neither_is_shown_what_may_be_about_the_other(gateway: Served) -> None:
    port = int(gateway.url.rpartition(":")[2])
    async with RawClient(port) as alice, RawClient(port) as bob:
        await bob.send(modern("tools/call", name="db__slow", arguments={"ms": 60000}, **BOB))
        held = get("/metrics", **ALICE)

        async def is_running() -> bool:
            return b"pactgate_calls_held 1\n" in (await alice.ask(held)).body

        await eventually(is_running)
        hers = await alice.ask(modern("tools/call", name="db__crash", arguments={"last": SECRET}, **ALICE))
        his = await bob.answer()
    assert SECRET not in his.body.decode() + hers.body.decode()
    assert "ended with exit code 7" in his.body.decode()
