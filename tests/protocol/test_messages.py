"""Decoding is strict, total and linear; encoding gives what decoding takes; bytes that pass through stay as they are."""

from __future__ import annotations

import json
import time
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Raw

from pactgate.protocol import json_limits, messages
from pactgate.protocol.messages import ErrorReply, InvalidAnswer, Notification, Rejection, Request, Response, decode
from tests.support.each import each

CALL = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"a":[1,{"b":"x:y"}]}}}'

texts = st.text(st.characters(codec="utf-8"))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


def code_of(text: bytes) -> int | None:
    message = decode(text)
    return message.code if isinstance(message, Rejection) else None


class TwiceError(ValueError):
    pass


def reference(text: bytes) -> Any:
    """A strict reader built from other parts: raises ValueError for what is not JSON, TwiceError for repeated keys."""
    if text.startswith(b"\xef\xbb\xbf"):
        raise ValueError("byte order mark")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        twice.extend(key for key, _ in pairs if [name for name, _ in pairs].count(key) > 1)
        return dict(pairs)

    def no_constant(name: str) -> None:
        raise ValueError(name)

    twice: list[str] = []
    read = json.loads(text.decode(), object_pairs_hook=once, parse_constant=no_constant)
    json.dumps([read, twice], ensure_ascii=False).encode()
    if twice:
        raise TwiceError(twice[0])
    return read


# What decode lets in


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (CALL, Request(b"7", 7, "tools/call", b'{"name":"echo","arguments":{"a":[1,{"b":"x:y"}]}}')),
        (b' { "jsonrpc" : "2.0" , "id" : "a" , "method" : "x" } ', Request(b'"a"', "a", "x")),
        (b'{"jsonrpc":"2.0","\\u006dethod":"notifications/x","params":{}}', Notification("notifications/x", b"{}")),
        (b'{"jsonrpc":"2.0","id":-1,"result":null}', Response(-1, b"null")),
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}', ErrorReply(1, -1, "no")),
        (b'{"jsonrpc":"2.0","id":null,"error":{"code":2,"message":"","data":[ 1]}}', ErrorReply(None, 2, "", b"[ 1]")),
        (b'{"jsonrpc":"2.0","error":{"code":2,"message":"","more":1}}', ErrorReply(None, 2, "")),
    ],
)
def test_a_well_formed_message_is_read_by_callers_and_upstreams_alike(text: bytes, message: messages.Message) -> None:
    assert decode(text) == message
    assert messages.decode_from_upstream(text) == message


@pytest.mark.parametrize(
    "raw", [b"18446744073709551616", b"0.30000000000000004", b"1e400", b"-" + b"9" * 4300, b'"\\u0041"']
)
def test_params_and_results_stay_the_bytes_they_arrived_as(raw: bytes) -> None:
    request = decode(b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"v": %b}}' % raw)
    assert isinstance(request, Request)
    assert request.params == b'{"v": %b}' % raw
    answer = messages.decode_from_upstream(b'{"jsonrpc":"2.0","id":1,"result":{"v": %b}}' % raw)
    assert answer == Response(1, b'{"v": %b}' % raw)


@pytest.mark.parametrize("integer", [b"9" * 4301, b"-" + b"9" * 4301, b"1" * 100_000])
def test_an_integer_that_python_can_not_read_reaches_no_server(integer: bytes) -> None:
    """A server in Python that expects errors of JSON alone would end there, with the calls of others."""
    for params in (b'{"v":%b}', b'{"v":["",{"a":%b}]}', b'{"v":1e400,"w":%b}'):
        refused = decode(b'{"jsonrpc":"2.0","id":1,"method":"m","params":%b}' % params % integer)
        assert isinstance(refused, Rejection)
        assert "more than 4300 digits" in refused.message
    text = b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"v":"%b","w":1e400,"x":1.%b}}' % (integer, b"9" * 5000)
    assert isinstance(decode(text), Request)
    assert isinstance(messages.decode_from_upstream(b'{"jsonrpc":"2.0","id":1,"result":{"v":%b}}' % integer), Response)


