"""What is simple is read in one pass, alone or in its answer; everything else is left to the exact readers."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from pactgate.protocol.messages import decode_from_upstream, encode_json, encode_result, members
from pactgate.protocol.simple_result import encode_simple, read_simple, read_simple_answer, size_of

CONTENT = [{"type": "text", "text": "hi"}]
RESULT = {"content": CONTENT, "isError": False, "_meta": {"a": 1}}


@pytest.mark.parametrize(
    "result",
    [
        {},
        {"structuredContent": {"a": 1}},
        {"content": None},
        {"content": {}},
        {"content": "[]"},
        {"content": CONTENT, "isError": "no"},
        {"content": CONTENT, "isError": None},
        {"content": CONTENT, "resultType": "task"},
        {"content": CONTENT, "ttlMs": 5},
        {"content": CONTENT, "Content": []},
        [],
        None,
    ],
)
def test_what_has_another_shape_is_not_simple(result: Any) -> None:
    text = json.dumps(result).encode()
    assert read_simple(text) is None
    assert read_simple_answer(encode_result(b"1", text)) is None


@pytest.mark.parametrize("text", [b"", b"{", b'{"content":[]} x', b'{"content":[}'])
def test_what_is_no_json_is_not_simple(text: bytes) -> None:
    assert read_simple(text) is None
    assert read_simple_answer(text) is None


@given(
    st.integers(0, 2**53),
    st.lists(st.text(), max_size=3),
    st.none() | st.dictionaries(st.text(max_size=3), st.integers()),
)
def test_an_answer_with_a_simple_result_is_taken_apart_at_once(id_: int, texts: list[str], meta: Any) -> None:
    result = encode_json({"content": texts, **({} if meta is None else {"_meta": meta})})
    text = encode_result(b"%d" % id_, result)
    simple = read_simple(result)
    assert simple is not None
    assert read_simple_answer(text) == (id_, simple)
    read = decode_from_upstream(text)
    assert getattr(read, "simple", None) == simple
    assert getattr(read, "result", None) == result == encode_simple(simple)


@pytest.mark.parametrize(
    "order",
    list(itertools.permutations([b'"jsonrpc":"2.0"', b'"id" : 1', b'"result":\t{"isError":true, "content":[]}'])),
)
def test_the_order_of_members_and_white_space_do_not_matter(order: tuple[bytes, ...]) -> None:
    answer = read_simple_answer(b" {\n%b }\n" % b" , ".join(order))
    assert answer is not None
    id_, simple = answer
    assert (id_, bytes(simple.content), simple.is_error) == (1, b"[]", True)
    assert (simple.structured, simple.kind, simple.meta) == (UNSET, UNSET, UNSET)


@pytest.mark.parametrize(
    "text",
    [
        b'{"jsonrpc":"2.0","id":1,"result":{"content":[]},"more":1}',
        b'{"jsonrpc":"2.0","id":1,"result":{"content":[],"more":1}}',
        b'{"jsonrpc":"2.0","id":1.0,"result":{"content":[]}}',
        b'{"jsonrpc":"2.0","id":"1","result":{"content":[]}}',
        b'{"jsonrpc":"2.0","id":true,"result":{"content":[]}}',
        b'{"jsonrpc":"2.0","id":null,"result":{"content":[]}}',
        b'{"jsonrpc":"2.0","id":%b,"result":{"content":[]}}' % (b"9" * 4350),
        b'{"jsonrpc":"2.0","id":01,"result":{"content":[]}}',
        b'{"jsonrpc":"2.1","id":1,"result":{"content":[]}}',
        b'{"jsonrpc":2.0,"id":1,"result":{"content":[]}}',
        b'{"id":1,"result":{"content":[]}}',
        b'{"jsonrpc":"2.0","result":{"content":[]}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"content":{}}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"content":[]}',
        b'{"jsonrpc":"2.0","id":1,"result":{"content":[]}}}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","result":{"content":[]}}',
    ],
)
def test_any_other_answer_is_left_to_the_exact_reader(text: bytes) -> None:
    assert read_simple_answer(text) is None


def test_what_is_read_is_what_was_written() -> None:
    simple = read_simple(json.dumps(RESULT).encode())
    assert simple is not None
    assert json.loads(bytes(simple.content)) == CONTENT
    assert simple.is_error is False


PARTS = {
    "content": st.sampled_from([b"[]", b"[ 1.50e1, 18446744073709551616 ]", b'["\\u0041"]']),
    "structuredContent": st.sampled_from([b"{}", b"null", b'{ "a" : 1e400 }']),
    "isError": st.sampled_from([b"true", b"false"]),
    "resultType": st.just(b'"complete"'),
    "_meta": st.sampled_from([b"{}", b"null", b'{"a" :[ ]}']),
}


@given(
    st.fixed_dictionaries(
        {"content": PARTS["content"]}, optional={name: part for name, part in PARTS.items() if name != "content"}
    ),
    st.randoms(),
)
def test_a_simple_result_is_written_again_with_every_member_as_its_bytes_and_within_its_size(
    parts: dict[str, bytes], chance: Any
) -> None:
    order = list(parts)
    chance.shuffle(order)
    text = b"{%b}" % b", ".join(b'"%b": %b' % (name.encode(), parts[name]) for name in order)
    simple = read_simple(text)
    assert simple is not None
    written = encode_simple(simple)
    assert {name: bytes(raw) for name, raw in members(written).items()} == parts
    assert len(written) <= size_of(simple) <= len(written) + 60
