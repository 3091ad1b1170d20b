"""Resources are watched once per server, and told to each caller under the name it uses."""

from __future__ import annotations

import asyncio

import pytest
from msgspec import structs

from pactgate.core.principal import Principal
from tests.pipeline.conftest import open_gateway
from tests.support.hearers import (
    ACK,
    ERAS,
    SUB,
    UPDATED,
    Ear,
    changing,
    heard_by,
    legacy_caller,
    list_all,
    listening,
    modern_caller,
    until_server_heard,
)


@pytest.mark.parametrize("era", ERAS)
async def test_a_session_hears_of_the_resource_it_subscribed_to_under_the_name_it_used(era: str) -> None:
    async with open_gateway(changing("a", era)) as inside:
        await list_all(inside)
        merged, alone = Ear(), Ear()
        asked = [(merged, None, "a+data://a"), (alone, "a", "data://a")]
        for number, (ear, scope, uri) in enumerate(asked):
            who = legacy_caller(ear, f"s{number}", scope)
            assert (await inside.ask("resources/subscribe", who=who, params={"uri": uri})).result == b"{}"
        await inside.call("a.touch", {"uri": "data://b"})
        await inside.call("a.touch", {"uri": "data://a"})
        assert await merged.until_heard(UPDATED) == [{"uri": "a+data://a"}]
        assert await alone.until_heard(UPDATED) == [{"uri": "data://a"}]
        await inside.call("a.touch", {"uri": "data://a/part"})
        assert (await merged.until_heard(UPDATED, 2))[1] == {"uri": "a+data://a/part"}


@pytest.mark.parametrize("era", ERAS)
async def test_a_listen_hears_of_its_resources_and_is_told_which_it_will_not_hear_of(era: str) -> None:
    options = {"no_ack": ["data://b"]} if era == "modern" else {}
    async with open_gateway(changing("a", era, **options)) as inside:
        await list_all(inside)
        ear = Ear()
        wanted = {"resourceSubscriptions": ["a+data://a", "nowhere://x", *(["a+data://b"] if options else [])]}
        async with listening(inside, modern_caller(ear), wanted):
            assert ear.of(ACK)[0]["notifications"] == {"resourceSubscriptions": ["a+data://a"]}
            await inside.call("a.touch", {"uri": "data://a"})
            assert await ear.until_heard(UPDATED) == [{"uri": "a+data://a", "_meta": {SUB: "l1"}}]


async def test_a_server_is_subscribed_to_once_and_told_when_the_last_one_leaves() -> None:
    async with open_gateway(changing("a", "legacy")) as inside:
        await list_all(inside)
        first, second = legacy_caller(Ear(), "s1"), legacy_caller(Ear(), "s2")
        for who in (first, second, second):
            await inside.ask("resources/subscribe", who=who, params={"uri": "data://a"})
        await inside.ask("resources/unsubscribe", who=first, params={"uri": "data://a"})
        told = [each["method"] for each in await heard_by(inside)]
        assert told.count("resources/subscribe") == 1
        assert "resources/unsubscribe" not in told
        inside.gateway.kernel.left("s2")
        assert await until_server_heard(inside, "resources/unsubscribe") == [{"uri": "data://a"}]
        assert inside.gateway.changes.facts() == {"listens": 0, "subscriptions": 0}


async def test_a_subscription_that_ends_after_its_session_leaves_nothing() -> None:
    async with open_gateway(changing("a", "legacy")) as inside:
        asking = asyncio.create_task(
            inside.ask("resources/subscribe", who=legacy_caller(Ear(), "s1"), params={"uri": "a+data://a"})
        )
        for _ in range(10):
            await asyncio.sleep(0)  # it waits for the server, which still starts
        inside.gateway.kernel.left("s1")
        assert (await asking).result == b"{}"
        assert await until_server_heard(inside, "resources/unsubscribe") == [{"uri": "data://a"}]
        assert inside.gateway.changes.facts() == {"listens": 0, "subscriptions": 0}


async def test_one_principal_leaves_resources_of_a_server_to_watch_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pactgate.catalog.change_watcher.MAX_URIS", 8)
    uris = [f"a+data://{number}" for number in range(8)]
    async with open_gateway(changing("a", "legacy")) as inside:
        await list_all(inside)
        mine, other = Ear(), Ear()
        you = structs.replace(legacy_caller(other, "s2"), principal=Principal("you"))
        async with listening(inside, modern_caller(mine), {"resourceSubscriptions": uris}):
            assert mine.of(ACK)[0]["notifications"]["resourceSubscriptions"] == uris[:6]
            assert (await inside.ask("resources/subscribe", who=you, params={"uri": uris[7]})).result == b"{}"
            assert (await inside.ask("resources/subscribe", who=you, params={"uri": uris[0]})).result == b"{}"
            reply = await inside.ask("resources/subscribe", who=legacy_caller(Ear()), params={"uri": uris[6]})
            assert reply.error is not None
            assert "One client can't watch more resources of a" in reply.error.message
        assert (
            await inside.ask("resources/subscribe", who=legacy_caller(Ear()), params={"uri": uris[6]})
        ).result == b"{}"


async def test_what_can_not_be_watched_is_refused_with_the_reason() -> None:
    async with open_gateway(changing("a", "legacy", deaf=True)) as inside:
        await list_all(inside)
        who = legacy_caller(Ear())
        for uri, words in [
            ("a+data://a", "does not offer subscriptions"),
            ("nowhere://x", "No server lists"),
            ("pactgate://status", "not watched"),
        ]:
            reply = await inside.ask("resources/subscribe", who=who, params={"uri": uri})
            assert reply.error is not None
            assert words in reply.error.message


async def test_a_server_that_does_not_answer_holds_up_a_listen_for_a_bounded_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pactgate.pipeline.change_notifications.WATCH_S", 0.3)
    async with open_gateway(changing("a", "legacy", mute=["data://b"])) as inside:
        await list_all(inside)
        ear = Ear()
        async with listening(inside, modern_caller(ear), {"resourceSubscriptions": ["a+data://a", "a+data://b"]}):
            assert ear.of(ACK)[0]["notifications"] == {"resourceSubscriptions": ["a+data://a"]}
