"""What is plain is read in one pass, alone or in its answer; everything else is left to the exact readers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.protocol.messages import Response, decode_from_upstream, encode_json, encode_result
from pactgate.protocol.simple_result import is_one_text, read_plain, read_plain_answer

CONTENT = [{"type": "text", "text": "hi"}]
RESULT = {"content": CONTENT, "isError": False, "_meta": {"a": 1}}


@pytest.mark.parametrize(
    "result",
    [
        {},
        {"structuredContent": {"a": 1}},
        {"content": None},
        {"content": {}},
        {"content": CONTENT, "isError": "no"},
        {"content": CONTENT, "resultType": "task"},
        {"content": CONTENT, "ttlMs": 5},
        {"content": CONTENT, "Content": []},
        [],
        None,
    ],
)
def test_what_has_another_shape_is_not_plain(result: Any) -> None:
    assert read_plain(json.dumps(result).encode()) is None


@pytest.mark.parametrize("text", [b"", b"{", b'{"content":[]} x', b'{"content":[}'])
def test_what_is_no_json_is_not_plain(text: bytes) -> None:
    assert read_plain(text) is None


@given(
    st.integers(0, 2**53),
    st.lists(st.text(), max_size=3),
    st.none() | st.dictionaries(st.text(max_size=3), st.integers()),
)
def test_an_answer_with_a_plain_result_is_taken_apart_at_once(id_: int, texts: list[str], meta: Any) -> None:
    result = encode_json({"content": texts, **({} if meta is None else {"_meta": meta})})
    text = encode_result(b"%d" % id_, result)
    answer = read_plain_answer(text)
    assert answer is not None
    assert answer == (id_, result, read_plain(result))
    assert decode_from_upstream(text) == Response(id_, result)


@pytest.mark.parametrize(
    "text",
    [
        b'{"jsonrpc":"2.0","id":1, "result":{"content":[]}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"content":[]}} ',
        b'{"id":1,"jsonrpc":"2.0","result":{"content":[]}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"content":[]},"more":1}',
        b'{"jsonrpc":"2.0","id":1,"result":{"content":[],"more":1}}',
        b'{"jsonrpc":"2.0","id":1.0,"result":{"content":[]}}',
        b'{"jsonrpc":"2.0","id":"1","result":{"content":[]}}',
        b'{"jsonrpc":"2.0","id":-1,"result":{"content":[]}}',
        b'{"jsonrpc":"2.0","id":%b,"result":{"content":[]}}' % (b"9" * 30),
        b'{"jsonrpc":"2.0","id":%b,"result":{"content":[]}}' % (b"9" * 4299),
        b'{"jsonrpc":"2.0","id":%b,"result":{"content":[]}}' % (b"9" * 4350),
        b'{"jsonrpc":"2.0","id":01,"result":{"content":[]}}',
        b'{"jsonrpc":"2.1","id":1,"result":{"content":[]}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"content":{}}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"content":[]}',
        b'{"jsonrpc":"2.0","id":1,"result":{"content":[]}}}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}',
    ],
)
def test_any_other_answer_is_left_to_the_exact_reader(text: bytes) -> None:
    assert read_plain_answer(text) is None


@pytest.mark.parametrize(
    ("content", "is_one"),
    [
        (b'[{"type":"text","text":"x"}]', True),
        (b'[{"type":"text","text":"x"},{"type":"text","text":"y"}]', False),
        (b'[{"type":"text","text":"{"}]', False),
        (b'[{"type":"resource_link","uri":"a:b"}]', False),
        (b'[{"text":"x","type":"text"}]', False),
        (b"[]", False),
    ],
)
def test_a_single_text_is_told_at_a_glance_and_anything_doubtful_is_not_one(content: bytes, is_one: bool) -> None:
    for rest in (b"", b',"_meta":{"a":{}}'):
        result = b'{"content":%b%b}' % (content, rest)
        plain = read_plain(result)
        assert plain is not None
        assert is_one_text(result, plain) is is_one
    behind = b'{"isError":false,"content":%b}' % content
    plain = read_plain(behind)
    assert plain is not None
    assert not is_one_text(behind, plain)


def test_what_is_read_is_what_was_written() -> None:
    plain = read_plain(json.dumps(RESULT).encode())
    assert plain is not None
    assert json.loads(bytes(plain.content)) == CONTENT
    assert plain.is_error is False
