"""Cache hints: what is not said, or said badly, is stale and private; what is left never grows."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from pactgate.protocol.cache_hints import STALE, Hint, read_hint, together

HINTS = st.builds(Hint, st.integers(0, 10**12), st.booleans())


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({}, None),
        ({"ttlMs": b"60000", "cacheScope": b'"public"'}, Hint(60000, True)),
        ({"ttlMs": b"60000", "cacheScope": b'"private"'}, Hint(60000, False)),
        ({"ttlMs": b"60000"}, Hint(60000, False)),
        ({"ttlMs": b"-1", "cacheScope": b'"public"'}, Hint(0, True)),
        ({"ttlMs": b"1.5"}, STALE),
        ({"ttlMs": b'"60000"'}, STALE),
        ({"ttlMs": b"null", "cacheScope": b"7"}, STALE),
        ({"cacheScope": b'"public"'}, None),
    ],
)
def test_a_hint_is_read_for_what_it_is_worth(members: dict[str, bytes], expected: Hint | None) -> None:
    assert read_hint({name: Raw(text) for name, text in members.items()}) == expected


@given(HINTS, st.floats(0, 1e13))
def test_what_is_left_is_never_more_than_was_given_and_never_negative(hint: Hint, elapsed_ms: float) -> None:
    left = hint.after(elapsed_ms)
    assert 0 <= left.ttl_ms <= max(0, hint.ttl_ms - elapsed_ms)
    assert left.is_public == hint.is_public


@given(st.lists(HINTS, min_size=1))
def test_several_together_are_as_fresh_as_the_first_to_go_stale_and_as_private_as_any(hints: list[Hint]) -> None:
    whole = together(hints)
    assert whole.ttl_ms == min(hint.ttl_ms for hint in hints)
    assert whole.is_public == all(hint.is_public for hint in hints)


def test_nothing_together_is_stale() -> None:
    assert together([]) == STALE


@given(HINTS)
def test_a_hint_is_written_as_it_is_read(hint: Hint) -> None:
    written = json.loads(b"{" + hint.encode())
    assert written == {"ttlMs": hint.ttl_ms, "cacheScope": "public" if hint.is_public else "private"}
