"""What a probe asks a server, whatever the transport."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from pactgate.conformance.check import check_capture
from pactgate.conformance.live import record_live
from pactgate.conformance.probe import ProbeTarget, probe
from pactgate.conformance.probe_script import MAX_UNANSWERED, UNKNOWN_METHOD, UNKNOWN_NAME, UNKNOWN_VERSION
from pactgate.conformance.rule import CheckStatus
from pactgate.protocol.modern import PROTOCOL_VERSION_KEY
from pactgate.protocol.versions import LATEST_MODERN, Era
from tests.capture.taps import Noted

SUPPORT = Path(__file__).parent.parent / "support"
ALMANAC = ProbeTarget(
    command=(sys.executable, "-m", "pactgate.demo.almanac"), calls=(("date_facts", {"date": "2026-11-16"}),)
)


def target(*calls: tuple[str, dict[str, Any]], **options: Any) -> ProbeTarget:
    return ProbeTarget(command=(sys.executable, str(SUPPORT / "stdio_upstream.py"), json.dumps(options)), calls=calls)


class Taps:
    """The recorders of the connections of a probe, in order."""

    def __init__(self) -> None:
        self.all: list[Noted] = []

    def __call__(self, _server: str, _transport: str) -> Noted:
        self.all.append(Noted())
        return self.all[-1]


async def sessions(spoken: Era | None, *calls: tuple[str, dict[str, Any]], **options: Any) -> list[list[Any]]:
    """The messages of the client, by session."""
    taps = Taps()
    await probe(target(*calls, **options), taps, era=spoken, timeout_s=5)
    assert all(tap.is_closed for tap in taps.all)
    return [[json.loads(text) for text, from_client in tap.passed_texts if from_client] for tap in taps.all]


async def asked(spoken: Era | None, **options: Any) -> list[str]:
    return [message["method"] for message in (await sessions(spoken, **options))[0]]


async def test_a_legacy_server_is_asked_what_a_good_and_what_a_wrong_client_asks() -> None:
    methods = await asked(None, era="legacy", pages=4, prompts=["p"], resources=["test://r"])
    assert methods[:9] == [
        "initialize",
        "notifications/initialized",
        *["tools/list"] * 3,
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
    ]
    assert {"prompts/get", "tools/call", "ping", UNKNOWN_METHOD, "notifications/cancelled"} <= set(methods)
    assert methods[-1].endswith("/list"), "lists are compared at the end"


async def test_a_legacy_server_is_asked_for_a_version_that_does_not_exist_in_a_session_of_its_own() -> None:
    first, second = await sessions(None, era="legacy")
    assert [message["method"] for message in second] == ["initialize"]
    assert first[0]["params"]["protocolVersion"] != second[0]["params"]["protocolVersion"] == UNKNOWN_VERSION


async def test_a_modern_server_is_not_pinged_and_the_probe_of_its_era_is_not_in_the_record() -> None:
    (messages,) = await sessions(None, era="modern")
    methods = [message["method"] for message in messages]
    assert methods[:2] == ["server/discover", "tools/list"]
    assert "ping" not in methods
    versions = {message["params"]["_meta"][PROTOCOL_VERSION_KEY] for message in messages if "id" in message}
    assert versions == {LATEST_MODERN, UNKNOWN_VERSION}


@pytest.mark.parametrize("era", list(Era))
async def test_a_server_of_both_eras_is_asked_in_the_one_that_is_wanted(era: Era) -> None:
    first = {Era.LEGACY: "initialize", Era.MODERN: "server/discover"}[era]
    assert (await asked(era, era="dual"))[0] == first


async def test_no_tool_is_called_that_the_operator_did_not_name() -> None:
    schema = {"type": "object", "properties": {"place": {"type": "string"}, "days": {"type": "array"}}}
    reads = {"annotations": {"readOnlyHint": True}}
    definitions: list[dict[str, Any]] = [{"name": name, "inputSchema": schema, **reads} for name in ("named", "other")]
    definitions.append({"name": "writer", "inputSchema": schema})
    unnamed = (await sessions(None, era="legacy", definitions=definitions))[0]
    assert {name for name, _ in calls_in(unnamed)} == {UNKNOWN_NAME, "42"}
    named = (await sessions(None, ("named", {"place": "here"}), era="legacy", definitions=definitions))[0]
    made = [arguments for name, arguments in calls_in(named) if name == "named"]
    assert made[0] == {"place": "here"}
    assert [type(arguments["place"]) for arguments in made] == [str, dict], (
        "once more, with an argument of a wrong type"
    )
    assert {name for name, _ in calls_in(named)} == {UNKNOWN_NAME, "42", "named"}
    writing = (await sessions(None, ("writer", {"place": "here"}), era="legacy", definitions=definitions))[0]
    assert [arguments for name, arguments in calls_in(writing) if name == "writer"] == [{"place": "here"}], (
        "a tool that may write gets no wrong argument: the server may not look at it"
    )


async def test_a_server_that_answers_nothing_is_asked_no_more() -> None:
    """It answers nothing but `initialize`."""
    about = {"capabilities": {"tools": {}, "prompts": {}, "resources": {}}, "serverInfo": {"name": "s", "version": "1"}}
    opened = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-11-25", **about}})
    server = f"import sys; sys.stdin.readline(); print({opened!r}, flush=True); sys.stdin.read()"
    taps = Taps()
    await probe(ProbeTarget(command=(sys.executable, "-c", server)), taps, era=Era.LEGACY, timeout_s=0.5)
    asked_for = [json.loads(text).get("method") for text, from_client in taps.all[0].passed_texts if from_client]
    assert asked_for.count("tools/call") == 0
    assert len([method for method in asked_for if method.endswith("/list")]) == MAX_UNANSWERED


def calls_in(messages: list[Any]) -> list[tuple[str, Any]]:
    return [
        (str(message["params"]["name"]), message["params"].get("arguments"))
        for message in messages
        if message["method"] == "tools/call"
    ]


async def test_requests_overlap_with_ids_of_both_types() -> None:
    (messages, _) = await sessions(None, era="legacy")
    pings = [type(message["id"]) for message in messages if message["method"] == "ping"]
    assert pings.count(str) == 1
    assert pings.count(int) >= 4


async def test_lists_that_are_refused_or_never_end_do_not_end_the_probe() -> None:
    assert "ping" in await asked(None, era="legacy", broken_lists=["tools/list"])
    assert (await asked(None, era="legacy", pages=2, loop_cursor=True)).count("tools/list") <= 120


async def findings(path: Path, server: ProbeTarget, era: Era = Era.LEGACY) -> dict[str, CheckStatus]:
    await record_live(server, path, label="x", era=era)
    (session,) = check_capture(path, rules="all").sessions
    return {result.code: result.status for result in session.results}


async def test_a_good_server_passes_and_few_rules_are_not_applicable(tmp_path: Path) -> None:
    found = await findings(tmp_path / "capture.json", ALMANAC)
    assert [code for code, status in found.items() if status is CheckStatus.FAIL] == []
    assert 3 * list(found.values()).count(CheckStatus.NOT_APPLICABLE) <= len(found)


async def test_a_server_that_serves_what_it_should_refuse_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pactgate.conformance.probe._SINGLE_S", 0.5)  # the server answers one request under another id
    rude = ProbeTarget(command=(sys.executable, str(SUPPORT / "rude_upstream.py")), calls=(("tell", {"what": "x"}),))
    found = await findings(tmp_path / "capture.json", rude)
    assert {code for code, status in found.items() if status is CheckStatus.FAIL} == {
        "INV-007",  # the unknown method
        "GW-004",  # a response with another id, where the id was a string
        "GW-006",  # and so a request without a response
        "GW-007",  # the unknown version
        "GW-042",  # the argument of a wrong type
        "GW-047",  # the unknown cursor
        "GW-051",  # the ping
        "GW-052",  # the unknown tool
        "GW-053",  # the name and the cursor of a wrong type
        "LINT-001",
        "LINT-002",
        "LINT-003",
    }


async def test_the_wrong_requests_of_a_probe_are_not_held_against_the_server(tmp_path: Path) -> None:
    """The same messages from an ordinary client are the client's fault."""
    path = tmp_path / "capture.json"
    await record_live(ALMANAC, path, label="x")
    recorded = json.loads(path.read_text())
    assert {session["leg"] for session in recorded} == {"probe"}
    assert check_capture(path, rules="all", fail_on="should").passed
    report = check_capture([{**recorded[0], "leg": "session"}], rules="all", fail_on="should")
    assert {"GW-024", "GW-047"} <= {result.code for _, result in report.failures()}
