"""Resource URIs lead back to their server, without collisions and without loss."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.catalog.uris import ResourceTarget, UriIndex, full_uri
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.values import Resource

SERVERS = ("files", "web")


def index(**uris: str) -> UriIndex:
    return UriIndex(
        {server: (Resource(server, uri, full_uri(server, uri), b"", b"", ""),) for server, uri in uris.items()}
    )


@pytest.mark.requirement("S0/ECO-003")
@given(server=st.from_regex(r"[a-z][a-z0-9-]{0,49}", fullmatch=True), uri=st.text(min_size=1))
def test_every_full_uri_leads_back_to_its_server_and_its_own_uri(server: str, uri: str) -> None:
    assert UriIndex({}).resolve(full_uri(server, uri), {server}) == ResourceTarget(server, uri)


@pytest.mark.requirement("S0/ECO-003")
def test_uris_that_differ_only_in_their_scheme_stay_apart() -> None:
    assert full_uri("files", "file:///x") != full_uri("files", "http:///x")
    assert urlsplit(full_uri("files", "file:///x")).scheme == "files+file"


def test_a_servers_own_uri_is_understood_while_one_server_lists_it() -> None:
    assert index(files="file:///a", web="http://b").resolve("file:///a", SERVERS) == ResourceTarget(
        "files", "file:///a"
    )


def test_a_uri_of_several_servers_is_ambiguous_and_the_candidates_are_named() -> None:
    with pytest.raises(GatewayFailure) as caught:
        index(files="file:///a", web="file:///a").resolve("file:///a", SERVERS)
    assert caught.value.kind is Kind.AMBIGUOUS_RESOURCE
    assert caught.value.details["candidates"] == ["files+file:///a", "web+file:///a"]


@pytest.mark.parametrize("uri", ["file:///nowhere", "nobody+file:///a", "", "javascript:alert(1)"])
def test_a_uri_nobody_lists_is_unknown(uri: str) -> None:
    with pytest.raises(GatewayFailure) as caught:
        index(files="file:///a").resolve(uri, SERVERS)
    assert caught.value.kind is Kind.UNKNOWN_RESOURCE


def test_on_one_server_alone_every_uri_is_that_servers_own() -> None:
    assert index().resolve("anything+else:x", SERVERS, "files") == ResourceTarget("files", "anything+else:x")
