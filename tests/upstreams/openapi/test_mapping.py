"""A whole document: which operations become tools, where they are called, and what is said of the rest."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.config.sections.openapi import ExcludedOperations, IncludedOperations
from pactgate.config.server_settings import ServerConfig
from pactgate.policy.schema.validation import Schema, compile_schema
from pactgate.protocol.messages import encode_json
from pactgate.upstreams.openapi import mapping
from pactgate.upstreams.openapi.document_text import UnreadableDocumentError
from pactgate.upstreams.openapi.mapping import MappedDocument, map_document
from pactgate.upstreams.rest.tool_definition import definition
from tests.support.openapi import BASE, document, mapped, only, operation, reasons

PATHS = {
    "/users": {"get": operation("listUsers", tags=["users"]), "post": operation("addUser", tags=["users", "admin"])},
    "/users/{id}": {"get": operation("users/one", tags=["users"]), "delete": operation(None, tags=["admin"])},
    "/health": {"get": operation("health")},
}


def names(found: MappedDocument) -> list[str]:
    return [endpoint.name for endpoint in found.endpoints]


def at(servers: Any, url: str | None = None, **given_settings: Any) -> MappedDocument:
    root = {**document({"/x": {"get": operation()}}), "servers": servers}
    return map_document(root, ServerConfig(id="api", openapi=url or "api.json", **given_settings), url=url)


def test_every_operation_becomes_one_endpoint() -> None:
    found = mapped(PATHS)
    assert names(found) == ["listUsers", "addUser", "users_one", "delete_users_by_id", "health"]
    assert [(one.method, one.path) for one in found.endpoints[:3]] == [
        ("GET", "/users"),
        ("POST", "/users"),
        ("GET", "/users/{id}"),
    ]
    assert (found.title, found.version, found.base_url, found.not_chosen) == ("Example", "1", BASE, 0)


@pytest.mark.parametrize(
    ("include", "exclude", "expected"),
    [
        ({"tags": ("users",)}, {}, ["listUsers", "addUser", "users_one"]),
        ({"tags": ("users",), "methods": ("GET",)}, {}, ["listUsers", "users_one"]),
        ({"paths": ("/users/*",)}, {}, ["users_one", "delete_users_by_id"]),
        ({"operations": ("users/*", "health")}, {}, ["users_one", "health"]),
        ({"operations": ("delete_*",)}, {}, ["delete_users_by_id"]),
        ({}, {"tags": ("adm?n",)}, ["listUsers", "users_one", "health"]),
        ({}, {"methods": ("DELETE",), "paths": ("/health",)}, ["listUsers", "addUser", "users_one"]),
        ({"tags": ("[u]sers",)}, {}, []),
    ],
)
def test_include_takes_what_matches_every_list_and_exclude_drops_what_matches_any(
    include: Any, exclude: Any, expected: list[str]
) -> None:
    found = mapped(PATHS, include=IncludedOperations(**include), exclude=ExcludedOperations(**exclude))
    assert names(found) == expected
    assert found.not_chosen == 5 - len(expected)
    assert not found.left_out


def test_choosing_others_renames_nothing() -> None:
    paths = {"/a": {"get": operation("get", tags=["a"])}, "/b": {"get": operation("get")}}
    assert names(mapped(paths)) == ["get_a", "get_b"]
    assert names(mapped(paths, include=IncludedOperations(tags=("a",)))) == ["get_a"]


def test_deprecated_operations_are_left_out_unless_wanted() -> None:
    paths = {"/a": {"get": operation("old", deprecated=True)}}
    assert "deprecated" in reasons(mapped(paths))[0]
    assert names(mapped(paths, include=IncludedOperations(deprecated=True))) == ["old"]


def test_a_name_fits_behind_its_servers_id() -> None:
    paths = {"/a": {"get": operation("x" * 100)}}
    found = map_document(document(paths), ServerConfig(id="a" * 20, openapi="x"))
    assert len(found.endpoints[0].name) == 64 - 2 - 20


@pytest.mark.parametrize(
    ("servers", "url", "expected"),
    [
        ([{"url": "https://a.example/v1/"}, {"url": "https://b.example"}], None, "https://a.example/v1"),
        ([{"url": "/v2"}], "https://docs.example/spec/api.yaml", "https://docs.example/v2"),
        ([{"url": "v2"}], "https://docs.example/spec/api.yaml", "https://docs.example/spec/v2"),
        ([], "https://docs.example/spec/api.yaml", "https://docs.example"),
        (None, "https://docs.example/spec/api.yaml", "https://docs.example"),
        (
            [
                {
                    "url": "https://{region}.example:{port}/{v}",
                    "variables": {"region": {"default": "eu"}, "port": {"default": "8443"}, "v": {"default": 1}},
                }
            ],
            None,
            "https://eu.example:8443/1",
        ),
    ],
)
def test_the_first_server_of_the_document_is_where_it_is_called(servers: Any, url: str | None, expected: str) -> None:
    assert at(servers, url).base_url == expected


def test_the_operators_base_url_counts_before_every_server_of_the_document() -> None:
    paths = {"/x": {"servers": [{"url": "https://c.example"}], "get": operation()}}
    assert mapped(paths, base_url="https://mine.example").base_url == "https://mine.example"
    assert only(paths, base_url="https://mine.example").base_url is None
    assert only(paths).base_url == "https://c.example"


@pytest.mark.parametrize(
    "servers",
    [
        [],
        None,
        [{"url": "/v1"}],
        [{"url": "file:///etc"}],
        [{"url": "https://{x}.example"}],
        [{"url": 7}],
        [{}],
        [{"url": "https://u:p@a.example"}],
        [{"url": "https://a.example/../x"}],
        [{"url": "https://a.example?q=1"}],
        [{"url": "https://[bad"}],
        [{"url": "javascript:x"}],
    ],
)
def test_a_document_that_names_no_server_to_call_asks_for_one(servers: Any) -> None:
    with pytest.raises(UnreadableDocumentError, match="set baseUrl"):
        at(servers)
    assert at(servers, base_url="https://a.example").base_url == "https://a.example"


@pytest.mark.parametrize(
    "secret", [{"credentials": {"key": "s3cret-value"}}, {"headers": {"Authorization": "Bearer x"}}]
)
def test_a_document_from_elsewhere_cant_send_credentials_to_another_host(secret: dict[str, Any]) -> None:
    servers, url = [{"url": "https://evil.example"}], "https://docs.example/api.yaml"
    with pytest.raises(UnreadableDocumentError, match="only when baseUrl names it"):
        at(servers, url, **secret)
    assert at(servers, url).base_url == "https://evil.example"
    assert at(servers, url, base_url="https://evil.example", **secret).base_url == "https://evil.example"
    assert at([{"url": "/v1"}], url, **secret).base_url == "https://docs.example/v1"


@pytest.mark.parametrize("url", ["https://docs.example/x", None])
def test_nor_can_one_of_its_operations_unless_the_operator_allows_the_host(url: str | None) -> None:
    paths = {"/x": {"get": operation(servers=[{"url": "https://uploads.example"}])}}
    root = {**document(paths), "servers": [{"url": "https://docs.example"}]}
    secret: dict[str, Any] = {"headers": {"Authorization": "Bearer x"}}
    config = ServerConfig(id="api", openapi="x", **secret)
    assert "credentials go only to hosts in allowedHosts" in reasons(map_document(root, config, url=url))[0]
    allowed = ServerConfig(id="api", openapi="x", allowed_hosts=("uploads.example",), **secret)
    assert map_document(root, allowed, url=url).endpoints[0].base_url == "https://uploads.example"


@pytest.mark.parametrize(
    ("root", "why"),
    [
        ([], "not an object"),
        ("text", "not an object"),
        ({}, "has no `openapi: 3.x`"),
        ({"openapi": "2.9", "paths": {}}, "it says openapi: 2.9"),
        ({"openapi": 3.1, "paths": {}}, "it says openapi: 3.1"),
        ({"swagger": "2.0", "paths": {}}, "swagger2openapi"),
        ({"openapi": "3.0.0", "servers": [{"url": BASE}], "paths": []}, "no readable paths"),
    ],
)
def test_what_is_no_openapi_3_document_says_so(root: Any, why: str) -> None:
    with pytest.raises(UnreadableDocumentError, match=why):
        map_document(root, ServerConfig(id="api", openapi="x"))


def test_a_document_without_operations_is_fine() -> None:
    assert mapped({}) == mapped({"x-own": {"get": operation()}})
    assert (
        map_document({"openapi": "3.1.0", "servers": [{"url": BASE}]}, ServerConfig(id="a", openapi="x")).endpoints
        == ()
    )


@pytest.mark.parametrize(
    ("path", "item", "why"),
    [
        ("/a/../b", {"get": operation()}, "path can't be called"),
        ("//host/x", {"get": operation()}, "path can't be called"),
        ("/a?b=c", {"get": operation()}, "path can't be called"),
        ("/a#b", {"get": operation()}, "path can't be called"),
        ("/a b", {"get": operation()}, "path can't be called"),
        ("/{x}/{x}", {"get": operation()}, "path can't be called"),
        ("/a", {"trace": operation()}, "TRACE is not a method"),
        ("/a", {"$ref": "https://evil.example/x"}, "nothing is fetched"),
        ("/a", {"get": operation(parameters=[{"$ref": "#/nowhere"}])}, "leads nowhere"),
    ],
)
def test_one_bad_operation_costs_nothing_but_itself(path: str, item: Any, why: str) -> None:
    found = mapped({path: item, "/good": {"get": operation("good")}})
    assert names(found) == ["good"]
    assert why in reasons(found)[0]


def test_an_operation_that_lies_about_its_id_is_called_by_its_path() -> None:
    assert names(mapped({"/a": {"get": {"operationId": 7}}})) == ["get_a"]


def test_ten_thousand_operations_are_read_and_no_more() -> None:
    paths = {f"/a{number}": {"get": operation(f"op{number}")} for number in range(mapping.MAX_OPERATIONS + 5)}
    found = mapped(paths)
    assert len(found.endpoints) == mapping.MAX_OPERATIONS
    assert reasons(found) == [f"there are more than {mapping.MAX_OPERATIONS} operations"]


def test_answers_are_held_against_the_document_only_where_that_is_asked_for() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    answer = {"200": {"description": "", "content": {"application/json": {"schema": schema}}}}
    paths = {"/x": {"get": operation(responses=answer)}}
    assert only(paths).output_schema is None
    assert only(paths, output_validation="enforce").output_schema == schema


_keys = st.sampled_from(
    [
        "get",
        "post",
        "parameters",
        "requestBody",
        "responses",
        "200",
        "content",
        "application/json",
        "schema",
        "name",
        "in",
        "$ref",
        "operationId",
        "security",
        "servers",
        "url",
        "variables",
        "tags",
        "deprecated",
        "style",
        "required",
    ]
)
_junk = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["x", "#/paths", "string", "/a", "query", "200", "get"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=4),
    max_leaves=20,
)
_operations = st.fixed_dictionaries(
    {},
    optional={
        "operationId": _junk,
        "parameters": _junk,
        "requestBody": _junk,
        "responses": _junk,
        "security": _junk,
        "servers": _junk,
        "tags": _junk,
    },
)
_paths = st.dictionaries(
    st.sampled_from(["/a", "/a/{x}", "/b/{y}/c", "x-y", "/{", "//"]),
    st.dictionaries(st.sampled_from(["get", "post", "parameters", "$ref", "put"]), _operations | _junk, max_size=3)
    | _junk,
    max_size=4,
)


@given(_paths, st.dictionaries(st.sampled_from(["components", "servers", "security", "info"]), _junk, max_size=2))
def test_any_document_is_mapped_or_refused_and_nothing_else(paths: Any, more: dict[str, Any]) -> None:
    root = {**document(paths), **more}
    for version in ("3.0.3", "3.1.0"):
        try:
            found = map_document(
                {**root, "openapi": version}, ServerConfig(id="api", openapi="x", output_validation="enforce")
            )
        except UnreadableDocumentError:
            continue
        for endpoint in found.endpoints:
            tool = json.loads(bytes(definition(endpoint)))
            assert isinstance(compile_schema(encode_json(tool["inputSchema"])), Schema)


@given(st.integers(0, 1000))
def test_the_order_of_paths_changes_no_name(seed: int) -> None:
    paths = {f"/{a}/{b}": {"get": operation(b)} for a in ("x", "{y}") for b in ("get", "list", "{id}")}
    shuffled = list(paths.items())
    random.Random(seed).shuffle(shuffled)
    assert {one.path: one.name for one in mapped(dict(shuffled)).endpoints} == {
        one.path: one.name for one in mapped(paths).endpoints
    }
