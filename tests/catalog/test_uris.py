"""Resource URIs lead back to their server, without collisions and without loss."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.catalog.catalog import Catalog
from pactgate.catalog.uris import ResourceTarget, UriIndex, full_uri, resolve_uri
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.values import Resource

SERVERS = ("files", "web")


def index(**uris: str) -> UriIndex:
    return UriIndex(
        {server: (Resource(server, uri, full_uri(server, uri), b"", b"", ""),) for server, uri in uris.items()}
    )


def resolved(uri: str, *indexes: UriIndex) -> ResourceTarget:
    return resolve_uri(uri, indexes, SERVERS, SERVERS)


@pytest.mark.requirement("S0/ECO-003")
@given(server=st.from_regex(r"[a-z][a-z0-9-]{0,49}", fullmatch=True), uri=st.text(min_size=1))
def test_every_full_uri_leads_back_to_its_server_and_its_own_uri(server: str, uri: str) -> None:
    assert resolve_uri(full_uri(server, uri), (), {server}, {server}) == ResourceTarget(server, uri)


@pytest.mark.requirement("S0/ECO-003")
def test_uris_that_differ_only_in_their_scheme_stay_apart() -> None:
    assert full_uri("files", "file:///x") != full_uri("files", "http:///x")
    assert urlsplit(full_uri("files", "file:///x")).scheme == "files+file"


def test_a_servers_own_uri_is_understood_while_one_server_lists_it() -> None:
    assert resolved("file:///a", index(files="file:///a", web="http://b")) == ResourceTarget("files", "file:///a")


def test_a_uri_of_several_servers_is_ambiguous_and_the_candidates_are_named() -> None:
    with pytest.raises(GatewayFailure) as caught:
        resolved("file:///a", index(files="file:///a", web="file:///a"))
    assert caught.value.kind is Kind.AMBIGUOUS_RESOURCE
    assert caught.value.details["candidates"] == ["files+file:///a", "web+file:///a"]


@pytest.mark.parametrize("uri", ["file:///nowhere", "nobody+file:///a", "", "javascript:alert(1)"])
def test_a_uri_nobody_lists_is_unknown(uri: str) -> None:
    with pytest.raises(GatewayFailure) as caught:
        resolved(uri, index(files="file:///a"))
    assert caught.value.kind is Kind.UNKNOWN_RESOURCE


def test_on_one_server_alone_every_uri_is_that_servers_own() -> None:
    catalog = Catalog({}, server_info=b"{}")
    assert catalog.resolve_uri("anything+else:x", "files") == ResourceTarget("files", "anything+else:x")


def test_a_uri_that_a_server_was_last_known_to_list_stays_its_own_while_it_is_away() -> None:
    listed = {"web": (Resource("web", "file:///a", "web+file:///a", b"", b"", ""),)}
    with pytest.raises(GatewayFailure) as caught:
        resolved("file:///a", UriIndex(listed, {"files": ["file:///a"]}))
    assert caught.value.kind is Kind.AMBIGUOUS_RESOURCE
    assert resolved("file:///a", UriIndex({}, {"files": ["file:///a"]})) == ResourceTarget("files", "file:///a")


def test_a_resource_can_not_take_the_place_of_a_template_of_another_server() -> None:
    with pytest.raises(GatewayFailure) as caught:
        resolved("file:///{path}", index(web="file:///{path}"), index(files="file:///{path}"))
    assert caught.value.kind is Kind.AMBIGUOUS_RESOURCE


def test_a_uri_with_the_prefix_of_a_removed_server_reaches_nobody() -> None:
    listed = index(web="gone+file:///a")
    with pytest.raises(GatewayFailure) as caught:
        resolve_uri("gone+file:///a", (listed,), SERVERS, (*SERVERS, "gone"))
    assert caught.value.kind is Kind.UNKNOWN_RESOURCE
    assert resolve_uri("web+gone+file:///a", (listed,), SERVERS, (*SERVERS, "gone")).uri == "gone+file:///a"
