"""The console shows captures and what the commands say of them, and nothing else of the file system."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pactgate.capture.capture_files import captures_in
from pactgate.core.failures import GatewayFailure
from pactgate.inbound import console_captures
from pactgate.inbound.console_captures import ConsoleCaptures
from tests.support.eventually import eventually
from tests.support.processes import running_children

NAME = "20261119T200000Z-0001-callers-pactgate-mcp.json"
OTHER = "20261119T200001Z-0002-callers-pactgate-mcp.json"


def session(answer: str, method: str = "tools/list") -> dict[str, Any]:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    return {
        "server_label": "pactgate/mcp",
        "leg": "callers",
        "exchanges": [
            {
                "request": {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}},
                "response": {"jsonrpc": "2.0", "id": 1, "result": discovered()},
            },
            {
                "request": {"jsonrpc": "2.0", "id": 2, "method": method, "params": {"_meta": meta}},
                "response": {
                    "jsonrpc": "2.0",
                    "id": 2,
                    "result": {"resultType": "complete", "tools": [], "note": answer},
                },
            },
        ],
    }


def discovered() -> dict[str, Any]:
    versions = ["2026-07-28"]
    return {
        "resultType": "complete",
        "supportedVersions": versions,
        "capabilities": {"tools": {}},
        "ttlMs": 0,
        "cacheScope": "private",
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / NAME).write_text(json.dumps(session("one")))
    (tmp_path / OTHER).write_text(json.dumps(session("two")))
    (tmp_path / "secrets.json").write_text("{}")
    return tmp_path


def shelf(folder: Path | None) -> ConsoleCaptures:
    return ConsoleCaptures(None if folder is None else str(folder), lambda count, keeps: [])


async def test_the_captures_are_listed_the_newest_first(folder: Path) -> None:
    facts = json.loads(await shelf(folder).listing())
    assert facts["isRecording"]
    assert [row["name"] for row in facts["captures"]] == [OTHER, NAME]
    row = facts["captures"][1]
    assert (row["leg"], row["label"], row["isOpen"]) == ("callers", "pactgate-mcp", False)
    assert row["startedAt"] == datetime(2026, 11, 19, 20, tzinfo=UTC).isoformat()


async def test_a_capture_that_makes_room_while_they_are_listed_is_left_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = folder / "20261119T200002Z-0003-callers-pactgate-mcp.json"
    monkeypatch.setattr(console_captures, "captures_in", lambda folder: [*captures_in(folder), gone])
    rows = json.loads(await shelf(folder).listing())["captures"]
    assert [row["name"] for row in rows] == [OTHER, NAME]


async def test_only_captures_can_be_read(folder: Path) -> None:
    assert json.loads(await shelf(folder).read(NAME))["server_label"] == "pactgate/mcp"
    for name in ("secrets.json", "../secrets.json", "..", "", f"{NAME}/x", "/etc/passwd", "-"):
        for ask in (shelf(folder).read, shelf(folder).check):
            with pytest.raises(GatewayFailure, match="no such capture"):
                await ask(name)


async def test_where_nothing_is_recorded_it_says_what_to_do() -> None:
    assert json.loads(await shelf(None).listing()) == {"isRecording": False, "captures": []}
    with pytest.raises(GatewayFailure, match=r"capture\.dir"):
        await shelf(None).of_calls(lambda row: True)


async def test_the_checker_and_the_comparison_say_what_the_commands_print(folder: Path) -> None:
    report = json.loads(await shelf(folder).check(NAME))
    assert (report["schema_version"], report["sessions"][0]["server_label"]) == (1, "pactgate/mcp")
    compared = json.loads(await shelf(folder).compare(NAME, OTHER))
    (changed,) = [one for one in compared["requests"] if one["differences"]]
    assert (changed["method"], changed["differences"][0]["pointer"]) == ("tools/list", "/result/note")


async def test_a_capture_that_can_not_be_compared_says_why(folder: Path) -> None:
    (folder / OTHER).write_text("[]")
    with pytest.raises(GatewayFailure, match=r"sessions|used"):
        await shelf(folder).compare(NAME, OTHER)


async def test_a_question_that_is_given_up_leaves_no_process(folder: Path) -> None:
    before = set(running_children())
    asking = asyncio.create_task(shelf(folder).check(NAME))
    await eventually(lambda: set(running_children()) != before)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await eventually(lambda: set(running_children()) == before)
