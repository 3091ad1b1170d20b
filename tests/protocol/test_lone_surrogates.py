"""Half a surrogate pair in what a server says: the rest of the message is not lost for it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.protocol.lone_surrogates import replace_lone_surrogates
from pactgate.protocol.messages import Rejection, Response
from pactgate.protocol.own_meta import decode_without_own_meta


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        (rb'"\ud83d"', rb'"\ufffd"'),
        (rb'"\uDE00 low"', rb'"\ufffd low"'),
        (rb'"\ud83d\ude00"', rb'"\ud83d\ude00"'),
        (rb'"\ud83d\ud83d\ude00"', rb'"\ufffd\ud83d\ude00"'),
        (rb'"\ude00\ud83d"', rb'"\ufffd\ufffd"'),
        (rb'"\\ud83d"', rb'"\\ud83d"'),
        (rb'"\\\ud83d"', rb'"\\\ufffd"'),
        (rb'"\ud83d\n"', rb'"\ufffd\n"'),
        (b'"plain"', b'"plain"'),
    ],
)
def test_only_half_a_pair_is_replaced(text: bytes, becomes: bytes) -> None:
    assert replace_lone_surrogates(text) == becomes


@given(st.text(st.characters(codec=None)))
def test_every_string_keeps_its_length_and_all_of_its_characters_but_lone_surrogates(text: str) -> None:
    written = json.dumps(text).encode()
    replaced = replace_lone_surrogates(written)
    assert len(replaced) == len(written)
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert json.loads(replaced).count("�") >= whole.count("�")
    if text.isascii():
        assert replaced is written


@pytest.mark.parametrize("where", ['"isError":false,"note":"%s"', '"structuredContent":{"half":"%s"}'])
def test_a_result_with_half_a_pair_arrives(where: str) -> None:
    result = '{"content":[],' + where % "half \\ud83d." + "}"
    message = decode_without_own_meta(f'{{"jsonrpc":"2.0","id":7,"result":{result}}}'.encode())
    assert isinstance(message, Response)
    assert json.loads(message.result) == json.loads(result.replace("\\ud83d", "\\ufffd"))


def test_half_a_pair_does_not_let_a_server_speak_in_our_name() -> None:
    meta = '"_meta":{"dev.pactgate/envelope":{},"own":1}'
    frame = f'{{"jsonrpc":"2.0","id":7,"result":{{"content":[{{"type":"text","text":"\\udc00"}}],{meta}}}}}'
    message = decode_without_own_meta(frame.encode())
    assert isinstance(message, Response)
    assert json.loads(message.result)["_meta"] == {"own": 1}


def test_what_is_broken_otherwise_stays_refused() -> None:
    assert isinstance(decode_without_own_meta(rb'{"jsonrpc":"2.0","id":7,"result":{"a":"\ud83d"'), Rejection)
