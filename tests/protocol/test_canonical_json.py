"""Equal values have equal canonical forms, however they are written."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.protocol.canonical_json import as_ascii, canonical, digest_of

TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3), max_leaves=12
)


@given(VALUES)
def test_spelling_order_and_white_space_do_not_count(value: Any) -> None:
    plain = msgspec.json.encode(value)
    other = json.dumps(value, indent=2, ensure_ascii=True).encode()
    assert canonical(plain) == canonical(other)
    assert canonical(canonical(plain)) == canonical(plain)
    assert digest_of(as_ascii(canonical(plain)).encode()) == digest_of(plain)


@pytest.mark.parametrize(
    ("one", "other"),
    [(b'{"b":1,"a":[1.0,1e2,-0.0]}', b'{ "a" : [1, 100, 0], "b": 1}'), (b'"\\u0061"', b'"a"'), (b"1e400", b"1e400")],
)
def test_equal_values_have_equal_digests(one: bytes, other: bytes) -> None:
    assert digest_of(one) == digest_of(other)


@pytest.mark.parametrize(
    ("one", "other"), [(b"1", b'"1"'), (b"1e400", b"null"), (b"[1,2]", b"[2,1]"), (b'"a"', b'"\\u0430"')]
)
def test_other_values_have_other_digests(one: bytes, other: bytes) -> None:
    assert digest_of(one) != digest_of(other)


@pytest.mark.parametrize("text", ['{"a":1e400, "b":\n"\u00e9"}', '{"a":' + "9" * 5000 + "}", '"\U000e0041\x7f"'])
def test_ascii_on_one_line_has_the_digest_of_the_text(text: str) -> None:
    shown = as_ascii(canonical(text.encode()))
    assert shown.isascii()
    assert shown.isprintable()
    assert digest_of(shown.encode()) == digest_of(text.encode())