@pytest.mark.parametrize(
    ("raw", "key"),
    [(b"1", 1), (b'"1"', "1"), (b"-0", 0), (b"18446744073709551616", 2**64), (b"9" * 1024, int("9" * 1024))],
)
def test_an_id_keeps_its_type_and_its_text(raw: bytes, key: str | int) -> None:
    request = decode(b'{"jsonrpc":"2.0","id":%b,"method":"m"}' % raw)
    assert isinstance(request, Request)
    assert (request.id, request.key, type(request.key)) == (raw, key, type(key))


@pytest.mark.requirement("S4/R2")
@pytest.mark.parametrize(
    "raw", [b"true", b"null", b"1.0", b"1e400", b"[]", b"{}", b'""', b'"  "', b"9" * 1025, b'"%b"' % (b"i" * 1024)]
)
def test_an_id_that_can_be_read_in_two_ways_is_refused_and_not_echoed(raw: bytes) -> None:
    assert messages.id_key(raw) is None
    refused = decode(b'{"jsonrpc":"2.0","id":%b,"method":"m"}' % raw)
    assert isinstance(refused, Rejection)
    assert (refused.code, refused.id) == (messages.INVALID_REQUEST, None)


# What decode refuses


@pytest.mark.requirement("S4/F1")
@pytest.mark.parametrize(
    ("text", "echo"),
    [
        (b"[]", None),
        (b"1", None),
        (b"{}", None),
        (b'{"jsonrpc":"1.0","id":5,"method":"m"}', b"5"),
        (b'{"jsonrpc":"2.0","id":5}', b"5"),
        (b'{"jsonrpc":"2.0","id":5,"method":"m","result":{}}', b"5"),
        (b'{"jsonrpc":"2.0","id":5,"method":"m","error":{}}', b"5"),
        (b'{"jsonrpc":"2.0","id":5,"method":1}', b"5"),
        (b'{"jsonrpc":"2.0","id":5,"method":""}', b"5"),
        (b'{"jsonrpc":"2.0","id":5,"method":"%b"}' % (b"m" * 257), b"5"),
        (b'{"jsonrpc":"2.0","id":5,"method":"m","params":null}', b"5"),
        (b'{"jsonrpc":"2.0","id":5,"method":"m","params":[]}', b"5"),
        (b'{"jsonrpc":"2.0","result":{}}', None),
        (b'{"jsonrpc":"2.0","id":5,"result":{},"error":{"code":1,"message":""}}', None),
        (b'{"jsonrpc":"2.0","id":5,"error":{"code":"1","message":""}}', None),
        (b'{"jsonrpc":"2.0","id":true,"error":{"code":1,"message":""}}', None),
    ],
)
def test_json_that_is_no_message_is_an_invalid_request(text: bytes, echo: bytes | None) -> None:
    refused = decode(text)
    assert isinstance(refused, Rejection)
    assert (refused.code, refused.id) == (messages.INVALID_REQUEST, echo)


@pytest.mark.requirement("S4/SIB-3")
def test_unknown_members_of_the_envelope_are_refused_and_those_of_params_pass() -> None:
    refused = decode(b'{"jsonrpc":"2.0","id":"q","method":"m","Params":{}}')
    assert isinstance(refused, Rejection)
    assert (refused.code, refused.id) == (messages.INVALID_REQUEST, b'"q"')
    assert decode(b'{"jsonrpc":"2.0","method":"m","extra":1,"id":null}') == msgspec.structs.replace(refused, id=None)
    assert decode(b'{"jsonrpc":"2.0","method":"m","params":{"new":{"_meta":{"x/y":1}}}}') == Notification(
        "m", b'{"new":{"_meta":{"x/y":1}}}'
    )


def test_an_upstream_may_put_members_of_its_own_beside_the_known_ones() -> None:
    text = b'{"jsonrpc":"2.0","id":1,"result":{},"took":3}'
    assert messages.decode_from_upstream(text) == Response(1, b"{}")
    assert code_of(text) == messages.INVALID_REQUEST


