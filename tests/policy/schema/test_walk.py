"""The counted walk through a schema: the same verdicts, bounded work, bounded findings."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, assume, given, settings

from pactgate.policy.schema.graph import Dialect, Graph
from pactgate.policy.schema.patterns import Unusable
from pactgate.policy.schema.walk import MAX_FAULTS, Explainer, Findings
from pactgate.protocol import messages
from tests.policy.schema_making import SCHEMAS, VALUES

PLENTY = 10**9


def explain(schema: Any, value: Any, budget: int = PLENTY, dialect: Dialect = Dialect.DRAFT_2020_12) -> Findings:
    return Explainer(Graph(messages.value(json.dumps(schema).encode()), dialect)).explain(value, budget)


def keywords(schema: Any, value: Any, dialect: Dialect = Dialect.DRAFT_2020_12) -> list[str]:
    findings = explain(schema, value, PLENTY, dialect)
    assert findings.is_complete
    return [fault.keyword for fault in findings.faults]


@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(schema=SCHEMAS, value=VALUES)
def test_a_walk_finds_faults_exactly_where_an_independent_validator_does(schema: dict[str, Any], value: Any) -> None:
    try:
        findings = explain(schema, value)
        expected = jsonschema.Draft202012Validator(schema).is_valid(value)
    except (Unusable, RecursionError):
        assume(False)
    assert findings.is_complete
    assert (findings.faults == ()) == expected


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"items": [{"type": "string"}], "additionalItems": {"type": "null"}}, ["a", None], []),
        ({"items": [{"type": "string"}], "additionalItems": {"type": "null"}}, [1, 1], ["type", "type"]),
        ({"dependencies": {"a": ["b"], "c": {"required": ["d"]}}}, {"a": 1, "c": 1}, ["dependencies", "required"]),
        ({"dependencies": {"a": ["b"]}}, {}, []),
        ({"prefixItems": [False], "dependentRequired": {"a": ["z"]}}, [1], []),
        ({"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"type": "null"}}, "a", ["minLength"]),
        ({"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"type": "null"}}, 5, ["type"]),
    ],
)
def test_the_keywords_of_draft_7_count(schema: dict[str, Any], value: Any, expected: list[str]) -> None:
    assert keywords(schema, value, Dialect.DRAFT_7) == expected


def test_a_budget_that_runs_out_says_so() -> None:
    schema = {"items": {"properties": {"a": {"type": "integer"}}}}
    value = [{"a": "x"}] * 1000
    assert explain(schema, value, budget=100).is_complete is False
    some = explain(schema, [{"a": "x"}, *({"a": 1} for _ in range(1000))], budget=20_000)
    assert (len(some.faults), some.is_complete) == (1, False)


def test_a_value_nested_beyond_the_interpreters_stack_is_left_undecided() -> None:
    value: Any = 5
    for _ in range(900):
        value = [value]
    assert explain({"items": {"$ref": "#"}}, value).is_complete is False


def test_faults_met_on_many_ways_are_told_once_and_no_more_than_a_few() -> None:
    leaf = {"type": "integer"}
    assert keywords({"allOf": [leaf, leaf, {"allOf": [leaf, leaf]}]}, "x") == ["type"]
    assert len(explain({"additionalProperties": leaf}, {f"k{n}": "x" for n in range(50)}).faults) == MAX_FAULTS
    doubled: dict[str, Any] = {f"p{n}": {"allOf": [{"$ref": f"#/$defs/p{n + 1}"}] * 2} for n in range(12)}
    doubled["p12"] = leaf
    assert keywords({"$ref": "#/$defs/p0", "$defs": doubled}, "x") == ["type"]


def test_what_is_unevaluated_is_named_only_when_nothing_else_explains_a_refusal() -> None:
    schema = {"properties": {"a": {"type": "integer"}}, "unevaluatedProperties": False}
    assert [fault.keyword for fault in explain(schema, {"b": 1}).faults] == ["unevaluatedProperties"]
    assert [fault.keyword for fault in explain(schema, {"a": "x", "b": 1}).faults] == ["type"]


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ({"pattern": "1[01]{900}x"}, "0" * 5000),
        ({"enum": [n + 0.5 for n in range(500)]}, 0.25),
        ({"uniqueItems": True}, [[n] for n in range(5000)]),
        ({"minimum": 0}, 10**3000),
        ({"required": [f"k{n}" for n in range(5000)]}, {f"k{n}": 1 for n in range(5000)}),
        ({"dependentRequired": {"a": [f"k{n}" for n in range(5000)]}}, {f"k{n}": 1 for n in range(5000)} | {"a": 1}),
        ({"properties": {f"k{n}": {} for n in range(4000)}}, {}),
        ({"additionalProperties": False, "patternProperties": {"^k": {}}}, {f"k{n}": 1 for n in range(5000)}),
    ],
)
def test_every_kind_of_work_is_paid_for(part: dict[str, Any], value: Any) -> None:
    assert explain(part, value).faults == () or part.keys() & {"pattern", "enum"}
    assert explain(part, value, budget=20_000).is_complete is False
