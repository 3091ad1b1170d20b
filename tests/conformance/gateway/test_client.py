"""The scripted client against the scripted server: texts pass unchanged, silence has an end."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pactgate.conformance.gateway.client import ClientError, ScriptedClient
from pactgate.conformance.gateway.fleet import Fleet
from pactgate.conformance.gateway.recording import Frame
from pactgate.conformance.gateway.script import Scenario, ScriptedTool, ScriptStep
from pactgate.upstreams.http.client import HttpClient


class Odd(Scenario):
    """One tool that answers, one that asks, one that is silent."""

    tools = (
        ScriptedTool("odd_@", result='"content":[],"n":1e400'),
        ScriptedTool("ask_@", steps=(ScriptStep("ask", data='{"q":{"method":"roots/list"}}'),)),
        ScriptedTool("hang_@", steps=(ScriptStep("hang"),)),
    )


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[Fleet]:
    fleet = Fleet(tmp_path, [Odd], ("lh", "mh"))
    await fleet.start()
    yield fleet
    await fleet.close()


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    http = HttpClient()
    yield http
    await http.close()


@pytest.mark.parametrize(("era", "tag"), [("legacy", "lh"), ("modern", "mh")])
async def test_texts_pass_as_they_are_in_both_directions(era: str, tag: str, fleet: Fleet, http: HttpClient) -> None:
    client, frames = ScriptedClient(http, fleet.urls[tag], era), list[Frame]()
    await client.open(frames.append)
    got = await client.call(frames.append, f"odd_{tag}", '{"zebra":1.0,"n":1e400}')
    assert '"n":1e400' in got.data
    assert any('{"zebra":1.0,"n":1e400}' in frame.data for frame in fleet.logs.about({f"odd_{tag}"}))
    assert [frame.is_sent for frame in frames[-2:]] == [True, False]
    await client.close()


async def test_a_question_on_the_stream_is_answered_with_the_text_prepared(fleet: Fleet, http: HttpClient) -> None:
    client, frames = ScriptedClient(http, fleet.urls["lh"], "legacy", capabilities='{"roots":{}}'), list[Frame]()
    await client.open(frames.append)
    client.answers = {"roots/list": '"result":{"roots":[]}'}
    assert '"ok"' in (await client.call(frames.append, "ask_lh")).data
    assert '"result":{"roots":[]}' in fleet.logs.about({"ask_lh"})[-2].data
    await client.close()


async def test_an_input_required_result_is_answered_by_another_call_with_its_state(
    fleet: Fleet, http: HttpClient
) -> None:
    client, frames = ScriptedClient(http, fleet.urls["mh"], "modern", capabilities='{"roots":{}}'), list[Frame]()
    client.answers = {"roots/list": '"result":{"roots":[]}'}
    assert '"ok"' in (await client.call_and_answer(frames.append, "ask_mh")).data
    asked, again = (json.loads(frame.data) for frame in frames[1:3])
    assert again["params"]["inputResponses"] == {"q": {"roots": []}}
    assert again["params"]["requestState"] == asked["result"]["requestState"]
    assert again["id"] == 2


async def test_a_client_that_can_not_be_asked_gets_an_error_with_what_it_lacks(fleet: Fleet, http: HttpClient) -> None:
    client, frames = ScriptedClient(http, fleet.urls["mh"], "modern"), list[Frame]()
    got = await client.call_and_answer(frames.append, "ask_mh")
    error = json.loads(got.data)["error"]
    assert (got.status, error["code"], error["data"]) == (400, -32021, {"requiredCapabilities": {"roots": {}}})


async def test_silence_ends_with_a_message_that_says_so(fleet: Fleet, http: HttpClient) -> None:
    client, frames = ScriptedClient(http, fleet.urls["mh"], "modern"), list[Frame]()
    got = await client.request(frames.append, "tools/call", '"name":"hang_mh"', name="hang_mh", timeout_s=0.1)
    assert (got.data, got.label) == ("", "hang_mh: no answer within 0.1 s")


async def test_a_server_of_another_era_is_told_from_its_answer(fleet: Fleet, http: HttpClient) -> None:
    with pytest.raises(ClientError):
        await ScriptedClient(http, fleet.urls["mh"], "legacy").open(lambda frame: None)