@pytest.mark.parametrize(
    "text", [b"", b"log line", b"[1,2]", b'{"a":"\xff"}', b'{"jsonrpc":"2.0","id":1,"result":' + b"[" * 100_000]
)
def test_what_an_upstream_says_that_is_no_message_is_a_parse_error(text: bytes) -> None:
    refused = messages.decode_from_upstream(text)
    assert isinstance(refused, Rejection)
    assert refused.code == messages.PARSE_ERROR


@pytest.mark.parametrize("hidden", [b'"\xed\xa0\x80\\u003a"', b'[1e400,"\xed\xa0\x80"]', b'[1e400,"\xff"]'])
def test_bytes_that_are_not_utf8_are_found_behind_what_only_the_slow_walk_can_read(hidden: bytes) -> None:
    assert code_of(b'{"jsonrpc":"2.0","method":"m","params":{"a":%b}}' % hidden) == messages.PARSE_ERROR


def test_json_broken_behind_an_unknown_member_is_a_parse_error() -> None:
    assert code_of(b'{"Method":1,"id":') == messages.PARSE_ERROR


def test_arrays_and_objects_count_as_levels_alike_and_the_bound_is_exact() -> None:
    def nested(levels: int) -> bytes:
        inner = b"1"
        for level in range(levels):
            inner = b"[%b]" % inner if level % 2 else b'{"a":%b}' % inner
        return b'{"jsonrpc":"2.0","method":"m","params":{"a":%b}}' % inner

    assert isinstance(decode(nested(messages.MAX_DEPTH - 2)), Notification)
    assert code_of(nested(messages.MAX_DEPTH - 1)) == messages.PARSE_ERROR
    assert isinstance(decode(nested(8), max_depth=10), Notification)
    assert isinstance(decode(nested(9), max_depth=10), Rejection)


def test_the_shortest_request_that_is_nested_too_deep_is_refused() -> None:
    for levels, kind in ((messages.MAX_DEPTH, Request), (messages.MAX_DEPTH + 1, Rejection)):
        inside = levels - 2
        text = b'{"jsonrpc":"2.0","id":0,"method":"m","params":{"":%b%b}}' % (b"[" * inside, b"]" * inside)
        assert isinstance(decode(text), kind)


def test_brackets_inside_strings_are_no_levels() -> None:
    text = b'{"jsonrpc":"2.0","method":"m","params":{"a":"%b","b":[[]]}}' % (b'\\\\\\"[{' * 100)
    assert isinstance(decode(text), Notification)


def test_more_containers_than_a_message_may_hold_are_refused_before_they_are_built() -> None:
    text = b'{"jsonrpc":"2.0","method":"m","params":{"a":[%b1]}}' % (b"[]," * json_limits.MAX_CONTAINERS)
    assert code_of(text) == messages.PARSE_ERROR


