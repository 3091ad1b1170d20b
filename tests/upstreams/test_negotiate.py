"""Finding a server's era: by probe, by handshake, by what it refuses."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.protocol.versions import LATEST_LEGACY, LATEST_MODERN, Era
from pactgate.upstreams import negotiate as subject
from pactgate.upstreams.negotiate import Identity, negotiate
from pactgate.upstreams.peer import Peer
from tests.support.scripted_channel import Script, ScriptedChannel

DISCOVERED = {"supportedVersions": [LATEST_MODERN], "capabilities": {"tools": {}}, "instructions": "hi"}
AGREED = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "old", "version": "1"}}


async def meet(script: Script, era: Era | None = None) -> tuple[Identity, ScriptedChannel]:
    channel = ScriptedChannel(script)
    peer = Peer("files", channel, lambda event: None, {"name": "pactgate", "version": "0"})
    await peer.open()
    try:
        async with asyncio.timeout(5):
            return await negotiate(peer, era), channel
    finally:
        await peer.close()


def server(**answers: Any) -> Script:
    """Answers by method (slashes spelt __): a result, an exception to raise, an error dict with a code, or None for silence."""

    def script(message: dict[str, Any]) -> Any:
        answer = answers.get(message["method"].replace("/", "__"))
        if answer is None or isinstance(answer, Exception) or "id" not in message:
            return answer if isinstance(answer, Exception) else None
        return {"id": message["id"], ("error" if "code" in answer else "result"): answer}

    return script


def methods(channel: ScriptedChannel) -> list[str]:
    return [message["method"] for message in channel.sent]


async def test_a_server_that_answers_the_probe_is_modern() -> None:
    identity, channel = await meet(
        server(server__discover={**DISCOVERED, "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "n"}}})
    )
    assert (identity.era, identity.version, identity.instructions) == (Era.MODERN, LATEST_MODERN, "hi")
    assert identity.server_info == {"name": "n"}
    assert methods(channel) == ["server/discover"]
    assert channel.settled == (Era.MODERN, LATEST_MODERN)
    assert channel.sent[0]["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == LATEST_MODERN


@pytest.mark.parametrize(
    "refusal",
    [
        {"code": -32601, "message": "Method not found"},
        {"code": -32602, "message": "before initialization"},
        {"code": -32000, "message": "no session"},
        {"supportedVersions": "nonsense"},
        {"supportedVersions": ["2025-06-18"]},
        {"code": -32022, "message": "?", "data": {"supported": ["2025-11-25"], "requested": "x"}},
        GatewayFailure(Kind.HTTP_STATUS, "404", details={"status": 404}),
        GatewayFailure(Kind.HTTP_STATUS, "500", details={"status": 500}),
        GatewayFailure(Kind.INVALID_FRAME, "<html>"),
    ],
    ids=str,
)
async def test_any_other_answer_to_the_probe_means_a_handshake(refusal: Any) -> None:
    identity, channel = await meet(server(server__discover=refusal, initialize=AGREED))
    assert (identity.era, identity.version) == (Era.LEGACY, "2025-06-18")
    assert methods(channel) == ["server/discover", "initialize", "notifications/initialized"]
    assert channel.sent[1]["params"]["protocolVersion"] == LATEST_LEGACY
    assert "_meta" not in channel.sent[1]["params"]
    assert channel.settled == (Era.LEGACY, "2025-06-18")


@pytest.mark.parametrize(
    "failure",
    [
        GatewayFailure(Kind.HTTP_STATUS, "who are you", details={"status": 401}),
        GatewayFailure(Kind.CONNECTION_FAILED, "refused"),
        GatewayFailure(Kind.CONNECTION_LOST, "gone"),
    ],
    ids=lambda failure: failure.message,
)
async def test_refused_credentials_and_broken_connections_are_no_evidence_of_an_era(failure: GatewayFailure) -> None:
    with pytest.raises(GatewayFailure) as caught:
        await meet(server(server__discover=failure, initialize=AGREED))
    assert caught.value is failure


async def test_a_silent_probe_is_followed_by_a_handshake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "PROBE_TIMEOUT_S", 0.01)
    identity, channel = await meet(server(initialize=AGREED))
    assert identity.era is Era.LEGACY
    assert methods(channel)[:2] == ["server/discover", "initialize"]


async def test_a_slow_modern_server_is_recognised_even_after_the_handshake_went_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(subject, "PROBE_TIMEOUT_S", 0.01)
    waiting: list[int] = []

    def script(message: dict[str, Any]) -> Any:
        if message["method"] == "server/discover":
            waiting.append(message["id"])
        elif message["method"] == "initialize":
            return {"id": waiting[0], "result": DISCOVERED}
        return None

    identity, _ = await meet(script)
    assert identity.era is Era.MODERN


async def test_a_handshake_refused_in_favour_of_a_modern_version_is_probed_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(subject, "PROBE_TIMEOUT_S", 0.01)
    probes: list[int] = []

    def script(message: dict[str, Any]) -> Any:
        if message["method"] == "server/discover":
            probes.append(message["id"])
            return {"id": message["id"], "result": DISCOVERED} if len(probes) > 1 else None
        if message["method"] == "initialize":
            data = {"supported": [LATEST_MODERN], "requested": LATEST_LEGACY}
            return {"id": message["id"], "error": {"code": -32022, "message": "modern only", "data": data}}
        return None

    identity, _ = await meet(script)
    assert (identity.era, len(probes)) == (Era.MODERN, 2)


async def test_a_server_that_refuses_once_but_names_our_version_is_asked_again() -> None:
    probes: list[int] = []

    def script(message: dict[str, Any]) -> Any:
        probes.append(message["id"])
        if len(probes) > 1:
            return {"id": message["id"], "result": DISCOVERED}
        data = {"supported": [LATEST_MODERN], "requested": LATEST_MODERN}
        return {"id": message["id"], "error": {"code": -32022, "message": "not yet", "data": data}}

    identity, _ = await meet(script)
    assert (identity.era, len(probes)) == (Era.MODERN, 2)


@pytest.mark.parametrize("code", [-32020, -32021, -32022])
async def test_a_modern_refusal_without_a_shared_version_is_final(code: int) -> None:
    refusal = {"code": code, "message": "no", "data": {"supported": ["2031-01-01"]}}
    with pytest.raises(GatewayFailure) as caught:
        await meet(server(server__discover=refusal, initialize=AGREED))
    assert caught.value.details["permanent"] is True
    assert "2031-01-01" in caught.value.message or code != -32022


async def test_a_configured_era_is_not_second_guessed() -> None:
    identity, channel = await meet(server(server__discover=DISCOVERED, initialize=AGREED), Era.LEGACY)
    assert identity.era is Era.LEGACY
    assert "server/discover" not in methods(channel)
    with pytest.raises(GatewayFailure) as caught:
        await meet(server(server__discover={"code": -32601, "message": "no"}, initialize=AGREED), Era.MODERN)
    assert caught.value.details["permanent"] is True


@pytest.mark.parametrize(
    "answer", [{"protocolVersion": "1999-01-01"}, {"odd": True}], ids=["unknown version", "unreadable"]
)
async def test_a_handshake_we_can_not_use_is_final(answer: Any) -> None:
    with pytest.raises(GatewayFailure) as caught:
        await meet(server(initialize=answer), Era.LEGACY)
    assert caught.value.kind is Kind.CONNECTION_FAILED
    assert caught.value.details["permanent"] is True


async def test_cancelling_a_negotiation_leaves_no_task_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "PROBE_TIMEOUT_S", 0.01)
    before = len(asyncio.all_tasks())
    meeting = asyncio.create_task(meet(server()))
    await asyncio.sleep(0)
    meeting.cancel()
    await asyncio.wait({meeting})
    assert meeting.cancelled()
    assert len(asyncio.all_tasks()) == before
