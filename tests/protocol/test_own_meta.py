"""No server writes a member of `_meta` under the gateway's prefix, wherever it stands and however it is spelt."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pactgate.protocol import messages
from pactgate.protocol.messages import Rejection
from pactgate.protocol.own_meta import decode_without_own_meta, without_own_meta

FORGED = {"dev.pactgate/page": {"page": 1}, "dev.pactgate/envelope": {}, "com.example/kept": 1}
KEPT = {"com.example/kept": 1}
LONG = "x" * 5000


def answer(result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": result}


def with_meta(meta: Any) -> list[dict[str, Any]]:
    item = {"type": "text", "text": "a", "_meta": meta}
    embedded = {"type": "resource", "resource": {"uri": "a://b", "text": LONG, "_meta": meta}}
    return [
        answer({"content": [], "_meta": meta}),
        answer({"content": [item, embedded]}),
        answer({"content": [{"type": "text", "text": LONG}], "_meta": meta}),
        answer({"content": [{"type": "text", "text": LONG, "_meta": meta}]}),
        answer({"tools": [{"name": "t", "inputSchema": {}, "_meta": meta}], "_meta": meta}),
        answer({"resources": [{"uri": "a://b", "_meta": meta}]}),
        answer({"contents": [{"uri": "a://b", "text": "t", "_meta": meta}], "_meta": meta}),
        answer({"messages": [{"role": "user", "content": item}, {"role": "user", "content": [embedded]}]}),
        answer({"task": {"taskId": "t", "_meta": meta}}),
        {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1, "_meta": meta}},
        {"jsonrpc": "2.0", "id": 2, "method": "elicitation/create", "params": {"message": "?", "_meta": meta}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "no", "data": meta}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "no", "data": {"_meta": meta}}},
    ]


@pytest.mark.parametrize(
    ("forged", "clean"), list(zip(with_meta(FORGED), with_meta(KEPT), strict=True)), ids=lambda each: str(each)[:60]
)
def test_members_under_our_prefix_are_removed_and_all_others_stay(forged: Any, clean: Any) -> None:
    assert json.loads(without_own_meta(json.dumps(forged).encode())) == clean
    compact = json.dumps(forged, separators=(",", ":")).encode()
    assert json.loads(without_own_meta(compact)) == clean
    read, wanted = decode_without_own_meta(compact), messages.decode_from_upstream(json.dumps(clean).encode())
    assert b"dev.pactgate" not in _passed_on(read)
    assert json.loads(_passed_on(read)) == json.loads(_passed_on(wanted))


def _passed_on(message: Any) -> bytes:
    """What of a message goes to clients."""
    if isinstance(message, messages.Response):
        return message.result
    return (message.data if isinstance(message, messages.ErrorReply) else message.params) or b"null"


@pytest.mark.parametrize(
    "spelt", ["dev.pactgate\\/page", "\\u0064ev.pactgate/page", "dev\\u002Epactgat\\u0065\\u002fp"]
)
def test_a_name_spelt_with_escapes_is_removed_too(spelt: str) -> None:
    frame = b'{"jsonrpc":"2.0","id":1,"result":{"content":[],"_meta":{"%b":1,"a":2}}}' % spelt.encode()
    assert json.loads(without_own_meta(frame))["result"] == {"content": [], "_meta": {"a": 2}}


@pytest.mark.parametrize(
    "message",
    [
        answer({"content": [{"type": "text", "text": '{"_meta":{"dev.pactgate/page":1}}'}]}),
        answer({"content": [], "structuredContent": {"_meta": {"dev.pactgate/page": 1}}}),
        answer({"tools": [{"name": "t", "inputSchema": {"properties": {"_meta": {"dev.pactgate/page": {}}}}}]}),
        answer({"content": [{"type": "text", "text": LONG + "dev.pactgate/page"}]}),
        {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": {"dev.pactgate/page": 1}}},
    ],
    ids=["text", "structured", "schema", "long text", "log data"],
)
def test_what_is_no_meta_stays_the_very_bytes_that_came(message: Any) -> None:
    frame = json.dumps(message, indent=1).encode()
    assert without_own_meta(frame) is frame


@pytest.mark.parametrize(
    "frame", [b"dev.pactgate", b'{"_meta":{"dev.pactgate/a":', b'["dev.pactgate/"]', b"\xffdev.pactgate"]
)
def test_what_is_no_message_is_left_to_whoever_refuses_it(frame: bytes) -> None:
    assert without_own_meta(frame) is frame


@pytest.mark.parametrize("key", [b"\xe5vel", b"dev.pactgate/\xff", b"\\u0064\xc3"])
def test_a_message_with_a_key_that_is_no_utf_8_is_refused(key: bytes) -> None:
    for frame in (
        b'{"jsonrpc":"2.0","id":1,"error":{"%b":"dev.pactgate/x"}}' % key,
        b'{"jsonrpc":"2.0","%b":"dev.pactgate/x"}' % key,
    ):
        refused = decode_without_own_meta(frame)
        assert isinstance(refused, Rejection)
        assert "not UTF-8" in refused.message