@pytest.mark.parametrize(
    "filling",
    [
        b"[[]," * 20 + b'"' + b'\\"' * 400_000,
        b'"' * 800_000,
        b"\\" * 800_000,
        b'"\\' * 400_000,
        b"[" * 60 + b'"\\u003a"' * 100_000,
    ],
)
@pytest.mark.timing
def test_no_text_makes_decoding_slow(filling: bytes) -> None:
    started = time.process_time()
    assert code_of(b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":' + b"[]," * 70 + filling) is not None
    assert time.process_time() - started < 1


# Keys


def test_the_answer_to_a_repeated_key_names_the_request_unless_its_id_is_in_doubt() -> None:
    repeated = decode(b'{"jsonrpc":"2.0","id":3,"method":"m","params":{"a":1,"a":2}}')
    assert isinstance(repeated, Rejection)
    assert (repeated.code, repeated.id) == (messages.INVALID_REQUEST, b"3")
    doubtful = decode(b'{"jsonrpc":"2.0","id":3,"id":4,"method":"m"}')
    assert isinstance(doubtful, Rejection)
    assert (doubtful.code, doubtful.id) == (messages.INVALID_REQUEST, None)
    nameless = decode(b'{"jsonrpc":"2.0","method":"m","method":"n"}')
    assert isinstance(nameless, Rejection)
    assert nameless.id is None


KNOWN = frozenset({"name", "arguments", "_meta", "requestState"})


@pytest.mark.parametrize("odd", ["Name", "NAME", "\uff4eame", "argument\u017f", "_META", "requeststate", "_\uff2deta"])
def test_a_member_that_a_laxer_reader_would_take_for_a_known_one_is_refused(odd: str) -> None:
    reason = messages.check_member_names({"name": 1, odd: 1}, KNOWN)
    assert reason is not None
    assert repr(odd) in reason


@pytest.mark.parametrize("name", ["names", "nam", "x", "", "vendor/name", "na\u0000me", "\u0301"])
def test_a_member_that_resembles_no_known_one_passes(name: str) -> None:
    assert messages.check_member_names({"name": 1, name: 1}, KNOWN) is None
    assert messages.check_member_names({name: 1}, frozenset()) is None


@pytest.mark.timing
def test_a_long_member_name_is_not_folded_because_that_can_take_quadratic_time() -> None:
    started = time.process_time()
    assert messages.check_member_names({"\u0315\u0300\u0316" * 20_000: 1}, KNOWN) is None
    assert time.process_time() - started < 1


def test_known_members_pass_whether_all_are_there_or_none() -> None:
    assert messages.check_member_names({}, KNOWN) is None
    assert messages.check_member_names(dict.fromkeys(KNOWN), KNOWN) is None


# Values and encoding


def test_members_are_kept_as_their_bytes_and_only_objects_have_them() -> None:
    held = messages.members(b'{"a": [1, 2] ,"b":1e400}')
    assert {name: bytes(raw) for name, raw in held.items()} == {"a": b"[1, 2]", "b": b"1e400"}
    with pytest.raises(msgspec.DecodeError):
        messages.members(b"[]")


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b'{"a":[1,null]}', {"a": [1, None]}),
        (b"18446744073709551616", 2**64),
        (b"[1e400,1.5,7]", [Decimal("1e400"), 1.5, 7]),
        (b"-" + b"9" * 5000, Decimal("-" + "9" * 5000)),
        (Raw(b"true"), True),
    ],
)
def test_a_value_is_exact_however_large_its_numbers(raw: bytes | Raw, value: Any) -> None:
    assert messages.value(raw) == value


def test_a_message_of_several_lines_is_written_on_one() -> None:
    text = b'{\r\n"a":\n"\\n"}'
    assert messages.one_line(text) == b'{  "a": "\\n"}'
    assert messages.one_line(b'{"a":1}') == b'{"a":1}'


@example(id_="\x7f", params="\x7f")
@given(id_=st.integers() | texts.filter(lambda text: text.strip()).filter(lambda text: len(text) < 100), params=values)
def test_what_is_encoded_is_decoded_again(id_: int | str, params: Any) -> None:
    raw = json.dumps(id_).encode()
    held = json.dumps({"v": params}, ensure_ascii=False).encode()
    assert decode(messages.encode_request(raw, "tools/call", held)) == Request(raw, id_, "tools/call", held)
    assert decode(messages.encode_request(raw, "m", None)) == Request(raw, id_, "m")
    assert decode(messages.encode_notification("n/\u00e9", held)) == Notification("n/\u00e9", held)
    assert decode(messages.encode_notification("n")) == Notification("n")
    assert decode(messages.encode_result(raw, held)) == Response(id_, held)
    assert decode(messages.encode_error(raw, -5, "why")) == ErrorReply(id_, -5, "why")


def test_a_rejection_is_written_as_an_error_reply_with_a_null_id_if_there_is_none() -> None:
    assert messages.encode_rejection(Rejection(-32700, "no")) == (
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}'
    )
    assert messages.encode_rejection(Rejection(-32022, "no", b'"a"', {"supported": ["x"]})) == (
        b'{"jsonrpc":"2.0","id":"a","error":{"code":-32022,"message":"no","data":{"supported":["x"]}}}'
    )


# Any bytes at all

