"""From arguments to one request: everything in its place, and no value changes where the request goes."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from pactgate.core.failures import Category, GatewayFailure, Kind, Verdict
from pactgate.upstreams.rest.request import HttpRequest, RequestPlan, arguments_of
from tests.support.each import each
from tests.support.rest_api import endpoint, raw
from tests.upstreams.rest.test_parameter_styles import TRAVERSALS

TEXT = {"type": "string"}


def parameter(name: str, place: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "in": place, "required": place == "path", "schema": TEXT, **more}


def refused(plan: RequestPlan, arguments: dict[str, Any]) -> GatewayFailure:
    with pytest.raises(GatewayFailure) as raised:
        plan.build(raw(arguments))
    failure = raised.value
    assert (failure.kind, failure.category) == (Kind.INVALID_ARGUMENTS, Category.CONTRACT_VIOLATION)
    assert failure.verdict is Verdict.DID_NOT_RUN
    return failure


def built(plan: RequestPlan, arguments: dict[str, Raw]) -> HttpRequest | None:
    """The request, or None where the arguments were refused; anything else fails the test."""
    try:
        return plan.build(arguments)
    except GatewayFailure as failure:
        if failure.kind is not Kind.INVALID_ARGUMENTS:
            raise
        return None


def test_every_argument_goes_to_its_place() -> None:
    plan = RequestPlan(
        endpoint(
            method="POST",
            path="/a/{id}/b",
            parameters=[
                parameter("id", "path"),
                parameter("q", "query"),
                parameter("X-Trace", "header"),
                parameter("title", "body"),
                parameter("id", "body", argument="body_id"),
            ],
        ),
        "/v1/",
    )
    request = plan.build(raw({"id": "x y", "q": "1&2", "X-Trace": "t", "title": "T", "body_id": 5}))
    assert (request.method, request.path) == ("POST", "/v1/a/x%20y/b?q=1%262")
    assert request.headers == b"X-Trace: t\r\nContent-Type: application/json\r\n"
    assert json.loads(request.body) == {"title": "T", "id": 5}


def test_what_was_left_out_is_left_out_and_not_null() -> None:
    parameters = [parameter("q", "query"), parameter("X-A", "header"), parameter("b", "body")]
    request = RequestPlan(endpoint(method="GET", path="/x", parameters=parameters)).build({})
    assert (request.path, request.headers, request.body) == ("/x", b"", b"")
    post = RequestPlan(endpoint(method="POST", path="/x", parameters=parameters)).build({})
    assert post.body == b"{}"


def test_a_post_without_a_body_says_so() -> None:
    request = RequestPlan(endpoint(method="POST", path="/x", parameters=[])).build({})
    assert (request.headers, request.body) == (b"Content-Length: 0\r\n", b"")


@pytest.mark.requirement("S4/R2")
@pytest.mark.parametrize("method", ["GET", "DELETE", "POST", "PATCH"])
@pytest.mark.parametrize("place", ["query", "header", "body"])
def test_a_missing_required_argument_is_refused_before_anything_is_sent(method: str, place: str) -> None:
    plan = RequestPlan(endpoint(method=method, path="/x", parameters=[parameter("need", place, required=True)]))
    assert "'need'" in refused(plan, {}).message


def test_an_argument_that_goes_nowhere_is_refused() -> None:
    assert refused(RequestPlan(endpoint()), {"id": "1", "more": 1}).details["errors"][0]["pointer"] == "/more"


def test_the_properties_of_a_plain_body_are_arguments() -> None:
    schema = {"type": "object", "properties": {"a": TEXT, "b": TEXT}, "required": ["a"]}
    plain = endpoint(method="PUT", path="/x", parameters=[], body={"schema": schema})
    assert [(one.name, one.required) for one in arguments_of(plain)] == [("a", True), ("b", False)]
    assert RequestPlan(plain).build(raw({"a": "1"})).body == b'{"a":"1"}'
    refused(RequestPlan(plain), {"b": "1"})


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "array"},
        {"type": "object"},
        {"type": "object", "properties": {"a": TEXT}, "oneOf": [{}]},
        {"type": "object", "properties": {"a": TEXT}, "additionalProperties": True},
    ],
)
def test_any_other_body_is_one_argument(schema: dict[str, Any]) -> None:
    whole = endpoint(method="PUT", path="/x", parameters=[], body={"schema": schema, "required": False})
    assert [one.name for one in arguments_of(whole)] == ["body"]
    assert RequestPlan(whole).build(raw({"body": [1]})).body == b"[1]"
    assert RequestPlan(whole).build({}).headers == b"Content-Length: 0\r\n"


def test_a_body_that_can_not_be_written_is_refused() -> None:
    plan = RequestPlan(
        endpoint(method="PUT", path="/x", parameters=[], body={"contentType": "text/plain", "argument": "text"})
    )
    assert plan.build(raw({"text": "hi"})).headers == b"Content-Type: text/plain\r\n"
    refused(plan, {"text": {"a": 1}})


@pytest.mark.requirement("S4/R2")
@each("value", TRAVERSALS)
@each("path", ["/items/{id}", "/items/{id}/parts", "/items/x-{id}", "/{id}"])
def test_no_value_of_the_traversal_table_gets_through(value: str, path: str) -> None:
    refused(RequestPlan(endpoint(path=path), "/v1"), {"id": value})


def test_two_values_can_not_make_a_dot_segment_together() -> None:
    pair = endpoint(path="/x/{a}{b}/y", parameters=[parameter("a", "path"), parameter("b", "path")])
    refused(RequestPlan(pair), {"a": ".", "b": "x"})
    label = endpoint(path="/x/{a}/y", parameters=[parameter("a", "path", style="label")])
    refused(RequestPlan(label), {"a": "."})


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "é", " a"])
def test_a_header_argument_can_not_bring_another_header(value: str) -> None:
    refused(RequestPlan(endpoint(path="/x", parameters=[parameter("X-A", "header")])), {"X-A": value})


def test_a_path_and_query_are_bounded() -> None:
    plan = RequestPlan(endpoint(path="/x", parameters=[parameter("q", "query")]))
    refused(plan, {"q": "x" * 20_000})


@given(st.text(max_size=40), st.text(max_size=40), st.lists(st.text(max_size=10), max_size=4))
def test_no_argument_changes_host_or_segments_and_each_comes_back(one: str, two: str, tags: list[str]) -> None:
    shop = endpoint(
        path="/shops/{one}/items/{two}",
        parameters=[parameter("one", "path"), parameter("two", "path"), parameter("tag", "query", schema={})],
    )
    request = built(RequestPlan(shop, "/v1"), raw({"one": one, "two": two, "tag": tags}))
    if request is None:
        return
    parts = urlsplit(f"https://api.example:8443{request.path}")
    assert (parts.scheme, parts.netloc, parts.fragment) == ("https", "api.example:8443", "")
    assert [unquote(segment) for segment in parts.path.split("/")] == ["", "v1", "shops", one, "items", two]
    assert parse_qsl(parts.query, keep_blank_values=True) == [("tag", tag) for tag in tags]


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    )
)
def test_whatever_the_arguments_are_the_outcome_is_a_request_or_a_refusal(value: Any) -> None:
    plan = RequestPlan(
        endpoint(
            parameters=[
                parameter("id", "path"),
                parameter("q", "query", style="deepObject"),
                parameter("X-H", "header"),
            ]
        )
    )
    text = json.dumps(value).replace("NaN", "0").replace("-Infinity", "0").replace("Infinity", "0").encode()
    request = built(plan, {"id": Raw(b'"1"'), "q": Raw(text), "X-H": Raw(text)})
    if request is not None:
        assert request.path.startswith("/items/1")
        assert request.headers.count(b"\r\n") <= 1
