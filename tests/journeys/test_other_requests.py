"""What is not a tool call is recorded, counted and bounded as well: reads, prompts, completions, subscriptions, tasks, extensions."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pactgate.config.sections.audit import AuditSection
from pactgate.config.sections.limits import Limits
from pactgate.config.sections.rate_limits import RateLimits, RequestRate
from tests.support.clients import ALICE, BOB, Client, client, served

EXTENSIONS = {"extensions": ("x/*",)}
FEW = RateLimits(requests=RequestRate(rpm=2, burst=2))
"""Nothing comes back while a test runs."""
PROMPT = {"ref": {"type": "ref/prompt", "name": "poem"}, "argument": {"name": "a", "value": "b"}}
REQUESTS: list[tuple[str, str, dict[str, Any], str | None]] = [
    ("read", "resources/read", {"uri": "data://a"}, "data://a"),
    ("prompt", "prompts/get", {"name": "poem", "arguments": {"about": "rain"}}, "poem"),
    ("completion", "completion/complete", PROMPT, "poem"),
    ("subscription", "resources/subscribe", {"uri": "data://a"}, "data://a"),
    ("subscription", "resources/unsubscribe", {"uri": "data://a"}, "data://a"),
    ("task", "tasks/get", {"taskId": "task-1"}, "task-1"),
    ("extension", "x/do", {"amount": 1_000_000}, None),
]


def records(log: Path) -> list[dict[str, Any]]:
    return [record for line in log.read_bytes().splitlines() if "requestId" in (record := json.loads(line))]


async def test_every_request_that_reaches_a_server_has_a_record_of_its_kind(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    async with served(server=EXTENSIONS, audit=AuditSection(file=str(log))) as port:
        alice = await client(port, ALICE)
        await alice.call("echo", {}, task={})
        for _, method, params, _ in REQUESTS:
            assert "result" in await alice.ask(method, **params), method
            assert records(log)[-1]["method"] == method  # before its answer went out
        await alice.ask("tools/list")
        await alice.ask("y/do")
    kept = records(log)
    assert [(each["kind"], each.get("method"), each.get("requested")) for each in kept[1:]] == [
        (kind, method, requested) for kind, method, _, requested in REQUESTS
    ]
    assert {(each["subject"], each["server"], each["outcome"]) for each in kept} == {("alice", "plain", "ok")}
    told = {each.get("method"): each.get("arguments") for each in kept}
    assert told["prompts/get"] == {"about": "string 4"}
    assert told["x/do"] == {"amount": "integer"}
    assert told["resources/read"] is None


async def test_a_refused_request_is_recorded_with_why(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    async with served(audit=AuditSection(file=str(log)), rate_limits=FEW) as port:
        alice = await client(port, ALICE)
        for _ in range(3):
            await alice.ask("resources/read", uri="data://a")
        await alice.ask("tasks/result", taskId="task-1")
    assert [(each["kind"], each["outcome"]) for each in records(log)] == [
        ("read", "ok"),
        ("read", "ok"),
        ("read", "rate_limited"),
        ("task", "invalid_params"),
    ]


async def test_a_listen_is_recorded_when_it_opens_and_when_it_ends(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    wanted = {"toolsListChanged": True, "resourceSubscriptions": ["data://a"]}
    async with served("modern", audit=AuditSection(file=str(log))) as port:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(Client(port, ALICE).ask("subscriptions/listen", notifications=wanted), 1)
    opened, ended = records(log)
    assert (opened["kind"], opened["outcome"], opened["subject"]) == ("subscription", "open", "alice")
    assert opened["watched"] == ["tools"]  # the server tells nobody of that resource
    assert (ended["requestId"], ended["outcome"]) == (opened["requestId"], "ok")
    assert ended["arguments"]["notifications"]["resourceSubscriptions"] == "array 1 of string"


@pytest.mark.parametrize(("method", "params"), [(method, params) for _, method, params, _ in REQUESTS])
async def test_each_kind_has_a_quota_of_each_client(method: str, params: dict[str, Any]) -> None:
    async with served(server=EXTENSIONS, rate_limits=FEW) as port:
        alice, bob = await client(port, ALICE), await client(port, BOB)
        replies = [await alice.ask(method, **params) for _ in range(4)]
        told = [reply.get("error", {}).get("data", {}).get("code") == "RATE_LIMITED" for reply in replies]
        assert told == [False, False, True, True]
        refused = replies[-1]["error"]
        assert (refused["data"]["limitedBy"], refused["data"]["limit"]) == ("rateLimits.requests", 2)
        assert "RATE_LIMITED" not in str(await bob.ask(method, **params))
        assert "RATE_LIMITED" not in str(await alice.call("whoami"))  # tools have quotas of their own


async def test_invented_names_and_servers_give_no_second_quota() -> None:
    async with served(server=EXTENSIONS, rate_limits=FEW) as port:
        alice = await client(port, ALICE)
        replies = [await alice.ask(f"x/{number}") for number in range(20)]
        assert sum("result" in reply for reply in replies) == 2
        replies = [await alice.ask("resources/read", uri=f"data://{number}") for number in range(20)]
        assert sum("RATE_LIMITED" not in str(reply) for reply in replies) == 2


async def test_three_hundred_reads_in_a_row_are_not_served_as_shipped() -> None:
    async with served() as port:
        alice = await client(port, ALICE)
        codes = Counter(
            reply.get("error", {}).get("data", {}).get("code")
            for reply in [await alice.ask("resources/read", uri="data://a") for _ in range(300)]
        )
        assert codes["RATE_LIMITED"] > 0


async def test_slow_requests_of_any_kind_take_the_slots_of_their_server() -> None:
    limits = Limits(max_in_flight_per_server=2, max_queued_per_server=1)
    async with served(server=EXTENSIONS, limits=limits) as port:
        clients = [await client(port, token) for token in (ALICE, BOB) for _ in range(3)]
        slow = await asyncio.gather(*(each.ask("x/slow") for each in clients))
        codes = Counter(reply.get("error", {}).get("data", {}).get("failure_mode") for reply in slow)
        assert codes["overloaded"] > 0
        assert codes[None] >= 2
        assert "result" in await clients[0].ask("x/do")  # every slot came back


async def test_a_slow_extension_ends_with_the_time_limit_of_its_server() -> None:
    async with served(server={**EXTENSIONS, "request_timeout_ms": 100}) as port:
        alice = await client(port, ALICE)
        reply = await alice.ask("x/slow")
        assert reply["error"]["data"]["failure_mode"] == "timeout"
