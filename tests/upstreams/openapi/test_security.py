"""Credentials: those an operation needs, sent as its scheme says, and never more."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.openapi import mapped, operation, reasons

SCHEMES = {
    "header": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "query": {"type": "apiKey", "in": "query", "name": "api key"},
    "cookie": {"type": "apiKey", "in": "cookie", "name": "sid"},
    "bearer": {"type": "http", "scheme": "Bearer"},
    "basic": {"type": "http", "scheme": "basic"},
    "oauth": {"type": "oauth2", "flows": {}},
    "oidc": {"type": "openIdConnect", "openIdConnectUrl": "https://id.example"},
    "digest": {"type": "http", "scheme": "digest"},
    "mtls": {"type": "mutualTLS"},
    "forbidden": {"type": "apiKey", "in": "header", "name": "Host"},
    "nameless": {"type": "apiKey", "in": "header"},
    "alias": {"$ref": "#/components/securitySchemes/bearer"},
    "lost": {"$ref": "#/nowhere"},
}


def needing(security: Any, *, default: Any = None, **settings: Any) -> Any:
    more = {"components": {"securitySchemes": SCHEMES}} | ({} if default is None else {"security": default})
    given = {} if security is None else {"security": security}
    return mapped({"/x": {"get": operation(**given)}}, more=more, **settings)


@pytest.mark.parametrize(
    ("scheme", "value", "expected"),
    [
        ("header", "k", ("header", "X-Key", "k")),
        ("query", "k", ("query", "api key", "k")),
        ("cookie", "a;b c", ("cookie", "sid", "a%3Bb%20c")),
        ("bearer", "t", ("header", "Authorization", "Bearer t")),
        ("basic", "user:pass", ("header", "Authorization", "Basic dXNlcjpwYXNz")),
        ("oauth", "t", ("header", "Authorization", "Bearer t")),
        ("oidc", "t", ("header", "Authorization", "Bearer t")),
        ("alias", "t", ("header", "Authorization", "Bearer t")),
    ],
)
def test_a_credential_is_sent_as_its_scheme_says(scheme: str, value: str, expected: tuple[str, str, str]) -> None:
    found = needing([{scheme: []}], credentials={scheme: value})
    assert found.credentials == {"run": (expected,)}


@pytest.mark.parametrize("scheme", ["digest", "mtls", "forbidden", "nameless", "lost", "unheard-of"])
def test_a_scheme_we_cant_use_leaves_the_operation_out(scheme: str) -> None:
    found = needing([{scheme: []}], credentials={scheme: "k"})
    assert not found.endpoints
    assert scheme in reasons(found)[-1]


def test_an_operation_whose_credential_is_missing_is_left_out_and_says_which() -> None:
    assert reasons(needing([{"header": []}])) == ["it needs the credential header (apiKey header)"]
    assert reasons(needing([{"header": []}, {"oauth": []}])) == [
        "it needs the credential header (apiKey header), or the credential oauth (oauth2)"
    ]


@pytest.mark.parametrize(
    ("security", "given", "sent"),
    [
        ([{"header": []}, {"bearer": []}], {"bearer": "t"}, ["Authorization"]),
        ([{"header": [], "query": []}], {"header": "k", "query": "q"}, ["X-Key", "api key"]),
        ([{"header": [], "query": []}, {"bearer": []}], {"header": "k", "bearer": "t"}, ["Authorization"]),
        ([{}, {"header": []}], {"header": "k"}, ["X-Key"]),
        ([{}, {"header": []}], {}, []),
        ([], {"header": "k"}, []),
    ],
)
def test_the_first_alternative_that_can_be_met_is_used_and_none_at_all_is_the_last(
    security: Any, given: dict[str, str], sent: list[str]
) -> None:
    found = needing(security, credentials=given)
    assert [one.name for one in found.credentials.get("run", ())] == sent
    assert len(found.endpoints) == 1


def test_an_operation_that_says_nothing_needs_what_the_document_needs() -> None:
    assert reasons(needing(None, default=[{"bearer": []}])) == ["it needs the credential bearer (http Bearer)"]
    assert needing([], default=[{"bearer": []}]).credentials == {}
    assert needing(None, credentials={"bearer": "t"}).credentials == {}


@pytest.mark.parametrize(
    ("scheme", "header"),
    [("bearer", "authorization"), ("oauth", "Authorization"), ("header", "x-key"), ("cookie", "Cookie")],
)
def test_what_the_servers_headers_send_anyway_needs_no_credential(scheme: str, header: str) -> None:
    found = needing([{scheme: []}], headers={header: "own"})
    assert len(found.endpoints) == 1
    assert found.credentials == {}


def test_a_credential_for_no_scheme_of_the_document_is_said() -> None:
    found = needing(None, credentials={"bearrer": "t"})
    assert found.left_out[0].operation == "credentials.bearrer"
    assert "it has header, query" in found.left_out[0].reason
    assert len(found.endpoints) == 1
