"""Changes reach every caller that may hear them, whatever era it and the server speak."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from pactgate.core.events import Event, UpstreamNoise
from pactgate.pipeline import change_notifications as changes_module
from tests.pipeline.conftest import open_gateway
from tests.support.hearers import (
    ACK,
    ERAS,
    SUB,
    TOOLS_CHANGED,
    WAIT_S,
    Ear,
    changing,
    list_all,
    listening,
    modern_caller,
)


@pytest.mark.requirement("S0/ECO-001")
@pytest.mark.parametrize("era", ERAS)
async def test_a_changed_list_is_told_to_those_who_listen_and_tagged_with_their_id(era: str) -> None:
    async with open_gateway(changing("a", era)) as inside:
        await list_all(inside)
        ear, deaf = Ear(), Ear()
        async with (
            listening(inside, modern_caller(ear), {"toolsListChanged": True}),
            listening(inside, modern_caller(deaf), {"promptsListChanged": True}, b"7"),
        ):
            assert ear.heard[0] == (ACK, {"notifications": {"toolsListChanged": True}, "_meta": {SUB: "l1"}})
            await inside.call("a.add", {"name": "fresh"})
            assert (await ear.until_heard(TOOLS_CHANGED))[0] == {"_meta": {SUB: "l1"}}
            listed = await inside.ask("tools/list")
            assert b'"a__fresh"' in (listed.result or b"")
            assert [method for method, _ in deaf.heard] == [ACK]


@pytest.mark.parametrize("era", ERAS)
async def test_a_changed_list_is_told_to_the_audience_of_its_view_and_of_the_merged_one(era: str) -> None:
    async with open_gateway(changing("a", era), changing("b", "legacy")) as inside:
        await list_all(inside)
        await list_all(inside, "b")
        ear = Ear()
        inside.gateway.kernel.join(ear)
        await inside.call("a.add", {"name": "fresh"})
        await ear.until(lambda ear: (None, TOOLS_CHANGED) in ear.told)
        assert set(ear.told) == {("a", TOOLS_CHANGED), (None, TOOLS_CHANGED)}


async def test_a_list_that_stayed_the_same_is_told_on_the_servers_own_path_only() -> None:
    async with open_gateway(changing("a", "legacy")) as inside:
        await list_all(inside)
        ear = Ear()
        inside.gateway.kernel.join(ear)
        await inside.call("a.add", {"name": "add"})  # a second tool of that name: it is left out, so nothing differs
        await ear.until(lambda ear: bool(ear.told))
        assert ear.told == [("a", TOOLS_CHANGED)]


async def test_a_change_nobody_was_told_of_is_found_when_the_list_is_asked_for_again() -> None:
    async with open_gateway(changing("a", "modern")) as inside:
        await list_all(inside)
        ear = Ear()
        async with listening(inside, modern_caller(ear), {"toolsListChanged": True}):
            await inside.call("a.add_quietly", {"name": "fresh"})
            await list_all(inside)
            await ear.until_heard(TOOLS_CHANGED)


async def test_listens_and_what_they_watch_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes_module, "MAX_LISTENS_OF_ONE", 1)
    async with open_gateway(changing("a", "legacy")) as inside:
        await list_all(inside)
        async with listening(inside, modern_caller(Ear()), {"toolsListChanged": True}):
            refused = await inside.ask(
                "subscriptions/listen", who=modern_caller(Ear()), params={"notifications": {"toolsListChanged": True}}
            )
            assert refused.error is not None
            assert refused.error.data["failure_mode"] == "overloaded"
        many = {"notifications": {"resourceSubscriptions": [f"data://{n}" for n in range(1000)]}}
        refused = await inside.ask("subscriptions/listen", who=modern_caller(Ear()), params=many)
        assert refused.error is not None
        assert refused.error.data["failure_mode"] == "limit_exceeded"


@pytest.mark.parametrize("params", [{}, {"notifications": []}, {"notifications": {"toolsListChanged": "yes"}}])
async def test_a_filter_that_can_not_be_read_is_refused(params: dict[str, Any]) -> None:
    async with open_gateway() as inside:
        reply = await inside.ask("subscriptions/listen", who=modern_caller(Ear()), params=params)
        assert reply.error is not None
        assert reply.error.code == -32602


async def test_stopping_ends_a_listen_with_its_result() -> None:
    async with open_gateway(changing("a", "legacy")) as inside:
        await list_all(inside)
        async with listening(inside, modern_caller(Ear()), {"toolsListChanged": True}, b"5") as task:
            inside.gateway.changes.close()
            reply = await asyncio.wait_for(task, WAIT_S)
            result = json.loads(reply.result)
            assert result["resultType"] == "complete"
            assert result["_meta"][SUB] == 5


async def test_a_closed_listen_is_no_failure() -> None:
    async with open_gateway() as inside:
        async with listening(inside, modern_caller(Ear()), {"toolsListChanged": True}):
            pass
        finished: list[Event] = [each for each in inside.events if type(each).__name__ == "RequestFinished"]
        assert finished[-1].record.outcome == "ok"  # type: ignore[attr-defined]
        assert not [each for each in inside.events if isinstance(each, UpstreamNoise)]
