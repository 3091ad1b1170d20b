"""One operation: its parameters, its body, its answers, its words."""

from __future__ import annotations

from typing import Any

import pytest

from pactgate.upstreams.openapi.operations import DESCRIPTION_CHARS, merged_object
from tests.support.openapi import answering, body, mapped, only, operation, parameter, reasons

OBJECT = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
PET = {"$ref": "#/components/schemas/Pet"}


def content(schema: Any = None, kind: str = "application/json") -> dict[str, Any]:
    return {"description": "", "content": {kind: {"schema": OBJECT if schema is None else schema}}}


EMPTY: dict[str, Any] = {"description": ""}


def test_parameters_of_path_and_operation_are_merged_and_the_operations_count() -> None:
    shared = [
        {"name": "a", "in": "query", "schema": {"type": "string"}},
        {"name": "b", "in": "query"},
        {"name": "X-H", "in": "header"},
    ]
    own = [
        {"name": "a", "in": "query", "required": True, "schema": {"type": "integer"}},
        {"name": "x-h", "in": "header", "required": True},
    ]
    found = only({"/x": {"parameters": shared, "get": operation(parameters=own)}}).parameters
    assert [(one.name, one.in_, one.required) for one in found] == [
        ("a", "query", True),
        ("b", "query", False),
        ("x-h", "header", True),
    ]
    assert found[0].schema == {"type": "integer"}


@pytest.mark.parametrize("style", ["form", "spaceDelimited", "pipeDelimited", "deepObject"])
@pytest.mark.parametrize("explode", [True, False, None])
def test_styles_are_taken_over(style: str, explode: bool | None) -> None:
    words: dict[str, Any] = {"style": style} | ({} if explode is None else {"explode": explode})
    found = parameter({"type": "array"}, **words)
    assert (found.style, found.explode) == (style, explode)


@pytest.mark.parametrize(("place", "style"), [("path", "label"), ("path", "matrix"), ("header", "simple")])
def test_so_are_those_of_paths_and_headers(place: str, style: str) -> None:
    given = {"name": "id", "in": place, "required": True, "style": style, "schema": {"type": "string"}}
    (found,) = only({"/x/{id}" if place == "path" else "/x": {"get": operation(parameters=[given])}}).parameters
    assert found.style == style


def test_a_placeholder_nobody_declared_is_a_text_and_a_path_parameter_without_one_goes_nowhere() -> None:
    (found,) = only({"/x/{id}": {"get": operation(parameters=[{"name": "other", "in": "path"}])}}).parameters
    assert (found.name, found.in_, found.required, found.schema) == ("id", "path", True, {"type": "string"})


def test_a_path_parameter_is_always_required() -> None:
    (found,) = only({"/x/{id}": {"get": operation(parameters=[{"name": "id", "in": "path"}])}}).parameters
    assert found.required


def test_arguments_get_names_every_client_accepts() -> None:
    found = only(
        {
            "/x/{id}": {
                "get": operation(
                    parameters=[
                        {"name": "id", "in": "query"},
                        {"name": "page[size]", "in": "query"},
                    ]
                )
            }
        }
    ).parameters
    assert [(one.name, one.argument) for one in found] == [
        ("id", None),
        ("id", "query_id"),
        ("page[size]", "page_size"),
    ]


@pytest.mark.parametrize("name", ["Accept", "content-type", "AUTHORIZATION"])
def test_headers_openapi_says_to_ignore_are_ignored(name: str) -> None:
    assert (
        only({"/x": {"get": operation(parameters=[{"name": name, "in": "header", "required": True}])}}).parameters == ()
    )


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"name": "c", "in": "cookie"}, "goes into a cookie"),
        ({"name": "Host", "in": "header"}, "the gateway writes itself"),
        ({"name": "Mcp-Session-Id", "in": "header"}, "the gateway writes itself"),
        ({"name": "X\r\nHost: evil.example", "in": "header"}, "can't be sent"),
        ({"name": "f", "in": "query", "content": {"image/png": {}}}, "is written as image/png"),
        ({"name": "f", "in": "query", "style": "matrix"}, "not allowed there"),
    ],
)
def test_a_parameter_that_cant_be_sent_is_done_without_where_it_is_optional(given: Any, why: str) -> None:
    found = mapped({"/x": {"get": operation(parameters=[given])}})
    assert len(found.endpoints) == 1
    assert found.endpoints[0].parameters == ()
    assert why in reasons(found)[0]
    assert "is optional and skipped" in reasons(found)[0]
    without = mapped({"/x": {"get": operation(parameters=[{**given, "required": True}])}})
    assert not without.endpoints
    assert why in reasons(without)[0]


