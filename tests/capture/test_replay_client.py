"""A recorded session played at a live server, across eras."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from pactgate.capture.format import read
from pactgate.capture.replay_client import ReplayClient, ReplayedCall
from pactgate.capture.replay_server import RecordedCall, recorded_in
from pactgate.conformance.live import record_live
from pactgate.conformance.probe import ProbeTarget, connected
from pactgate.protocol.versions import Era

SERVER = Path(__file__).parent.parent / "support" / "stdio_upstream.py"


def target(**options: Any) -> ProbeTarget:
    return ProbeTarget(command=(sys.executable, str(SERVER), json.dumps(options)))


async def recorded(folder: Path, spoken: Era, **options: Any) -> list[RecordedCall]:
    path = folder / "capture.json"
    await record_live(target(**options), path, label="x", era=spoken)
    return [each for session in read([path.read_bytes()]) for each in recorded_in(session)]


async def play(session: list[RecordedCall], **options: Any) -> list[ReplayedCall]:
    async with connected(target(**options), None, 5) as live:
        return await ReplayClient(live, 5).play(session)


@pytest.mark.parametrize("before", ["legacy", "modern"])
@pytest.mark.parametrize("after", ["legacy", "modern"])
async def test_the_same_server_is_the_same_in_either_era(tmp_path: Path, before: str, after: str) -> None:
    session = await recorded(tmp_path, Era(before), era="dual", pages=3, resources=["test://r"])
    played = await play(session, era=after, pages=3, resources=["test://r"])
    found = {difference.pointer for each in played for difference in each.differences}
    # This server gives instructions in its handshake and none in its discovery: a difference that is there.
    assert found == (set() if before == after else {"/result/instructions"})
    skipped = {each.method for each in played if each.skipped} - {"subscriptions/listen"}  # which is never played
    assert skipped == ({"ping"} if (before, after) == ("legacy", "modern") else set())


async def test_a_tool_that_is_gone_is_a_difference_with_its_place(tmp_path: Path) -> None:
    session = await recorded(tmp_path, Era.LEGACY, tools=["extra"])
    differing = [each for each in await play(session) if not each.is_same]
    assert {(each.method, *[d.pointer for d in each.differences]) for each in differing} == {
        ("tools/list", "/result/tools/extra")
    }


async def test_a_server_that_dies_or_never_answers_is_a_difference_and_not_a_hang(tmp_path: Path) -> None:
    session = await recorded(tmp_path, Era.LEGACY)
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "slow", "arguments": {"ms": 60_000}}}
    late = RecordedCall(99, call, {"jsonrpc": "2.0", "id": 1, "result": {"content": []}})
    async with connected(target(), None, 5) as live:
        played = await ReplayClient(live, 0.2).play([session[0], late])
    assert played[0].is_same
    assert "no answer within" in str(played[1].differences)
