"""Schemas: valid, invalid, or beyond what can be judged, and never fetched."""

from __future__ import annotations

import socket
import time
from decimal import Decimal
from typing import Any

import pytest

from pactgate.conformance.rule import CheckStatus
from pactgate.conformance.schemas import RecordedSchema, encoded
from tests.conformance.captures import call, capture, handshake, verdicts


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


def test_a_call_is_validated_against_the_latest_listing() -> None:
    listings = [
        call(id_, "tools/list", None, {"tools": [{"name": "x", "inputSchema": {"type": "object", **more}}]})
        for id_, more in ((2, {}), (4, {"required": ["n"]}))
    ]
    calls = [call(id_, "tools/call", {"name": "x", "arguments": {}}, {"content": []}) for id_ in (3, 5)]
    good = capture(*handshake(), listings[0], *calls)
    assert verdicts(good)["GW-042"].status is CheckStatus.PASS
    stale = capture(*handshake(), listings[0], calls[0], listings[1], calls[1])
    assert [found.exchange for found in verdicts(stale)["GW-042"].evidence] == [5]