@pytest.mark.parametrize(
    "given", [{"in": "query"}, {"name": "x"}, {"name": "x", "in": "body"}, 7, {"name": 3, "in": "query"}]
)
def test_a_parameter_without_name_or_place_is_no_parameter(given: Any) -> None:
    assert "has no name" in reasons(mapped({"/x": {"get": operation(parameters=[given])}}))[0]


def test_a_parameter_that_is_a_document_of_its_own_is_a_text() -> None:
    given = {"name": "filter", "in": "query", "content": {"application/json": {"schema": OBJECT}}, "description": "F"}
    (found,) = only({"/x": {"get": operation(parameters=[given])}}).parameters
    assert found.schema == {"type": "string", "contentMediaType": "application/json"}
    assert found.description == "F (application/json, as one string)"


def test_there_are_not_more_parameters_than_a_person_could_mean() -> None:
    many = [{"name": f"p{number}", "in": "query"} for number in range(201)]
    assert "more than 200" in reasons(mapped({"/x": {"get": operation(parameters=many)}}))[0]


def test_the_properties_of_a_body_are_arguments_where_that_loses_nothing() -> None:
    found = body(OBJECT)
    assert (found.argument, found.schema, found.required) == (None, OBJECT, True)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"type": "string"}},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "object", "properties": {"not legal": {}}},
        {"oneOf": [OBJECT, {"type": "string"}]},
        {**OBJECT, "minProperties": 2},
        {},
    ],
)
def test_any_other_body_is_one_argument(schema: Any) -> None:
    assert body(schema).argument == "body"


def test_a_body_whose_properties_meet_parameters_is_one_argument() -> None:
    request = {"content": {"application/json": {"schema": OBJECT}}}
    given = [{"name": "A", "in": "query"}, {"name": "body", "in": "query"}]
    found = only({"/x": {"post": operation(parameters=given, requestBody=request)}})
    assert found.body is not None
    assert (found.body.argument, found.body.required) == ("request_body", False)


def test_parts_that_all_apply_are_joined_into_one_list_of_properties() -> None:
    found = body({"allOf": [PET, {"type": "object", "properties": {"b": {}}, "required": ["b"]}]}, Pet=OBJECT)
    assert found.argument is None
    assert (list(found.schema["properties"]), found.schema["required"]) == (["a", "b"], ["a", "b"])


@pytest.mark.parametrize(
    "parts",
    [
        [OBJECT, {"properties": {"a": {"type": "integer"}}}],
        [OBJECT, {"oneOf": [{}, {}]}],
        [OBJECT, {"type": "string"}],
        [OBJECT, {"additionalProperties": False}],
        [OBJECT, True],
    ],
)
def test_parts_that_cant_be_joined_without_loss_are_not(parts: list[Any]) -> None:
    assert merged_object({"allOf": parts}) is None


@pytest.mark.parametrize(
    ("kinds", "chosen"),
    [
        (["text/plain", "application/x-www-form-urlencoded", "application/json"], "application/json"),
        (["application/vnd.x+json", "application/json; charset=utf-8"], "application/json; charset=utf-8"),
        (["application/x-www-form-urlencoded", "application/merge-patch+json"], "application/merge-patch+json"),
        (["multipart/form-data", "application/x-www-form-urlencoded"], "application/x-www-form-urlencoded"),
        (["image/png", "multipart/form-data"], "multipart/form-data"),
        (["image/png", "text/plain"], "text/plain"),
        (["*/*"], "application/json"),
    ],
)
def test_the_body_is_of_the_kind_that_can_be_sent_best(kinds: list[str], chosen: str) -> None:
    request = {"content": {kind: {"schema": OBJECT} for kind in kinds}}
    found = only({"/x": {"post": operation(requestBody=request)}}).body
    assert found is not None
    assert found.content_type == chosen
    assert found.schema == ({"type": "string"} if chosen == "text/plain" else OBJECT)


@pytest.mark.parametrize(
    ("kind", "schema", "why"),
    [
        ("image/png", {"type": "string", "format": "binary"}, "another kind"),
        ("application/octet-stream", {}, "another kind"),
        ("multipart/form-data", {"properties": {"f": {"type": "string", "format": "binary"}}}, "uploads files"),
        ("multipart/form-data", {"properties": {"f": {"items": {"format": "binary"}}}}, "uploads files"),
        ("multipart/form-data", {"properties": {"f": {"contentMediaType": "image/png"}}}, "uploads files"),
        ("multipart/form-data", {}, "uploads files"),
    ],
)
def test_a_body_that_cant_be_sent_leaves_the_operation_out(kind: str, schema: Any, why: str) -> None:
    request = {"content": {kind: {"schema": schema}}}
    assert why in reasons(mapped({"/x": {"post": operation(requestBody=request)}}))[0]


