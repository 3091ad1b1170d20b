"""Credentials of single endpoints: where they go, and that they do not show."""

from __future__ import annotations

from pactgate.upstreams.rest.credentials import Credential, headers_of, query_of, with_query

GIVEN = (
    Credential("header", "X-Key", "k"),
    Credential("cookie", "a", "1"),
    Credential("cookie", "b", "2"),
    Credential("query", "api key", "a&b"),
)


def test_headers_and_cookies_make_headers() -> None:
    assert headers_of(GIVEN) == {"X-Key": "k", "Cookie": "a=1; b=2"}
    assert headers_of(()) == {}


def test_the_rest_goes_into_the_query_behind_what_is_there() -> None:
    assert query_of(GIVEN) == "api%20key=a%26b"
    assert with_query("/x", "k=v") == "/x?k=v"
    assert with_query("/x?a=b", "k=v") == "/x?a=b&k=v"
    assert with_query("/x?a=b", "") == "/x?a=b"


def test_a_credential_does_not_show_its_value() -> None:
    assert "s3cret" not in repr(Credential("header", "X-Key", "s3cret"))
