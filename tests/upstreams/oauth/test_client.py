"""Who the gateway is at an authorization server: never somebody else's client, and proven as the endpoint wants it."""

from __future__ import annotations

import pytest

from pactgate.upstreams.oauth.client import ClientSettings, OAuthClient, given_client, prove
from pactgate.upstreams.oauth.discovery import AuthorizationServer
from tests.support.sign_in_steps import (
    ALL,
    AS_FORM,
    ISSUER,
    METADATA,
    REDIRECT,
    begin,
)


def test_a_client_of_one_issuer_is_never_shown_to_another() -> None:
    known = OAuthClient("https://old.example", "old-client", redirect_uri=REDIRECT)
    begun, _ = begin(ALL, known=known)
    assert begun.client.id == "c1"


def test_a_registered_client_is_used_again_for_the_same_redirect_uri_alone() -> None:
    known = OAuthClient(ISSUER, "known", redirect_uri=REDIRECT)
    assert begin(ALL, known=known)[0].client.id == "known"
    moved = OAuthClient(ISSUER, "known", redirect_uri="http://127.0.0.1:1/callback")
    assert begin(ALL, known=moved)[0].client.id == "c1"


def test_a_client_id_metadata_document_is_used_where_it_is_taken_and_else_a_client_is_registered() -> None:
    document = "https://pactgate.example/client.json"
    takes = {**ALL, AS_FORM: {**METADATA, "client_id_metadata_document_supported": True}}
    assert begin(takes, client=ClientSettings(document))[0].client.id == document
    assert begin(ALL, client=ClientSettings(document))[0].client.id == "c1"


@pytest.mark.parametrize(
    ("method", "members", "authorization"),
    [
        ("none", {"client_id": "i d"}, ""),
        ("client_secret_post", {"client_id": "i d", "client_secret": "s:1"}, ""),
        ("client_secret_basic", {}, "Basic aStkOnMlM0Ex"),
    ],
)
def test_a_client_proves_itself_as_the_endpoint_wants_it(
    method: str, members: dict[str, str], authorization: str
) -> None:
    fetch = prove(OAuthClient(ISSUER, "i d", "s:1", method), "https://t", {"a": "b"})
    assert (fetch.form, fetch.authorization) == ({"a": "b", **members}, authorization)


def test_metadata_without_a_list_of_methods_means_basic() -> None:
    found = AuthorizationServer("i", "a", "t")
    client = given_client("linear", found, ClientSettings("id", "secret"))
    assert client is not None
    assert client.auth_method == "client_secret_basic"
