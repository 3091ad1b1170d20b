"""What a server answered is given to each caller in the words of its era, with nothing else changed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.pipeline.forwarded_result import ForwardedResult, fit_prompt, refused_with, shape, with_full_uris
from pactgate.protocol.messages import ErrorReply, encode_json
from pactgate.protocol.versions import LATEST_LEGACY, LATEST_MODERN, Era
from pactgate.upstreams.peer import UpstreamReplyError
from tests.support.callers import caller

READ = "resources/read"
INFO = b'{"name":"gate"}'


def shaped(members: dict[str, Any], era: Era, revision: str = LATEST_MODERN, **more: Any) -> dict[str, Any]:
    answer = ForwardedResult(encode_json(members), revision, **more)
    result: dict[str, Any] = json.loads(shape(answer, READ, caller(era), INFO))
    return result


def test_a_legacy_caller_gets_a_legacy_answer_as_it_is_and_a_modern_one_without_its_marks() -> None:
    assert shaped({"contents": [], "ttlMs": 1}, Era.LEGACY, LATEST_LEGACY) == {"contents": [], "ttlMs": 1}
    assert shaped({"contents": [], "odd": None, "ttlMs": 1, "resultType": "complete"}, Era.LEGACY) == {
        "contents": [],
        "odd": None,
    }


@pytest.mark.parametrize(
    ("said", "remaining_ms", "shown"),
    [
        ({}, None, (0, "private")),
        ({"ttlMs": 900, "cacheScope": "public"}, None, (900, "public")),
        ({"ttlMs": 900, "cacheScope": "public"}, 40, (40, "public")),
        ({"ttlMs": 900, "cacheScope": "odd"}, None, (900, "private")),
        ({"ttlMs": "soon"}, None, (0, "private")),
    ],
)
def test_a_modern_caller_is_told_what_is_left_of_the_time(
    said: dict[str, Any], remaining_ms: int | None, shown: tuple[int, str]
) -> None:
    result = shaped({"contents": [], **said}, Era.MODERN, remaining_ms=remaining_ms)
    assert (result["ttlMs"], result["cacheScope"]) == shown


def test_a_round_has_no_time_to_keep_it_for() -> None:
    result = shaped({"resultType": "input_required", "inputRequests": {}, "requestState": "s"}, Era.MODERN)
    assert result.keys() == {"resultType", "inputRequests", "requestState", "_meta"}


def test_uris_lead_back_to_their_server_on_the_merged_path_only() -> None:
    link = {"type": "resource_link", "uri": "file:///a", "name": "a"}
    result = encode_json({"messages": [{"role": "user", "content": link}]})
    for scope, uri in ((None, "files+file:///a"), ("files", "file:///a")):
        fitted = json.loads(fit_prompt(result, "files", replace(caller(Era.MODERN), scope=scope)))
        assert fitted["messages"][0]["content"] == {**link, "uri": uri}


def test_a_prompt_without_messages_is_left_alone() -> None:
    result = b'{"inputRequests":{"q":{"params":{"text":"\\"audio\\"","type":"audio"}}}}'
    assert json.loads(fit_prompt(result, "files", caller())) == json.loads(result)


@pytest.mark.parametrize("result", [b"{}", b'{"contents":[{}]}', b'{"contents":[{"uri":1}]}', b'{"contents":{}}'])
def test_contents_without_uris_are_the_servers_mistake(result: bytes) -> None:
    with pytest.raises(GatewayFailure) as raised:
        with_full_uris(result, "files")
    assert raised.value.kind is Kind.MALFORMED_RESULT


@pytest.mark.parametrize(
    ("code", "era", "kind", "number"),
    [
        (-32002, Era.LEGACY, Kind.UPSTREAM_ERROR, -32002),
        (-32002, Era.MODERN, Kind.UPSTREAM_ERROR, -32602),
        (-32021, Era.MODERN, Kind.MISSING_CAPABILITY, -32021),
        (-32042, Era.LEGACY, Kind.UPSTREAM_ERROR, -32042),
        (-32042, Era.MODERN, Kind.UPSTREAM_ERROR, -32603),
        (-32020, Era.MODERN, Kind.UPSTREAM_ERROR, -32603),
        (7, Era.MODERN, Kind.UPSTREAM_ERROR, 7),
    ],
)
def test_a_refusal_has_the_code_its_caller_knows_and_says_what_the_server_said(
    code: int, era: Era, kind: Kind, number: int
) -> None:
    reply = ErrorReply(1, code, "no", b'{"uri":"file:///a"}')
    failure = refused_with(UpstreamReplyError("files", READ, reply), caller(era), READ)
    assert (failure.kind, failure.number) == (kind, number)
    if number != -32603:
        assert failure.message == "no"
        assert failure.details["uri"] == "file:///a"
