"""Schemas: valid, invalid, or beyond what can be judged, and never fetched."""

from __future__ import annotations

import socket
import time
from decimal import Decimal
from typing import Any

import pytest

from pactgate.conformance.message import RecordedMessage
from pactgate.conformance.schemas import RecordedSchema, ToolSchemas, encoded
from pactgate.conformance.session_state import ListedItem


def test_a_value_that_breaks_the_schema_is_told_where() -> None:
    schema = RecordedSchema({"type": "object", "properties": {"a/b": {"type": "integer"}}})
    found = schema.check({"a/b": "x"})
    assert found is not None
    assert found[0] == "/a~1b"
    assert schema.check({"a/b": 1}) is None
    assert schema.check({"a/b": 10**40}) is None


@pytest.mark.parametrize("schema", [{"type": "objekt"}, {"properties": []}, "x", None, 7])
def test_what_is_no_schema_is_invalid(schema: Any) -> None:
    made = RecordedSchema(schema)
    assert made.invalid
    assert not made.unjudged


def doubling(levels: int) -> dict[str, Any]:
    steps = {
        f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}, {"maxProperties": 9}]}
        for n in range(levels)
    }
    return {"type": "object", "$defs": {**steps, f"d{levels}": {"type": "object"}}, "$ref": "#/$defs/d0"}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "https://schemas.example/x.json"},
        {"$ref": "file:///etc/passwd"},
        {"$schema": "https://schemas.example/dialect"},
        {"title": "\ud800"},
        True,
        {"description": "x" * 2_000_000},
    ],
    ids=["remote", "file", "dialect", "surrogate", "boolean", "large"],
)
def test_what_defeats_the_checker_is_not_judged_and_nothing_is_fetched(
    schema: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "socket", None)
    made = RecordedSchema(schema)
    assert made.unjudged
    assert made.check({}) is None


@pytest.mark.timing
def test_references_that_multiply_take_no_time() -> None:
    started = time.process_time()
    made = RecordedSchema(doubling(60))
    made.check({})
    assert time.process_time() - started < 2


def test_values_that_have_no_bytes_can_not_be_judged() -> None:
    assert encoded("\ud800") is None
    assert encoded({"n": Decimal("1e400")}) == b'{"n":1E+400}'
    assert RecordedSchema({"type": "object"}).check("\ud800") is None


def test_a_tools_schema_is_compiled_again_when_it_is_listed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = ToolSchemas("inputSchema")
    message: Any = RecordedMessage.__new__(RecordedMessage)
    one = ListedItem({"inputSchema": {"type": "object"}}, message, 0)
    other = ListedItem({"inputSchema": {"type": "string"}}, message, 0)
    first = kept.of("x", one)
    assert kept.of("x", one) is first
    assert kept.of("x", other) is not first
    assert kept.of("x", ListedItem({}, message, 0)) is None
