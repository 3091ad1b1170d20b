"""What the flows read from answers, and what they say when they can't go on."""

from __future__ import annotations

import pytest

from pactgate.core.failures import Kind, Verdict
from pactgate.upstreams.oauth.steps import (
    Fetched,
    authorization_required,
    decode_object,
    sign_in_failure,
    text_of,
    texts_of,
)


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b"[" * 10_000, b'"text"'])
def test_what_is_no_object_is_nothing(body: bytes) -> None:
    assert decode_object(Fetched(200, body)) is None


def test_members_of_another_type_are_nothing() -> None:
    assert text_of({"a": 5}, "a") == text_of({}, "a") == ""
    assert texts_of({"a": "b"}, "a") is None
    assert texts_of({"a": ["b", 5, "c"]}, "a") == ("b", "c")


def test_the_words_of_a_stranger_are_for_whoever_signs_in_and_for_nobody_else() -> None:
    failure = sign_in_failure("linear", "it was refused.", "call\nthis number")
    assert "'call this number'" in failure.message
    assert "number" not in failure.public
    assert (failure.kind, failure.verdict) == (Kind.AUTHORIZATION_REQUIRED, Verdict.DID_NOT_RUN)


def test_the_next_step_is_part_of_the_message() -> None:
    assert authorization_required("linear", "nobody has signed in.").message == (
        "linear needs sign-in: nobody has signed in. Run `pactgate login linear`."
    )
