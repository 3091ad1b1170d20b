from __future__ import annotations

from typing import Any

import pytest

from pactgate.core.principal import Principal
from pactgate.core.values import Caller, Silence
from pactgate.inbound.stdio_session import StdioSession
from pactgate.protocol import messages
from pactgate.protocol.messages import Notification, Rejection, Request
from pactgate.protocol.versions import LATEST_LEGACY, LATEST_MODERN, LEGACY_VERSIONS, Era
from tests.support.facing import META, initialize

CHANNEL = Silence()


def asked(method: str, params: Any = None) -> Request:
    return Request(b"1", 1, method, None if params is None else messages.encode_json(params))


def handshake(version: str = LATEST_LEGACY) -> Request:
    return asked("initialize", initialize(version)["params"])


def enveloped(method: str = "tools/list", **meta: Any) -> Request:
    return asked(method, {"_meta": {**META, **meta}})


def admitted(conversation: StdioSession, request: Request) -> Caller:
    caller = conversation.admit(request, CHANNEL)
    assert isinstance(caller, Caller), caller
    return caller


def refused(conversation: StdioSession, request: Request) -> Rejection:
    rejection = conversation.admit(request, CHANNEL)
    assert isinstance(rejection, Rejection)
    return rejection


@pytest.mark.parametrize("version", [*LEGACY_VERSIONS, "2099-01-01"])
def test_a_handshake_makes_a_conversation_legacy(version: str) -> None:
    conversation = StdioSession(Principal("local", frozenset({"admin"})))
    agreed = version if version in LEGACY_VERSIONS else LATEST_LEGACY
    caller = admitted(conversation, handshake(version))
    assert (conversation.era, conversation.version) == (Era.LEGACY, agreed)
    later = admitted(conversation, asked("tools/list"))
    for each in (caller, later):
        assert (each.era, each.version, each.client, each.capabilities) == (
            Era.LEGACY,
            agreed,
            "tests/1",
            {"roots": {}},
        )
        assert (each.principal.key, each.principal.roles, each.channel) == ("local", frozenset({"admin"}), CHANNEL)


def test_an_envelope_makes_a_conversation_modern() -> None:
    conversation = StdioSession(Principal("local"))
    caller = admitted(conversation, enveloped())
    assert (caller.era, caller.version, caller.client, caller.headers) == (Era.MODERN, LATEST_MODERN, "tests/1", None)
    assert conversation.era is Era.MODERN


def test_initialize_after_a_modern_request_is_told_which_versions_there_are() -> None:
    conversation = StdioSession(Principal("local"))
    admitted(conversation, enveloped())
    rejection = refused(conversation, handshake("2025-06-18"))
    assert rejection.code == messages.UNSUPPORTED_VERSION
    assert rejection.data == {"supported": [LATEST_MODERN], "requested": "2025-06-18"}
    odd = refused(conversation, asked("initialize", {"protocolVersion": 7}))
    assert odd.data == {"supported": [LATEST_MODERN], "requested": ""}
    assert refused(conversation, asked("initialize")).code == messages.UNSUPPORTED_VERSION


def test_an_envelope_in_a_legacy_conversation_is_refused() -> None:
    conversation = StdioSession(Principal("local"))
    admitted(conversation, handshake())
    assert refused(conversation, enveloped()).code == messages.INVALID_REQUEST
    admitted(conversation, asked("tools/list"))


def test_a_request_without_envelope_in_a_modern_conversation_is_refused() -> None:
    conversation = StdioSession(Principal("local"))
    admitted(conversation, enveloped())
    assert refused(conversation, asked("tools/list")).code == messages.INVALID_PARAMS


def test_a_refused_probe_decides_nothing() -> None:
    conversation = StdioSession(Principal("local"))
    probe = enveloped("server/discover", **{"io.modelcontextprotocol/protocolVersion": "2099-01-01"})
    assert refused(conversation, probe).code == messages.UNSUPPORTED_VERSION
    assert conversation.era is None
    admitted(conversation, handshake())


def test_nothing_but_ping_comes_before_the_handshake() -> None:
    conversation = StdioSession(Principal("local"))
    assert refused(conversation, asked("tools/list")).code == messages.INVALID_REQUEST
    assert admitted(conversation, asked("ping")).version == LATEST_LEGACY
    assert conversation.era is None


def test_a_second_handshake_is_refused_and_a_failed_one_may_be_repeated() -> None:
    conversation = StdioSession(Principal("local"))
    assert refused(conversation, asked("initialize", {})).code == messages.INVALID_PARAMS
    admitted(conversation, handshake())
    assert refused(conversation, handshake()).code == messages.INVALID_REQUEST
    conversation.reopen()
    assert (conversation.era, conversation.version) == (None, None)
    admitted(conversation, handshake())


def test_lifecycle_notifications_are_noted_and_others_passed_on() -> None:
    conversation = StdioSession(Principal("local"))
    assert not conversation.take(Notification("notifications/roots/list_changed"))
    admitted(conversation, handshake())
    assert not conversation.take(Notification("notifications/initialized"))
    assert conversation.take(Notification("notifications/roots/list_changed"))
    modern = StdioSession(Principal("local"))
    admitted(modern, enveloped())
    assert not modern.take(Notification("notifications/roots/list_changed"))
