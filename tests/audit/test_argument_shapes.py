"""What is kept of arguments: enough to recognise a call, bounded whatever it was, and no secret."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.audit.argument_shapes import (
    MAX_DEPTH,
    MAX_ITEMS,
    MAX_MEMBERS,
    MAX_NODES,
    MAX_TEXT_CHARS,
    MORE,
    Masking,
    shape_of,
    values_of,
)
from pactgate.core.masking import Mask
from pactgate.protocol.messages import encode_json

SECRET = "hunter2-is-the-word"
MASKING = Masking(Mask([SECRET]).start)

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=8), inner, max_size=6),
    max_leaves=30,
)


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        ({}, {}),
        (
            {"path": "abc", "n": 1, "x": 1.5, "ok": True, "none": None},
            {"path": "string 3", "n": "integer", "x": "number", "ok": "boolean", "none": "null"},
        ),
        ({"ids": [1, 2, 3]}, {"ids": "array 3 of integer"}),
        ({"ids": []}, {"ids": "array 0"}),
        ({"mixed": [1, "ab"]}, {"mixed": ["integer", "string 2"]}),
        ({"rows": [{"id": 1}]}, {"rows": [{"id": "integer"}]}),
    ],
)
def test_a_shape_has_names_types_and_lengths(value: Any, shape: Any) -> None:
    assert shape_of(value, MASKING) == shape


def test_values_are_kept_and_long_ones_cut() -> None:
    value = {"path": "a.txt", "deep": {"n": 1}, "long": "x" * 1000, "big": 10**200}
    kept = values_of(value, MASKING)
    assert (kept["path"], kept["deep"], len(kept["long"])) == ("a.txt", {"n": 1}, MAX_TEXT_CHARS)
    assert kept["big"] == "integer of over 100 digits"


def test_what_is_left_out_is_counted() -> None:
    assert shape_of({str(n): n for n in range(MAX_MEMBERS + 5)}, MASKING)[MORE] == "5 more"
    assert values_of(list(range(MAX_ITEMS + 5)), MASKING)[-1] == f"{MORE} 5 more"


def test_what_is_nested_too_deep_is_named_and_not_opened() -> None:
    value: Any = "end"
    for _ in range(MAX_DEPTH + 5):
        value = {"in": value}
    text = encode_json(shape_of(value, MASKING)).decode()
    assert text.count("{") == MAX_DEPTH
    assert '"object 1"' in text


@given(JSON)
def test_anything_that_is_json_has_a_bounded_shape_and_bounded_values(value: Any) -> None:
    for sketch in (shape_of, values_of):
        assert nodes(sketch(value, MASKING)) <= MAX_NODES + MAX_MEMBERS


def nodes(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + sum(nodes(held) for held in value.values())
    return 1 + sum(nodes(item) for item in value) if isinstance(value, list) else 1


@given(st.text(max_size=6000), st.text(max_size=6000), st.booleans())
def test_no_secret_and_no_half_of_one_is_kept_wherever_it_stands(before: str, after: str, is_key: bool) -> None:
    text = before + SECRET + after
    value = {text: 1} if is_key else {"a": [text]}
    for sketch in (shape_of, values_of):
        said = encode_json(sketch(value, MASKING)).decode()
        assert SECRET not in said
        assert SECRET[:8] not in said or SECRET[:8] in before + after


def test_a_number_that_is_a_secret_is_masked() -> None:
    masking = Masking(Mask(["123456789"]).start)
    assert values_of({"n": [123456789, 123456789.5, 12, True, None]}, masking) == {"n": ["***", "***", 12, True, None]}