PIECES = rb"""{ } [ ] , : " \ \u003a \ud800 1e400 NaN - 0 1 . null "id" "a":1, "a" """.split()
fragments = st.sampled_from([*PIECES, b" ", b"\n", b"\x00", b"\xff", b"\xef\xbb\xbf", b"\xe2\x82\xac"])


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A good message with a few bytes cut out, put in or doubled."""
    text = draw(
        st.sampled_from([CALL, b'{"jsonrpc":"2.0","id":"x","result":{"a":{"b":[1,2.5e3,"\\u00e9"],"c":null}}}'])
    )
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 8)))
        middle = draw(fragments | st.just(text[start:end] * 2) | st.just(b""))
        text = text[:start] + middle + text[end:]
    return text


@given(st.binary() | st.lists(fragments).map(b"".join) | damaged())
def test_decoding_never_raises_and_its_answer_can_be_written(text: bytes) -> None:
    for read in (decode, messages.decode_from_upstream):
        message = read(text)
        if isinstance(message, Rejection):
            reference(messages.encode_rejection(message))


@given(damaged() | st.lists(fragments).map(b"".join))
def test_decoding_takes_for_json_exactly_what_a_strict_reader_does(text: bytes) -> None:
    try:
        reference(text)
    except TwiceError:
        assert code_of(text) == messages.INVALID_REQUEST
    except ValueError:
        assert code_of(text) == messages.PARSE_ERROR
    else:
        assert code_of(text) != messages.PARSE_ERROR


@given(values)
def test_any_value_of_a_strict_reader_passes_as_params(params: Any) -> None:
    held = json.dumps({"v": params}).encode()
    request = decode(b'{"jsonrpc":"2.0","id":1,"method":"m","params":%b}' % held)
    assert request == Request(b"1", 1, "m", held)
    assert messages.value(held) == {"v": params}


@given(values, texts, st.integers(0, 3), st.booleans())
def test_a_repeated_key_is_refused_wherever_it_stands(value: Any, key: str, depth: int, escaped: bool) -> None:
    first, second = json.dumps(key, ensure_ascii=False), json.dumps(key, ensure_ascii=escaped)
    held = json.dumps(value, ensure_ascii=False)
    inner = f"{{{first}:{held},{json.dumps(key + 'x')}:1,{second}:{held}}}"
    for _ in range(depth):
        inner = f'[{{"k":{inner}}}]'
    text = f'{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"v":{inner}}}}}'.encode()
    assert code_of(text) == messages.INVALID_REQUEST


# One pass and the exact reader

gaps = st.text(" \t\r\n", max_size=3).map(str.encode)
ids = st.integers() | texts.filter(lambda text: bool(text.strip()) and len(text) < 50)


def exactly(text: bytes) -> messages.Message | Rejection:
    return messages._judge(text, messages.MAX_DEPTH)


def same(one: messages.Message | Rejection, other: messages.Message | Rejection) -> bool:
    """Requests are compared with all they say, everything else as the value it is."""
    if isinstance(one, Request) and isinstance(other, Request):
        return (one.id, one.key, type(one.key), one.method, one.params) == (
            other.id,
            other.key,
            type(other.key),
            other.method,
            other.params,
        )
    return one == other


@st.composite
def laid_out(draw: st.DrawFn, parts: st.SearchStrategy[dict[str, bytes]]) -> tuple[bytes, dict[str, bytes]]:
    """An object of these members, in any order and with any white space between its tokens."""
    held = draw(parts)
    pieces = [
        b"".join((draw(gaps), json.dumps(name).encode(), draw(gaps), b":", draw(gaps), held[name]))
        for name in draw(st.permutations(list(held)))
    ]
    return b"%b{%b%b}%b" % (draw(gaps), (b"%b," % draw(gaps)).join(pieces), draw(gaps), draw(gaps)), held


@given(ids, texts.filter(lambda text: 0 < len(text) <= 200), st.dictionaries(texts, values, max_size=4), st.data())
def test_a_request_is_the_same_in_every_order_of_its_members_and_with_any_white_space(
    key: int | str, method: str, params: dict[str, Any], data: st.DataObject
) -> None:
    held = data.draw(
        st.sampled_from([json.dumps(params, ensure_ascii=False), json.dumps(params, indent=1, ensure_ascii=False)])
    ).encode()
    id_ = messages.encode_json(key)
    parts = {"jsonrpc": b'"2.0"', "id": id_, "method": messages.encode_json(method), "params": held}
    text, _ = data.draw(laid_out(st.just(parts)))
    read = decode(text)
    assert isinstance(read, Request)
    assert (read.id, read.key, type(read.key), read.method, read.params) == (id_, key, type(key), method, held)
    assert read.values is None or read.values == messages.value(held)
    assert same(read, exactly(text))


def test_a_request_in_another_order_is_read_in_the_same_one_pass() -> None:
    text = b' {"params" : {"a" : [1, 2.5, "x:y"]},\n"method":"m", "id" : "q","jsonrpc":"2.0"}\n'
    read = decode(text)
    assert isinstance(read, Request)
    assert read.values == {"a": [1, 2.5, "x:y"]}
    assert read.params == b'{"a" : [1, 2.5, "x:y"]}'


REQUESTS = [
    CALL,
    b'{"params":{"a":{"a":{"a":1}}},"id":"x\\ny","jsonrpc":"2.0","method":"m"}',
    b'{"jsonrpc":"2.0","id":12,"method":"tools/call","params":{"name":"\\u0065cho","n":[-1.5e-3,18446744073709551616]}}',
    b'{"jsonrpc":"2.0","id":1,"method":"m","params":{}}',
]
INSIDE = [
    *(b'"a":1,"a":2', b'{"a":1,"\\u0061":2}', b'{"":{"x":1,"x":1}}', b'"id":2,', b'"jsonrpc":"2.0",', b'"more":1,'),
    *(
        b'"\\u003a"',
        b'"\\u003A"',
        b'"\\u003":',
        b'"\\ud83d\\ude00"',
        b'"\\ud800"',
        b"\\u0031",
        b"\xed\xa0\x80",
        b"\xc0\x80",
    ),
    *(b"9" * 30, b"9" * 1030, b"9" * 4400, b"1e400", b"-1E+999", b"1.0", b"-0.0", b"01", b"-", b"NaN", b"Infinity"),
    *(b"[" * 63, b"]" * 63, b"[" * 62 + b"]" * 62, b'{"a":' * 61 + b"1" + b"}" * 61, b"[" * 70 + b"]" * 70),
    *(b"true", b"null", b'""', b'" "', b'"id"', b":", b",", b"{}", b"[]", b"\x00", b"\x7f", b"\xe2\x80\xa8"),
]


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A request with tokens, keys, escapes, large numbers and deep nesting put in the place of others."""
    text = draw(st.sampled_from(REQUESTS))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 12)))
        middle = draw(st.sampled_from(INSIDE) | fragments | st.just(text[start:end] * 2) | st.just(b""))
        text = text[:start] + middle + text[end:]
    return text


