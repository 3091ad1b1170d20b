"""An endpoint as a tool: closed schemas, hints from the verb, the contract the gateway believes."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from pactgate.core.contract import CONTRACT_KEY
from pactgate.policy.schema.validation import Schema, compile_schema
from pactgate.protocol.messages import encode_json
from pactgate.upstreams.rest.tool_definition import definition
from tests.support.rest_api import endpoint, plain

TEXT = {"type": "string"}


def told(**settings: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(bytes(definition(endpoint(**settings))))
    return found


@pytest.mark.parametrize(
    ("method", "hints", "category"),
    [
        ("GET", (True, False, True), "query"),
        ("HEAD", (True, False, True), "query"),
        ("OPTIONS", (True, False, True), "query"),
        ("PUT", (False, False, True), "mutation"),
        ("DELETE", (False, True, True), "mutation"),
        ("POST", (False, False, False), "mutation"),
        ("PATCH", (False, False, False), "mutation"),
    ],
)
def test_the_verb_says_what_kind_of_tool_it_is(method: str, hints: tuple[bool, bool, bool], category: str) -> None:
    tool = told(method=method)
    said = tool["annotations"]
    assert (said["readOnlyHint"], said["destructiveHint"], said["idempotentHint"]) == hints
    contract = tool["_meta"][CONTRACT_KEY]
    assert (contract["category"], contract["idempotent"], contract["effects"]) == (category, hints[2], ["network"])
    retryable = {row["code"] for row in contract["errorCodes"] if row["retryable"]}
    assert retryable == ({"RATE_LIMITED", "SERVICE_UNAVAILABLE"} if hints[2] else set())


def test_the_operator_knows_better_than_the_verb() -> None:
    tool = told(method="POST", category="query", idempotent=True, title="Search")
    assert tool["annotations"]["readOnlyHint"] is True
    assert tool["annotations"]["title"] == tool["title"] == "Search"
    assert tool["_meta"][CONTRACT_KEY]["category"] == "query"
    assert told(method="GET", category="execution")["annotations"]["readOnlyHint"] is False


@pytest.mark.requirement("S0/ECO-300")
def test_the_input_schema_is_closed_and_names_every_argument() -> None:
    schema = told(
        parameters=[
            {"name": "id", "in": "path", "required": True, "schema": {"$ref": "#/$defs/Id", "$defs": {"Id": TEXT}}},
            {"name": "q", "in": "query", "description": "What to look for", "schema": TEXT, "argument": "query"},
        ],
        body={"schema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}},
        examples=[{"id": "1", "n": 2}],
    )["inputSchema"]
    assert schema == {
        "type": "object",
        "properties": {
            "id": {"$ref": "#/$defs/Id"},
            "query": {"type": "string", "description": "What to look for"},
            "n": {"type": "integer"},
        },
        "additionalProperties": False,
        "required": ["id", "n"],
        "$defs": {"Id": TEXT},
        "examples": [{"id": "1", "n": 2}],
    }
    check = jsonschema.Draft202012Validator(schema)
    assert check.is_valid({"id": "1", "n": 2})
    assert not check.is_valid({"id": "1", "n": 2, "more": 1})
    assert isinstance(compile_schema(encode_json(schema)), Schema)


def test_a_whole_body_is_one_argument() -> None:
    schema = told(method="POST", body={"schema": {"type": "array", "items": TEXT}, "argument": "names"})["inputSchema"]
    assert schema["properties"]["names"] == {"type": "array", "items": TEXT}


def test_an_output_that_is_no_object_stands_in_one() -> None:
    items = {"type": "array", "items": {"$ref": "#/$defs/Item"}, "$defs": {"Item": TEXT}}
    assert told(outputSchema=items)["outputSchema"] == {
        "type": "object",
        "properties": {"result": {"type": "array", "items": {"$ref": "#/$defs/Item"}}},
        "required": ["result"],
        "$defs": {"Item": TEXT},
    }
    assert told(outputSchema={"type": "object"})["outputSchema"] == {"type": "object"}


def test_what_is_not_checked_is_not_promised() -> None:
    quiet = json.loads(bytes(definition(plain(outputSchema={"type": "object"}), validation="off")))
    assert "outputSchema" not in quiet
