"""Lists, reads and discovery say how long they may be taken for true: as long as their servers say, less the time that has passed."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.pipeline.conftest import Inside, open_gateway
from tests.support.eventually import eventually
from tests.support.hearers import Ear, changing, list_all, modern_caller

HOUR = {"ttlMs": 3_600_000, "cacheScope": "public"}
MINUTE = {"ttlMs": 60_000, "cacheScope": "private"}


async def said(inside: Inside, method: str, scope: str | None = None, **params: Any) -> tuple[int, str]:
    reply = await inside.ask(method, who=modern_caller(Ear(), scope), params=params)
    assert reply.result is not None, reply
    result = json.loads(reply.result)
    return result["ttlMs"], result["cacheScope"]


@pytest.mark.requirement("S1/CACHE-003")
@pytest.mark.parametrize("method", ["tools/list", "prompts/list", "resources/list", "resources/templates/list"])
async def test_a_list_is_as_fresh_as_its_server_says_less_the_time_that_passed(method: str) -> None:
    async with open_gateway(changing("a", "modern", hints=HOUR)) as inside:
        started = time.monotonic()
        await list_all(inside)
        for scope in (None, "a"):
            ttl_ms, kind = await said(inside, method, scope)
            gone_ms = (time.monotonic() - started) * 1000
            assert 3_600_000 - gone_ms - 2000 <= ttl_ms < 3_600_000
            # Administrators see more tools than others, so all tools together are nobody else's.
            assert kind == ("private" if method == "tools/list" and scope is None else "public")
        first, _ = await said(inside, method)

        async def is_less() -> bool:
            return (await said(inside, method))[0] < first

        await eventually(is_less)


async def test_a_merged_list_is_as_fresh_and_as_private_as_the_least_of_its_servers() -> None:
    async with open_gateway(changing("a", "modern", hints=HOUR), changing("b", "modern", hints=MINUTE)) as inside:
        await list_all(inside)
        await list_all(inside, "b")
        ttl_ms, kind = await said(inside, "tools/list")
        assert 50_000 < ttl_ms <= 60_000
        assert kind == "private"


async def test_a_legacy_server_says_nothing_so_a_list_with_its_tools_is_stale_at_once() -> None:
    async with open_gateway(changing("a", "modern", hints=HOUR), changing("b", "legacy")) as inside:
        await list_all(inside)
        await list_all(inside, "b")
        assert await said(inside, "tools/list") == (0, "private")
        assert (await said(inside, "tools/list", "a"))[0] > 0


async def test_a_list_a_server_is_missing_from_is_stale() -> None:
    async with open_gateway(changing("a", "modern", hints=HOUR)) as inside:
        await list_all(inside)
        await inside.gateway.connections.set_enabled("a", False)
        assert await said(inside, "tools/list") == (0, "private")


async def test_a_list_whose_time_is_over_is_asked_for_again_when_somebody_wants_it() -> None:
    hints = {"ttlMs": 1, "cacheScope": "public"}
    async with open_gateway(changing("a", "modern", hints=hints, deaf=True)) as inside:
        await list_all(inside)
        await inside.call("a.add_quietly", {"name": "fresh"})

        async def is_listed() -> bool:
            return b"a__fresh" in ((await inside.ask("tools/list")).result or b"")

        await eventually(is_listed)


@pytest.mark.requirement("S1/CACHE-003")
async def test_a_kept_resource_says_what_is_left_of_its_time() -> None:
    async with open_gateway(changing("a", "modern", hints=MINUTE)) as inside:
        await list_all(inside)
        first, kind = await said(inside, "resources/read", uri="a+data://a")
        assert first == 60_000
        assert kind == "private"

        async def is_less() -> bool:
            return (await said(inside, "resources/read", uri="a+data://a"))[0] < first

        await eventually(is_less)


@pytest.mark.parametrize("ttl", [-5, "soon", 1.5, None])
async def test_a_hint_that_is_none_reaches_no_caller(ttl: Any) -> None:
    hints = {"ttlMs": ttl, "cacheScope": "everybody"}
    async with open_gateway(changing("a", "modern", hints=hints)) as inside:
        await list_all(inside)
        assert await said(inside, "resources/read", uri="a+data://a") == (0, "private")
        assert await said(inside, "tools/list") == (0, "private")


async def test_discovery_is_as_fresh_as_its_server_says() -> None:
    async with open_gateway(changing("a", "modern", discover=HOUR)) as inside:
        await list_all(inside)
        ttl_ms, kind = await said(inside, "server/discover", "a")
        assert 3_590_000 < ttl_ms < 3_600_000
        assert kind == "public"