@given(mutated() | damaged() | st.lists(fragments | st.sampled_from(INSIDE)).map(b"".join))
def test_one_pass_never_says_anything_but_the_exact_reader(text: bytes) -> None:
    read = decode(text)
    assert same(read, exactly(text))
    if isinstance(read, Request) and read.values is not None:
        assert read.values == messages.value(read.params or b"")


@each("inside", INSIDE)
@each("depth", [0, 1, 5])
def test_one_pass_says_of_every_odd_value_what_the_exact_reader_says(inside: bytes, depth: int) -> None:
    held = b'{"k":' * depth + inside + b"}" * depth
    for text in (
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"v":%b}}' % held,
        b'{"params":{%b},"method":"m","id":1,"jsonrpc":"2.0"}' % held,
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"v":[%b,{"a":1}]}}' % held,
    ):
        assert same(decode(text), exactly(text))


@each(
    "id_",
    [b"1", b"-1", b"1.0", b"1e1", b"01", b'"a"', b'" "', b'""', b'"\\n"', b"true", b"null", b"9" * 1025, b"9" * 40],
)
@each("version", [b'"2.0"', b'"2.1"', b'"\\u0032.0"', b"2.0", b"null"])
def test_one_pass_judges_id_and_version_as_the_exact_reader_does(id_: bytes, version: bytes) -> None:
    text = b'{"jsonrpc":%b,"id":%b,"method":"m","params":{"a":"2.0 10 1"}}' % (version, id_)
    assert same(decode(text), exactly(text))


