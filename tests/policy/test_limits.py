"""The shape arguments may have, and what is said about those that don't."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.config.sections.limits import Limits
from pactgate.core.failures import ErrorCode, Kind
from pactgate.policy.json_paths import dotted, pointer
from pactgate.policy.limits import (
    MAX_ERRORS,
    BodyLimits,
    Bounds,
    LimitError,
    bounds_for,
    check,
    check_body,
    is_small,
    too_many_bytes,
)
from pactgate.protocol import messages

DEFAULT = bounds_for("s.t", "t", Limits())


def found(arguments: Any, **limits: Any) -> list[tuple[str, str, int, int]]:
    errors = check(arguments, bounds_for("s.t", "t", Limits(**limits)))
    return [(error.code.value, error.path, error.limit, error.actual) for error in errors]


def nested(levels: int, inside: Any = None) -> dict[str, Any]:
    """Arguments with so many levels, lists and tables in turn; the arguments are the first."""
    value: Any = {} if inside is None else inside
    for level in range(levels - 1):
        value = {"a": value} if level % 2 or level == levels - 2 else [value]
    assert isinstance(value, dict)
    return value


@pytest.mark.requirement("S1/LIMIT-001")
def test_a_hundred_items_pass_and_one_more_does_not() -> None:
    assert found({"ids": [1] * 100}) == []
    assert found({"ids": [1] * 101}) == [("ARRAY_TOO_LARGE", "ids", 100, 101)]


@pytest.mark.requirement("S1/LIMIT-001")
def test_lists_are_found_wherever_they_are() -> None:
    assert found({"a": {"b": [{"c": [0] * 500}]}}) == [("ARRAY_TOO_LARGE", "a.b[0].c", 100, 500)]
    rows: list[Any] = [[] for _ in range(200)]
    rows[150] = [0] * 500
    assert found({"rows": rows}, max_array_size=200) == [("ARRAY_TOO_LARGE", "rows[150]", 200, 500)]
    assert ("ARRAY_TOO_LARGE", "rows[150]", 100, 500) in found({"rows": rows})


@pytest.mark.requirement("S1/LIMIT-001")
def test_texts_and_keys_have_a_longest_length_in_characters() -> None:
    assert found({"text": "é" * 100_000}) == []
    assert found({"text": "é" * 100_001}) == [("STRING_TOO_LONG", "text", 100_000, 100_001)]
    assert found({"list": ["x" * 4, "x" * 5]}, max_string_length=4) == [("STRING_TOO_LONG", "list[1]", 4, 5)]
    assert found({"a": {"x" * 6: 1}}, max_string_length=5) == [("STRING_TOO_LONG", "a.xxxxxx", 5, 6)]


@pytest.mark.requirement("S1/LIMIT-001")
def test_ten_levels_pass_and_eleven_do_not() -> None:
    assert found(nested(10)) == []
    assert found(nested(10, "plain values are no level")) == []
    ((code, _, limit, actual),) = found(nested(11))
    assert (code, limit, actual) == ("OBJECT_TOO_DEEP", 10, 11)


def test_what_is_too_deep_says_how_deep_and_where_it_begins_to_be() -> None:
    assert found({"a": {"b": {"c": [[]]}}, "d": {"e": {}}}, max_object_depth=2) == [
        ("OBJECT_TOO_DEEP", "a.b", 2, 5),
        ("OBJECT_TOO_DEEP", "d.e", 2, 3),
    ]


@pytest.mark.requirement("S1/LIMIT-001")
def test_a_hundred_thousand_levels_do_not_exhaust_the_stack() -> None:
    value: Any = []
    for _ in range(100_000):
        value = [value]
    ((code, path, _, actual),) = found({"a": value})
    assert (code, path, actual) == ("OBJECT_TOO_DEEP", "a[0][0][0][0][0][0][0][0][0]", 100_002)
    while value:  # taken apart by hand: the interpreter would do it recursively
        value = value.pop()


@pytest.mark.requirement("S1/LIMIT-003")
@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({}, 100),
        ({"t": 5}, 5),
        ({"t": 1000}, 1000),
        ({"s.t": 1000, "t": 5}, 1000),
        ({"s.t": 5, "t": 1000}, 5),
        ({"s.t": 0}, 0),
        ({"other.t": 5, "u": 5}, 100),
    ],
)
def test_a_tools_own_list_limit_counts_by_full_name_before_bare_name(limits: dict[str, int], expected: int) -> None:
    bounds = bounds_for("s.t", "t", Limits(tool_array_limits=limits))
    assert bounds.max_array == expected
    assert check({"any": {"field": [1] * expected}}, bounds) == ()
    (error,) = check({"any": {"field": [1] * (expected + 1)}}, bounds)
    assert (error.limit, error.actual) == (expected, expected + 1)


@pytest.mark.requirement("S1/LIMIT-004")
def test_an_error_says_where_how_much_and_how_much_is_allowed() -> None:
    (error,) = check({"a.b": {"c/d": [0] * 101}}, DEFAULT)
    assert error == LimitError(ErrorCode.ARRAY_TOO_LARGE, "a.b.c/d", "/a.b/c~1d", 100, 101)
    assert error.facts() == {
        "code": "ARRAY_TOO_LARGE",
        "path": "a.b.c/d",
        "pointer": "/a.b/c~1d",
        "limit": 100,
        "actual": 101,
        "message": "a.b.c/d has 101 items; at most 100 are allowed",
    }


@pytest.mark.requirement("S1/LIMIT-004")
def test_keys_with_dots_are_told_apart_by_the_pointer() -> None:
    (one,), (other,) = (check(value, DEFAULT) for value in ({"a.b": [0] * 101}, {"a": {"b": [0] * 101}}))
    assert one.path == other.path == "a.b"
    assert (one.pointer, other.pointer) == ("/a.b", "/a/b")


@pytest.mark.requirement("S1/LIMIT-004")
def test_several_errors_are_told_at_once_in_order_and_not_without_end() -> None:
    assert found({"a": [0] * 101, "b": "x" * 100_001, "c": {"d": [0] * 102}}) == [
        ("ARRAY_TOO_LARGE", "a", 100, 101),
        ("STRING_TOO_LONG", "b", 100_000, 100_001),
        ("ARRAY_TOO_LARGE", "c.d", 100, 102),
    ]
    assert len(found({f"k{n}": [0] * 101 for n in range(500)})) == MAX_ERRORS
    assert len(found({f"key {n}": 1 for n in range(500)}, max_string_length=3)) == MAX_ERRORS


@pytest.mark.requirement("S1/LIMIT-004")
def test_too_many_bytes_is_an_error_of_the_same_form() -> None:
    error = too_many_bytes(10, 11)
    assert (error.code, error.limit, error.actual) == (ErrorCode.REQUEST_TOO_LARGE, 10, 11)
    assert error.facts()["path"] == ""
    assert error.message == "the request has 11 bytes; at most 10 are allowed"


def test_no_value_is_repeated() -> None:
    (error,) = check({"password": "hunter2" * 20_000}, DEFAULT)
    assert "hunter2" not in str(error.facts())


@pytest.mark.parametrize("value", [None, 5, "x", [], True, {}, {"a": None, "b": 1.5, "c": False, "d": 10**40}])
def test_plain_values_are_fine(value: Any) -> None:
    assert check(value, DEFAULT) == ()


def test_what_is_no_object_is_still_looked_at() -> None:
    assert found([0] * 101) == [("ARRAY_TOO_LARGE", "", 100, 101)]
    assert found("x" * 5, max_string_length=4) == [("STRING_TOO_LONG", "", 4, 5)]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=40,
)
SMALL = st.builds(
    Bounds,
    max_array=st.integers(0, 5),
    max_string=st.integers(1, 5),
    max_depth=st.integers(1, 5),
    max_bytes=st.just(10**6),
)


def depth_of(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth_of, value), default=0)
    return 0


def naive(value: Any, bounds: Bounds, steps: tuple[str | int, ...] = (), level: int = 1) -> list[LimitError]:
    """The same by plain recursion."""

    def error(code: ErrorCode, where: tuple[str | int, ...], limit: int, actual: int) -> list[LimitError]:
        return [LimitError(code, dotted(where), pointer(where), limit, actual)] if actual > limit else []

    if isinstance(value, str):
        return error(ErrorCode.STRING_TOO_LONG, steps, bounds.max_string, len(value))
    if not isinstance(value, dict | list):
        return []
    errors: list[LimitError] = []
    if level == bounds.max_depth + 1:
        errors += error(ErrorCode.OBJECT_TOO_DEEP, steps, bounds.max_depth, level - 1 + depth_of(value))
    if isinstance(value, list):
        errors += error(ErrorCode.ARRAY_TOO_LARGE, steps, bounds.max_array, len(value))
    for key in value if isinstance(value, dict) else ():
        errors += error(ErrorCode.STRING_TOO_LONG, (*steps, key), bounds.max_string, len(key))
    for step, member in value.items() if isinstance(value, dict) else enumerate(value):
        errors += naive(member, bounds, (*steps, step), level + 1)
    return errors


@given(arguments=st.dictionaries(st.text(max_size=5), JSON, max_size=5), bounds=SMALL)
def test_the_errors_are_those_a_plain_recursive_look_finds(arguments: dict[str, Any], bounds: Bounds) -> None:
    assert list(check(arguments, bounds)) == naive(arguments, bounds)[:MAX_ERRORS]


@given(JSON, SMALL)
def test_any_decoded_json_can_be_looked_at(value: Any, bounds: Bounds) -> None:
    again = messages.value(json.dumps(value).encode())
    assert len(check(again, bounds)) <= MAX_ERRORS


@pytest.mark.requirement("S1/LIMIT-001")
@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
        max_leaves=20,
    ),
    st.integers(1, 6),
    st.integers(1, 60),
    st.integers(1, 6),
)
def test_what_is_small_by_its_bytes_breaks_no_limit(value: Any, most: int, longest: int, deepest: int) -> None:
    bounds, arguments = Bounds(most, longest, deepest, 10**6), {"v": value}
    for text in (messages.encode_json(arguments), json.dumps(arguments, indent=1).encode()):
        if is_small(text, bounds):
            assert check(arguments, bounds) == ()


def test_ordinary_arguments_are_small_by_their_bytes_and_what_is_at_a_limit_is_looked_into() -> None:
    assert is_small(messages.encode_json({"path": "/x" * 200, "tags": ["a", "b"], "deep": {"er": {}}}), DEFAULT)
    for limit in ({"ids": [1] * 101}, {"text": "x" * 100_001}, nested(11)):
        assert not is_small(messages.encode_json(limit), DEFAULT)


CALL = b'{"jsonrpc":"2.0","id":1,"method":"%b","params":{"name":"t","%b":{"x":%b}}}'
BODY_LIMITS = BodyLimits(max_values=1000, max_string=100)


@pytest.mark.requirement("S1/LIMIT-001")
def test_a_message_of_too_many_values_is_refused_on_its_bytes() -> None:
    failure = check_body(CALL % (b"tools/call", b"arguments", b"[%b1]" % (b"1," * 2000)), BODY_LIMITS)
    assert failure is not None
    assert (failure.kind, failure.details) == (Kind.LIMIT_EXCEEDED, {"limit": 1000})


@pytest.mark.requirement("S1/LIMIT-003")
def test_an_argument_that_is_far_too_long_is_refused_on_its_bytes() -> None:
    failure = check_body(CALL % (b"tools/call", b"arguments", b'"%b"' % (b"a" * 3000)), BODY_LIMITS)
    assert failure is not None
    assert (failure.kind, failure.code) == (Kind.LIMIT_EXCEEDED, ErrorCode.STRING_TOO_LONG)


@pytest.mark.parametrize(
    ("method", "member", "value"),
    [
        (b"tools/call", b"arguments", b'"%b"' % b'","'.join([b"\\ud83d\\ude00" * 100])),
        (b"tools/call", b"arguments", b'["%b"]' % b'","'.join([b"\\ud83d\\ude00" * 100] * 50)),
        (b"tools/call", b"inputResponses", b'"%b"' % (b"a" * 3000)),
        (b"completion/complete", b"arguments", b'"%b"' % (b"a" * 3000)),
        (b"tools/call", b"arguments", b"[%b1]" % (b"123456789," * 500)),
    ],
)
def test_what_may_be_within_the_limits_is_left_to_the_check_of_values(
    method: bytes, member: bytes, value: bytes
) -> None:
    assert check_body(CALL % (method, member, value), BODY_LIMITS) is None
