"""The most steps one value can take against a schema, at each depth."""

from __future__ import annotations

from typing import Any

import pytest

from pactgate.policy.schema.graph import Dialect, Graph
from pactgate.policy.schema.patterns import Unusable
from pactgate.policy.schema.weights import MAX_LEVELS, MAX_WEIGHT, SATURATED

TEXT = {"type": "string"}


def graph(schema: dict[str, Any]) -> Graph:
    return Graph(schema, Dialect.DRAFT_2020_12)


def weights(schema: dict[str, Any]) -> tuple[int, ...]:
    return graph(schema).weights


def test_a_circle_is_found_wherever_it_closes() -> None:
    assert not graph({"properties": {"a": {"items": TEXT}}}).is_recursive
    assert graph({"properties": {"a": {"items": {"$ref": "#"}}}}).is_recursive
    assert graph({"$defs": {"a": {"items": {"$ref": "#/$defs/b"}}, "b": {"not": {"$ref": "#/$defs/a"}}}}).is_recursive


def test_a_chain_of_parts_on_one_value_is_bounded() -> None:
    def chained(length: int) -> dict[str, Any]:
        parts: dict[str, Any] = {f"p{n}": {"$ref": f"#/$defs/p{n + 1}"} for n in range(length)}
        return {"$ref": "#/$defs/p0", "$defs": {**parts, f"p{length}": TEXT}}

    graph(chained(60))
    with pytest.raises(Unusable, match="deep"):
        graph(chained(70))


def test_of_named_members_and_of_items_and_members_only_one_applies() -> None:
    one = weights({"properties": {"a": TEXT}})
    assert weights({"properties": {f"m{n}": TEXT for n in range(500)}}) == one
    value = {"anyOf": [TEXT, {"items": {"$ref": "#"}}, {"additionalProperties": {"$ref": "#"}}]}
    assert weights(value)[MAX_LEVELS] == weights(value)[2]


def test_what_applies_together_adds_up() -> None:
    few, many = (weights({"allOf": [{"items": {"minimum": 1}} for _ in range(count)]})[1] for count in (10, 100))
    assert 9 * few < many < 11 * few


def test_a_union_that_leads_back_to_itself_grows_with_depth() -> None:
    found = weights({"anyOf": [{"properties": {"a": {"$ref": "#"}}}] * 3})
    assert found[10] > 3**9
    assert found[MAX_LEVELS] == SATURATED


def test_unevaluated_parts_are_gone_through_again() -> None:
    plain = {"allOf": [{"properties": {"a": TEXT}}] * 20}
    assert weights({**plain, "unevaluatedProperties": False})[0] > 2 * weights(plain)[0]


def test_choices_weigh_what_comparing_them_costs() -> None:
    def weight(options: list[Any]) -> int:
        return weights({"enum": options})[0]

    assert weight([f"option {n}" for n in range(1000)]) == weight(["a"]) == weight(list(range(1000)))
    assert weight(["a", None]) < weight(["a", 1, None]) < weight([1.5, "a"]) < weight([{"a": [1, 2, 3]}])


def test_a_value_that_is_too_much_work_makes_the_schema_unusable() -> None:
    with pytest.raises(Unusable, match="too much work"):
        weights({"properties": {"a": {"enum": [n + 0.5 for n in range(MAX_WEIGHT // 100)]}}})


def test_patterns_weigh_what_matching_them_costs() -> None:
    weight = {text: weights({"pattern": text})[0] for text in ("^a", "1[01]{40}", "1[01]{400}", "(?!a)b")}
    assert weight["^a"] < weight["1[01]{40}"] < weight["(?!a)b"] < weight["1[01]{400}"]
