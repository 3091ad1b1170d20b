"""The scripted session with a live server."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from pactgate.conformance.probe import UNKNOWN_METHOD, ProbeTarget, connected, is_harmless, probe
from pactgate.core.failures import GatewayFailure
from pactgate.protocol.versions import Era
from tests.capture.taps import Noted

SERVER = Path(__file__).parent.parent / "support" / "stdio_upstream.py"


def target(**options: Any) -> ProbeTarget:
    return ProbeTarget(command=(sys.executable, str(SERVER), json.dumps(options)))


async def asked(spoken: Era | None, **options: Any) -> list[str]:
    tap = Noted()
    await probe(target(**options), lambda _server, _transport: tap, era=spoken, timeout_s=5)
    assert tap.is_closed
    return [json.loads(text)["method"] for text, from_client in tap.passed_texts if from_client]


async def test_a_legacy_server_is_introduced_to_listed_pinged_and_asked_for_the_unknown() -> None:
    methods = await asked(None, era="legacy", pages=4, prompts=["p"], resources=["test://r"])
    assert methods == [
        "initialize",
        "notifications/initialized",
        *["tools/list"] * 3,
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "ping",
        UNKNOWN_METHOD,
        "resources/read",
        "prompts/get",
    ]


async def test_a_modern_server_is_not_pinged_and_the_probe_of_its_era_is_not_in_the_record() -> None:
    assert await asked(None, era="modern") == ["server/discover", "tools/list", UNKNOWN_METHOD]


@pytest.mark.parametrize("era", list(Era))
async def test_a_server_of_both_eras_is_asked_in_the_one_that_is_wanted(era: Era) -> None:
    first = {Era.LEGACY: "initialize", Era.MODERN: "server/discover"}[era]
    assert (await asked(era, era="dual"))[0] == first


async def test_only_tools_that_say_they_read_and_need_nothing_are_called() -> None:
    schema = {"type": "object"}
    definitions = [
        {"name": "reads", "inputSchema": schema, "annotations": {"readOnlyHint": True}},
        {"name": "writes", "inputSchema": schema},
        {"name": "needs", "inputSchema": {**schema, "required": ["x"]}, "annotations": {"readOnlyHint": True}},
    ]
    assert [is_harmless(definition) for definition in definitions] == [True, False, False]
    methods = await asked(None, era="legacy", definitions=definitions)
    assert methods.count("tools/call") == 1


async def test_lists_that_are_refused_or_never_end_do_not_end_the_probe() -> None:
    assert "ping" in await asked(None, era="legacy", broken_lists=["tools/list"])
    assert (await asked(None, era="legacy", pages=2, loop_cursor=True)).count("tools/list") <= 60


async def test_a_server_that_does_not_answer_is_given_up() -> None:
    with pytest.raises(GatewayFailure, match=r"within 0\.5 s"):
        async with connected(target(hang="handshake", era="legacy"), Era.LEGACY, 0.5):
            pass


async def test_a_program_that_is_not_there_is_said() -> None:
    with pytest.raises(GatewayFailure, match="not found on PATH"):
        async with connected(ProbeTarget(command=("no-such-program",)), None, 5):
            pass