@pytest.mark.parametrize(("id_", "beside"), [(b"-0", b"1"), (b'"\\u0041"', b'"A"'), (b'"a\\/b"', b'"a/b"')])
def test_an_id_is_echoed_as_it_was_written_whatever_stands_beside_it(id_: bytes, beside: bytes) -> None:
    read = decode(b'{"jsonrpc":"2.0","id":%b,"method":"m","params":{"a":%b}}' % (id_, beside))
    assert isinstance(read, Request)
    assert read.id == id_


@pytest.mark.parametrize("separators", [(",", ":"), (", ", " : ")])
@pytest.mark.parametrize("order", [("jsonrpc", "id", "method", "params"), ("method", "params", "jsonrpc", "id")])
@given(params=st.dictionaries(texts, values, max_size=3))
def test_a_request_has_its_params_as_they_were_written_and_decoded(
    order: tuple[str, ...], separators: tuple[str, str], params: dict[str, Any]
) -> None:
    message = {"jsonrpc": "2.0", "id": 10, "method": "m", "params": params}
    read = decode(json.dumps({name: message[name] for name in order}, separators=separators).encode())
    assert isinstance(read, Request)
    assert (read.id, read.params) == (b"10", json.dumps(params, separators=separators).encode())
    assert read.values in (None, params)


@pytest.mark.parametrize("twice", [b'"id":1', b'"jsonrpc":"2.0"', b'"method":"m"', b'"params":{}'])
@pytest.mark.parametrize("id_", [b"1", b"1e9", b"100000000", b'"a:b"', b'"\\u003a"'])
def test_a_member_that_stands_twice_is_refused_however_short_the_others_are(id_: bytes, twice: bytes) -> None:
    read = decode(b'{%b,"jsonrpc":"2.0","id":%b,"method":"m","params":{"a":1}}' % (twice, id_))
    assert isinstance(read, Rejection)


# Answers of an upstream

RESULT_PARTS = {
    "content": values.map(lambda value: messages.encode_json([value]))
    | st.sampled_from([b"[ ]", b"[1e400]", b"{}", b"7"]),
    "structuredContent": values.map(lambda value: json.dumps({"v": value}, indent=1).encode()),
    "isError": st.sampled_from([b"true", b"false", b"null", b"0"]),
    "resultType": st.sampled_from([b'"complete"', b'"task"', b"1"]),
    "_meta": st.sampled_from([b"{}", b'{ "a" : 18446744073709551616 }', b"null", b"[]"]),
    "ttlMs": st.just(b"5"),
}
ENVELOPE_PARTS = {
    "jsonrpc": st.sampled_from([b'"2.0"', b'"2.0"', b'"2.0"', b'"1.0"']),
    "id": st.integers().map(messages.encode_json),
}


@st.composite
def answers(draw: st.DrawFn) -> bytes:
    optional = {name: part for name, part in RESULT_PARTS.items() if name != "content"}
    parts = st.fixed_dictionaries({"content": RESULT_PARTS["content"]}, optional=optional)
    result, _ = draw(laid_out(parts))
    around = {name: draw(part) for name, part in ENVELOPE_PARTS.items()} | {"result": result.strip()}
    if draw(st.integers(0, 5)) == 0:
        around["took"] = b"3"
    text, _ = draw(laid_out(st.just(around)))
    return text


