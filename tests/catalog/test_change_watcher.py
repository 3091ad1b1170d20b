"""A server is listened to as its era has it, again after every break, and only for what somebody holds."""

from __future__ import annotations

import pytest

from tests.pipeline.conftest import open_gateway
from tests.support.eventually import eventually
from tests.support.hearers import (
    ERAS,
    UPDATED,
    Ear,
    changing,
    heard_by,
    legacy_caller,
    list_all,
    until_server_heard,
)
from tests.support.servers import UNLIMITED


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_that_comes_back_is_subscribed_to_again(era: str) -> None:
    async with open_gateway(changing("a", era), rate_limits=UNLIMITED) as inside:
        await list_all(inside)
        ear = Ear()
        await inside.ask("resources/subscribe", who=legacy_caller(ear), params={"uri": "data://a"})
        await inside.call("a.crash")
        await list_all(inside)
        method = "subscriptions/listen" if era == "modern" else "resources/subscribe"
        await until_server_heard(inside, method)
        await inside.call("a.touch", {"uri": "data://a"})
        await ear.until_heard(UPDATED)


async def test_a_modern_server_is_listened_to_again_after_it_ended_the_listen() -> None:
    async with open_gateway(changing("a", "modern"), rate_limits=UNLIMITED) as inside:
        await list_all(inside)
        await until_server_heard(inside, "subscriptions/listen")
        await inside.call("a.end_listens")

        async def listens_again() -> bool:
            return [each["method"] for each in await heard_by(inside)].count("subscriptions/listen") >= 2

        await eventually(listens_again)


async def test_one_listen_is_open_at_a_time_and_has_everything_in_its_filter() -> None:
    async with open_gateway(changing("a", "modern"), rate_limits=UNLIMITED) as inside:
        await list_all(inside)
        ear = Ear()
        for uri in ("data://a", "data://b"):
            await inside.ask("resources/subscribe", who=legacy_caller(ear), params={"uri": uri})
        heard = await heard_by(inside)
        filters = [each["params"]["notifications"] for each in heard if each["method"] == "subscriptions/listen"]
        lists = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}
        assert filters[-1] == {**lists, "resourceSubscriptions": ["data://a", "data://b"]}
        await until_server_heard(inside, "notifications/cancelled")
        await inside.call("a.touch", {"uri": "data://b"})
        await inside.call("a.touch", {"uri": "data://a"})
        assert await ear.until_heard(UPDATED, 2) == [{"uri": "data://b"}, {"uri": "data://a"}]


async def test_nothing_is_listened_to_that_a_server_does_not_offer() -> None:
    async with open_gateway(changing("a", "modern", deaf=True)) as inside:
        await list_all(inside)
        assert "subscriptions/listen" not in [each["method"] for each in await heard_by(inside)]


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_is_watched_for_so_many_resources_and_no_more(era: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pactgate.catalog.change_watcher.MAX_URIS", 1)
    async with open_gateway(changing("a", era), rate_limits=UNLIMITED) as inside:
        await list_all(inside)
        who = legacy_caller(Ear())
        await inside.ask("resources/subscribe", who=who, params={"uri": "data://a"})
        reply = await inside.ask("resources/subscribe", who=who, params={"uri": "data://b"})
        assert reply.error is not None
        assert reply.error.data["failure_mode"] == "overloaded"
