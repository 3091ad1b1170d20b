"""Progress and log messages reach the caller of the request they belong to, by its level, in every pairing; nobody else hears them."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Literal

import pytest
from msgspec.structs import replace

from pactgate.core.principal import Principal
from pactgate.core.values import Caller
from pactgate.protocol.versions import Era
from tests.pipeline.conftest import open_gateway
from tests.support.hearers import ERAS, Ear, changing, heard_by, legacy_caller, list_all, modern_caller

PROGRESS = "notifications/progress"
MESSAGE = "notifications/message"
PAIRINGS = [(caller, server) for caller in ERAS for server in ERAS]
REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("tools/call", {"name": "a.steps", "arguments": {}}),
    ("prompts/get", {"name": "a.poem"}),
    ("resources/read", {"uri": "a+data://a"}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "a.poem"}, "argument": {"name": "x", "value": ""}}),
]


def of_era(era: str, ear: Ear, level: str | None = None) -> Caller:
    return legacy_caller(ear) if era == "legacy" else modern_caller(ear, log_level=level)


@pytest.mark.parametrize(("caller", "server"), PAIRINGS)
@pytest.mark.parametrize(("method", "params"), REQUESTS)
async def test_progress_comes_under_the_callers_own_token(
    caller: str, server: str, method: str, params: dict[str, Any]
) -> None:
    async with open_gateway(changing("a", server)) as inside:
        await list_all(inside)
        ear = Ear()
        asked = {**params, "_meta": {"progressToken": "mine"}}
        reply = await inside.ask(method, who=of_era(caller, ear), params=asked)
        assert reply.error is None
        assert ear.of(PROGRESS) == [{"progressToken": "mine", "progress": done} for done in (1, 2)]


@pytest.mark.parametrize(("caller", "server"), PAIRINGS)
@pytest.mark.parametrize(("method", "params"), REQUESTS[:2])
@pytest.mark.parametrize(
    ("level", "expected"), [("debug", ["fine print", "careful"]), ("error", []), ("info", ["careful"])]
)
async def test_a_caller_hears_what_is_as_grave_as_it_asked_for(
    caller: str, server: str, method: str, params: dict[str, Any], level: str, expected: list[str]
) -> None:
    async with open_gateway(changing("a", server)) as inside:
        await list_all(inside)
        ear = Ear()
        who = of_era(caller, ear, level)
        if who.era is Era.LEGACY:
            assert (await inside.ask("logging/setLevel", who=who, params={"level": level})).result == b"{}"
        await inside.ask(method, who=who, params=params)
        assert [message["data"] for message in ear.of(MESSAGE)] == expected


@pytest.mark.parametrize(
    ("caller", "server", "expected"),
    [("legacy", "legacy", ["careful"]), ("modern", "legacy", []), ("legacy", "modern", [])],
)
async def test_without_a_level_only_a_legacy_server_decides_what_a_legacy_caller_hears(
    caller: str, server: str, expected: list[str]
) -> None:
    async with open_gateway(changing("a", server)) as inside:
        await list_all(inside)
        ear = Ear()
        await inside.ask("tools/call", who=of_era(caller, ear), params={"name": "a.steps"})
        assert [message["data"] for message in ear.of(MESSAGE)] == expected


async def test_a_legacy_server_is_told_the_lowest_level_once() -> None:
    async with open_gateway(changing("a", "legacy")) as inside:
        await list_all(inside)
        for session, level in (("s1", "warning"), ("s2", "info"), ("s3", "error")):
            who = legacy_caller(Ear(), session)
            await inside.ask("logging/setLevel", who=who, params={"level": level})
            await inside.ask("tools/call", who=who, params={"name": "a.steps"})
        told = [each["params"]["level"] for each in await heard_by(inside) if each["method"] == "logging/setLevel"]
        assert told == ["warning", "info"]


async def test_a_modern_server_is_told_with_the_request() -> None:
    async with open_gateway(changing("a", "modern")) as inside:
        await list_all(inside)
        await inside.ask("tools/call", who=modern_caller(Ear(), log_level="notice"), params={"name": "a.steps"})
        call = next(each for each in await heard_by(inside) if each["params"].get("name") == "steps")
        assert call["params"]["_meta"]["io.modelcontextprotocol/logLevel"] == "notice"


async def test_an_ended_session_forgets_its_level() -> None:
    async with open_gateway(changing("a", "modern")) as inside:
        await list_all(inside)
        ear = Ear()
        await inside.ask("logging/setLevel", who=legacy_caller(ear), params={"level": "debug"})
        inside.gateway.kernel.left("s1")
        await inside.ask("tools/call", who=legacy_caller(ear), params={"name": "a.steps"})
        assert ear.of(MESSAGE) == []


@pytest.mark.parametrize("level", ["loud", 3, None])
async def test_a_level_nobody_knows_is_refused(level: Any) -> None:
    async with open_gateway() as inside:
        reply = await inside.ask("logging/setLevel", who=legacy_caller(Ear()), params={"level": level})
        assert reply.error is not None
        assert reply.error.code == -32602


async def test_a_log_message_that_could_be_anybodys_is_nobodys() -> None:
    async with open_gateway(changing("a", "legacy")) as inside:
        await list_all(inside)
        ears = [Ear() for _ in range(8)]
        who = [legacy_caller(ear, f"s{number}") for number, ear in enumerate(ears)]
        await asyncio.gather(
            *(
                inside.call("a.say", {"level": "error", "text": f"secret of {number}"}, who=caller)
                for number, caller in enumerate(who)
            )
        )
        for number, ear in enumerate(ears):
            assert all(json.dumps(message).find(f"of {number}") > 0 for message in ear.of(MESSAGE))


@pytest.mark.parametrize("subject", ["somebody else", "me"])
async def test_a_late_log_message_of_another_caller_or_session_is_not_taken_for_ones_own(subject: str) -> None:
    async with open_gateway(changing("a", "legacy")) as inside:
        await list_all(inside)
        mine, theirs = Ear(), Ear()
        await inside.call("a.say", {"level": "error", "text": "mine"}, who=legacy_caller(mine))
        other = replace(legacy_caller(theirs, "s2"), principal=Principal(subject))
        await inside.call("a.say", {"level": "error", "text": "perhaps late"}, who=other)
        assert [message["data"] for message in mine.of(MESSAGE)] == ["mine"]
        assert theirs.of(MESSAGE) == []


async def test_a_progress_token_no_progress_could_name_is_refused() -> None:
    async with open_gateway(changing("a", "legacy")) as inside:
        await list_all(inside)
        reply = await inside.ask("prompts/get", params={"name": "a.poem", "_meta": {"progressToken": {}}})
        assert reply.error is not None
        assert reply.error.code == -32602


@pytest.mark.parametrize("isolation", ["shared", "session"])
@pytest.mark.parametrize(("caller", "server"), PAIRINGS)
@pytest.mark.parametrize(("method", "params"), REQUESTS[:2])
async def test_a_caller_that_can_be_asked_hears_the_same(
    caller: str, server: str, isolation: Literal["shared", "session"], method: str, params: dict[str, Any]
) -> None:
    async with open_gateway(replace(changing("a", server), isolation=isolation)) as inside:
        await list_all(inside)
        ear = Ear()
        ear.can_ask = caller == "legacy"
        who = replace(of_era(caller, ear, "debug"), capabilities={"roots": {}})
        if who.era is Era.LEGACY:
            await inside.ask("logging/setLevel", who=who, params={"level": "debug"})
        reply = await inside.ask(method, who=who, params={**params, "_meta": {"progressToken": 7}})
        assert reply.error is None
        assert [message["data"] for message in ear.of(MESSAGE)] == ["fine print", "careful"]
        assert [told["progressToken"] for told in ear.of(PROGRESS)] == [7, 7]
