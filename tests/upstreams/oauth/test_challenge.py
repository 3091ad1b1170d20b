"""Reading `WWW-Authenticate`: of any server, in any shape, within bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.upstreams.oauth.challenge import Challenge, read_challenge, split_scopes

METADATA = "https://a.example/.well-known/oauth-protected-resource"


@pytest.mark.parametrize(
    ("header", "found"),
    [
        (f'Bearer resource_metadata="{METADATA}", scope="a b"', Challenge(METADATA, ("a", "b"))),
        (f'bearer error="invalid_token",resource_metadata={METADATA}', Challenge(METADATA, (), "invalid_token")),
        (f'Basic realm="x, Bearer", Bearer resource_metadata="{METADATA}"', Challenge(METADATA)),
        (f'DPoP algs="ES256", resource_metadata="{METADATA}"', Challenge(METADATA)),
        ('Bearer scope="a a b", scope="c"', Challenge("", ("a", "b"))),
        ('Bearer realm="a \\"quoted\\" one", scope="a"', Challenge("", ("a",))),
        ("Bearer", Challenge()),
        ("Basic realm=x", Challenge()),
        ("", Challenge()),
    ],
)
def test_a_challenge_is_read(header: str, found: Challenge) -> None:
    assert read_challenge(header) == found


@given(st.text(max_size=400))
def test_any_header_is_read_without_a_fault(header: str) -> None:
    found = read_challenge(f"Bearer {header}")
    assert all(" " not in scope for scope in found.scopes)


def test_scopes_are_bounded_and_those_that_can_not_be_one_are_left_out() -> None:
    assert split_scopes('a "b" c\\d \x07 e') == ("a", "e")
    assert len(split_scopes(" ".join(map(str, range(1000))))) == 100