def test_a_get_has_no_body() -> None:
    request = {"content": {"application/json": {"schema": OBJECT}}}
    assert only({"/x": {"get": operation(requestBody=request)}}).body is None
    assert (
        "GET with a body" in reasons(mapped({"/x": {"get": operation(requestBody={**request, "required": True})}}))[0]
    )
    assert only({"/x": {"delete": operation(requestBody=request)}}).body is not None


@pytest.mark.parametrize(
    ("responses", "kind", "is_empty_allowed"),
    [
        ({"200": content()}, "json", False),
        ({"200": content(kind="application/problem+json")}, "json", False),
        ({"200": content(kind="text/csv")}, "text", False),
        ({"200": content(kind="application/xml")}, "text", False),
        ({"200": content(kind="image/png")}, "binary", False),
        ({"200": {"description": "", "content": {"image/png": {}, "application/json": {}}}}, "json", False),
        ({"204": EMPTY}, "none", True),
        ({"204": EMPTY, "205": EMPTY}, "none", True),
        ({"200": EMPTY}, "text", True),
        ({"201": content(), "204": EMPTY}, "json", True),
        ({"default": content()}, "json", False),
        ({"404": content()}, "text", True),
        ({}, "text", True),
        ({"2XX": content()}, "json", False),
        ({200: content()}, "json", False),
    ],
)
def test_the_kind_of_answer_is_what_the_successes_declare(responses: Any, kind: str, is_empty_allowed: bool) -> None:
    found = answering({str(code): one for code, one in responses.items()})
    assert (found.response, found.allow_empty) == (kind, is_empty_allowed)


@pytest.mark.parametrize(
    ("responses", "has_schema"),
    [
        ({"200": content()}, True),
        ({"200": content(), "404": content({"type": "string"})}, True),
        ({"200": content(PET), "201": content(PET)}, True),
        ({"200": content(PET), "201": content()}, False),
        ({"200": content(), "204": EMPTY}, False),
        ({"200": {"description": "", "content": {"application/json": {"schema": OBJECT}, "text/csv": {}}}}, False),
        ({"200": content({"type": "array", "items": {}})}, True),
        ({"200": content({"type": "string"})}, False),
        ({"200": content({"oneOf": [OBJECT, OBJECT]})}, False),
        ({"200": content({})}, False),
        ({"200": content({"$ref": "#/nowhere"})}, False),
    ],
)
def test_an_answer_has_a_schema_where_the_document_leaves_no_doubt(responses: Any, has_schema: bool) -> None:
    assert (answering(responses, Pet=OBJECT).output_schema is not None) is has_schema


def test_a_stream_of_events_is_no_answer_of_a_tool() -> None:
    events = {"description": "", "content": {"text/event-stream; charset=utf-8": {}}}
    (why,) = reasons(mapped({"/x": {"get": operation(responses={"200": events})}}))
    assert "a stream of events" in why
    both = {"description": "", "content": {"text/event-stream": {}, "application/json": {}}}
    assert answering({"200": both}).response == "json"


def test_head_brings_no_content() -> None:
    assert only({"/x": {"head": operation(responses={"200": content()})}}).response == "none"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ({"summary": "Get it.", "description": "All of it."}, "Get it. All of it."),
        ({"summary": "Get", "description": "Get it all"}, "Get it all"),
        ({"summary": "Get it"}, "Get it"),
        ({"description": " All \n"}, "All"),
        ({}, "GET /x"),
        ({"summary": 7}, "GET /x"),
    ],
)
def test_a_tool_is_described_by_summary_and_description(words: Any, expected: str) -> None:
    assert only({"/x": {"get": operation(**words)}}).description == expected


def test_a_long_description_ends_at_a_word() -> None:
    found = only({"/x": {"get": operation(summary="s" * 300, description="word " * 1000)}})
    assert len(found.description) <= DESCRIPTION_CHARS
    assert found.description.endswith("word…")
    assert found.title == "s" * 99 + "…"
    assert len(only({"/x": {"get": operation(description="x" * 5000)}}).description) <= DESCRIPTION_CHARS
