"""A call known again by its bytes is the same call: everything that may have changed since is asked anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from pactgate.config.model import Config
from pactgate.config.sections.cache import Cache, CacheRule
from pactgate.config.sections.limits import Limits
from pactgate.config.sections.rate_limits import MutationRate, RateLimits, ReadRate
from pactgate.core.failures import Reply
from tests.pipeline.conftest import Inside, open_gateway, text_of
from tests.support.callers import caller
from tests.support.servers import UNLIMITED, methods, scripted

KEPT = Cache(tools={"files.echo": CacheRule(ttl_ms=600_000)})
SAME: dict[str, Any] = {"text": "the same"}


async def warmed(inside: Inside) -> None:
    """Asked, kept, and given from the cache once: from now on the call is known."""
    for _ in range(2):
        await inside.call("files.echo", SAME)


def was_kept(reply: Reply) -> bool:
    assert reply.result is not None, reply
    return bool(json.loads(reply.result)["_meta"]["dev.pactgate/envelope"]["cached"])


async def test_a_known_call_is_answered_from_the_cache_with_an_envelope_of_its_own(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with open_gateway(scripted(options={"log": str(log)}), cache=KEPT) as inside:
        await warmed(inside)
        replies = [await inside.call("files.echo", SAME) for _ in range(3)]
    assert methods(log).count("tools/call") == 1
    assert all(was_kept(reply) and text_of(reply) == "the same" for reply in replies)
    stamps = [json.loads(reply.result or b"")["_meta"]["dev.pactgate/envelope"] for reply in replies]
    assert len({stamp["requestId"] for stamp in stamps}) == 3
    assert {stamp["tool"] for stamp in stamps} == {"files.echo"}


async def test_a_known_call_of_somebody_else_is_asked_for_them(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with open_gateway(scripted(options={"log": str(log)}), cache=KEPT) as inside:
        await warmed(inside)
        assert not was_kept(await inside.call("files.echo", SAME, who=replace(caller(), subject="somebody else")))
    assert methods(log).count("tools/call") == 2


async def test_a_limit_lowered_meanwhile_refuses_a_known_call() -> None:
    async with open_gateway(scripted(), cache=KEPT) as inside:
        await warmed(inside)
        stricter = replace(inside.gateway.config, limits=Limits(max_string_length=3))
        await inside.gateway.reload(stricter)
        reply = await inside.call("files.echo", SAME)
    assert reply.error is not None
    assert reply.error.data["code"] == "STRING_TOO_LONG"


async def test_a_tool_that_is_gone_is_unknown_also_to_those_who_called_it_before() -> None:
    async with open_gateway(scripted(), cache=KEPT) as inside:
        await warmed(inside)
        await inside.gateway.reload(Config(cache=KEPT))
        reply = await inside.call("files.echo", SAME)
    assert reply.error is not None
    assert reply.error.data["failure_mode"] == "unknown_tool"


async def test_a_known_call_counts_against_its_rate() -> None:
    rates = RateLimits(enabled=True, read=ReadRate(rpm=3, burst=3), mutation=MutationRate(rpm=3, burst=3))
    async with open_gateway(scripted(), cache=KEPT, rate_limits=rates) as inside:
        await warmed(inside)
        assert was_kept(await inside.call("files.echo", SAME))
        reply = await inside.call("files.echo", SAME)
    facts = reply.error.data if reply.error else json.loads(reply.result or b"")["_meta"]["dev.pactgate/envelope"]
    assert "RATE_LIMITED" in json.dumps(facts)


async def test_more_calls_than_are_remembered_are_all_answered_rightly() -> None:
    async with open_gateway(scripted(), cache=KEPT, rate_limits=UNLIMITED) as inside:
        for number in range(1100):
            text = {"text": f"number {number}"}
            await inside.call("files.echo", text)
            assert text_of(await inside.call("files.echo", text)) == f"number {number}"
