from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.inbound.oauth.token_form import TokenRefusedError, decode_part, encode_part, is_jwt, read_signed


@given(st.binary(max_size=50))
def test_one_value_has_one_spelling(data: bytes) -> None:
    text = encode_part(data)
    assert decode_part(text) == data
    for other in (text + "=", text + "A", "+" + text, text + "\n"):
        try:
            assert decode_part(other) != data
        except TokenRefusedError:
            continue


@given(st.text(max_size=200))
def test_whatever_is_sent_is_read_or_refused(text: str) -> None:
    for token in (text, f"eyJ{text}", f"{text}.{text}.{text}"):
        try:
            read_signed(token)
        except TokenRefusedError:
            continue


@pytest.mark.parametrize("data", [b'{"a":NaN}', b'{"a":1}x', b'\xff{"a":1}', b'{"a":{"b":1,"b":2}}', b"1", b""])
def test_what_is_not_one_plain_json_object_is_refused(data: bytes) -> None:
    head = encode_part(json.dumps({"alg": "RS256"}).encode())
    with pytest.raises(TokenRefusedError):
        read_signed(f"{head}.{encode_part(data)}.AA")


@pytest.mark.parametrize(
    ("token", "expected"), [("eyJ.a.b", True), ("pg_a_b", False), ("a.b.c", False), ("eyJ", False)]
)
def test_only_what_looks_like_a_jwt_is_taken_for_one(token: str, expected: Any) -> None:
    assert is_jwt(token) is expected