@given(answers())
def test_a_tool_result_in_any_order_is_what_the_exact_reader_says_member_by_member(text: bytes) -> None:
    read = messages.decode_from_upstream(text)
    exact = messages._message(messages._lenient.decode(text))
    if isinstance(read, InvalidAnswer):
        assert isinstance(exact, Rejection)
        assert (read.why, read.key) == (exact.message, json.loads(text)["id"])
        return
    if not (isinstance(read, Response) and isinstance(exact, Response)):
        assert read == exact
        return
    assert (read.key, type(read.key)) == (exact.key, type(exact.key))
    held, expected = (
        {name: bytes(raw) for name, raw in messages.members(each.result).items()} for each in (read, exact)
    )
    assert held == expected
    if read.simple is not None:
        assert held.keys() <= {"content", "structuredContent", "isError", "resultType", "_meta"}
        assert bytes(read.simple.content) == expected["content"]


@pytest.mark.parametrize("digits", [15, 16, 17, 20, 1000, 1024, 1025, 4299, 4301, 5000])
def test_an_id_means_the_same_however_long_it_is_and_is_refused_beyond_its_bound(digits: int) -> None:
    for sign in (b"", b"-"):
        id_ = sign + b"9" * digits
        read = decode(b'{"jsonrpc":"2.0","id":%b,"method":"m","params":{}}' % id_)
        if len(id_) <= messages.MAX_ID_BYTES:
            assert isinstance(read, Request)
            assert (read.id, read.key) == (id_, int(id_))
        else:
            assert isinstance(read, Rejection)


ANSWER = b'{"jsonrpc":"2.0","id":7,%b}'
REPEATED_ANSWERS = {
    "id": b'"id":7,"result":{"content":[]}',
    "result": b'"result":{"content":[]},"result":{"content":[]}',
    "result of another kind": b'"result":1,"result":{}',
    "error": b'"error":{"code":1,"message":"a"},"error":{"code":2,"message":"b"}',
    "content": b'"result":{"content":[{"type":"text","text":"a"}],"content":[{"type":"text","text":"b"}]}',
    "content in another spelling": b'"result":{"content":[],"c\\u006fntent":[]}',
    "isError": b'"result":{"content":[],"isError":false,"isError":true}',
    "isError with white space": b'"result": {"content": [], "isError": false, "isError": true}',
    "structuredContent": b'"result":{"content":[],"structuredContent":{"a":1},"structuredContent":{"a":2}}',
    "_meta": b'"result":{"content":[],"_meta":{},"_meta":{}}',
    "a member we do not know": b'"result":{"content":[],"x":1,"x":2}',
    "a member with a colon": b'"result":{"content":[],"x:y":1,"x\\u003ay":2}',
    "a list": b'"result":{"tools":[],"tools":[]}',
    "code": b'"error":{"code":1,"code":2,"message":"a"}',
    "message": b'"error":{"code":1,"message":"a","message":"b"}',
}


@pytest.mark.parametrize("name", REPEATED_ANSWERS)
def test_an_answer_of_a_server_with_a_member_twice_is_refused_for_its_request(name: str) -> None:
    assert messages.decode_from_upstream(ANSWER % REPEATED_ANSWERS[name]) == InvalidAnswer(7, messages.REPEATED)


@pytest.mark.parametrize(
    "said",
    [
        b'"result":{"content":[{"type":"text","text":"\\u003a:\\u003c"}],"isError":false}',
        b'"result":{"content":[{"a":{"a":{"a":":"}}}],"structuredContent":{"content":{"content":1}}}',
        b'"result": {\n  "content": [ ],\n  "isError": true\n}',
        b'"result":{"resultType":"complete","content":[],"_meta":{"x:y":":"}}',
        b'"result":{"x:y":1,"content":[],"z":"\\u003a"}',
        b'"result":[{"a":1},{"a":1}]',
        b'"error":{"code":1,"message":":","data":{"code":1,"message":":"}}',
    ],
)
def test_equal_names_in_different_objects_are_no_member_twice(said: bytes) -> None:
    assert isinstance(messages.decode_from_upstream(ANSWER % said), Response | ErrorReply)


@pytest.mark.parametrize(
    "said", [b'"error":{"code":1e400,"message":"a"}', b'"error":7', b'"result":1,"error":{"code":1,"message":"a"}']
)
def test_an_answer_that_can_not_be_used_ends_its_request(said: bytes) -> None:
    assert isinstance(messages.decode_from_upstream(ANSWER % said), InvalidAnswer)
