"""Schemas of both dialects as schemas of draft 2020-12 that stand alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.policy.schema.validation import Schema, compile_schema
from pactgate.protocol.messages import encode_json
from pactgate.upstreams.openapi import schemas
from pactgate.upstreams.openapi.document_text import DocumentError
from pactgate.upstreams.openapi.references import DocumentNode, References
from pactgate.upstreams.openapi.schemas import Direction, Schemas


def converted(
    schema: Any, direction: Direction = Direction.INPUT, *, is_early: bool = False, **components: Any
) -> dict[str, Any]:
    references = References({"components": {"schemas": components}})
    return Schemas(references, is_early=is_early).stand_alone({"": DocumentNode(schema)}, direction)[""]


def early(schema: Any, **components: Any) -> dict[str, Any]:
    return converted(schema, is_early=True, **components)


def ref(name: str, **beside: Any) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}", **beside}


LARGE = {"type": "object", "properties": {f"field_{n}": {"type": "string", "maxLength": n} for n in range(20)}}
NODE = {"type": "object", "properties": {"children": {"type": "array", "items": ref("Node")}}}


@pytest.mark.parametrize(
    ("given_schema", "expected"),
    [
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "string", "nullable": False}, {"type": "string"}),
        ({"type": "string", "enum": ["a"], "nullable": True}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"nullable": True}, {}),
        (
            {"allOf": [{"type": "object"}], "nullable": True, "description": "d"},
            {"anyOf": [{"allOf": [{"type": "object"}]}, {"type": "null"}], "description": "d"},
        ),
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, {"type": "integer", "exclusiveMinimum": 1}),
        ({"type": "integer", "maximum": 1, "exclusiveMaximum": False}, {"type": "integer", "maximum": 1}),
        ({"exclusiveMaximum": True}, {}),
        ({"type": "string", "example": "x"}, {"type": "string", "examples": ["x"]}),
        ({"type": "string", "example": "x" * 500}, {"type": "string"}),
        (
            {"type": "object", "discriminator": {"propertyName": "k"}, "xml": {}, "externalDocs": {}, "x-own": 1},
            {"type": "object"},
        ),
    ],
)
def test_words_of_3_0_are_rewritten(given_schema: Any, expected: Any) -> None:
    assert early(given_schema) == expected


@pytest.mark.parametrize(
    ("given_schema", "expected"),
    [
        ({"type": ["string", "null"], "exclusiveMinimum": 3}, {"type": ["string", "null"], "exclusiveMinimum": 3}),
        ({"const": 1, "examples": [1, 2]}, {"const": 1, "examples": [1, 2]}),
        ({"prefixItems": [{"type": "string"}], "items": False}, {"prefixItems": [{"type": "string"}], "items": False}),
        ({"items": [{"type": "string"}]}, {"prefixItems": [{"type": "string"}]}),
        ({"if": {"const": 1}, "then": True, "else": False}, {"if": {"const": 1}, "then": True, "else": False}),
        (True, {}),
        (False, {"not": {}}),
        (None, {}),
    ],
)
def test_words_of_3_1_stay(given_schema: Any, expected: Any) -> None:
    assert converted(given_schema) == expected


@pytest.mark.parametrize(
    "misspelt",
    [
        {"type": "any"},
        {"type": ["file"]},
        {"type": 7},
        {"required": True},
        {"required": [1]},
        {"enum": []},
        {"minLength": "3"},
        {"minLength": -1},
        {"multipleOf": 0},
        {"pattern": "(unclosed"},
        {"pattern": 3},
        {"patternProperties": {"(": {}}},
        {"properties": []},
        {"items": "string"},
        {"allOf": []},
        {"additionalProperties": "no"},
        {"minimum": True},
        {"$id": "x", "$schema": "y", "$anchor": "z", "$dynamicAnchor": "q"},
    ],
)
def test_what_is_misspelt_is_left_out_and_the_rest_still_counts(misspelt: dict[str, Any]) -> None:
    found = converted({**misspelt, "description": "kept"})
    assert found.pop("description") == "kept"
    assert found in ({}, {"patternProperties": {}})


def test_counts_written_as_fractions_are_counts() -> None:
    assert converted({"maxLength": 10.0}) == {"maxLength": 10}


def test_read_only_members_are_not_sent_and_write_only_members_do_not_come_back() -> None:
    given_schema = {
        "type": "object",
        "required": ["id", "name", "secret"],
        "properties": {
            "id": {"type": "string", "readOnly": True},
            "name": {"type": "string"},
            "secret": ref("Secret"),
            "made": ref("Moment", readOnly=True),
        },
    }
    shared: dict[str, Any] = {"Secret": {"type": "string", "writeOnly": True}, "Moment": {"type": "string"}}
    sent = converted(given_schema, Direction.INPUT, **shared)
    assert (list(sent["properties"]), sent["required"]) == (["name", "secret"], ["name", "secret"])
    back = converted(given_schema, Direction.OUTPUT, **shared)
    assert (list(back["properties"]), back["required"]) == (["id", "name", "made"], ["id", "name"])


def test_what_is_used_once_or_small_stands_in_its_place() -> None:
    given_schema = {"properties": {"a": ref("Large"), "b": ref("Small"), "c": ref("Small", description="c")}}
    found = converted(given_schema, Large=LARGE, Small={"type": "string"})
    assert "$defs" not in found
    assert found["properties"]["a"] == LARGE
    assert found["properties"]["c"] == {"type": "string", "description": "c"}


def test_what_is_shared_and_large_stands_in_defs_once() -> None:
    found = converted({"properties": {"a": ref("Large"), "b": ref("Large", description="b")}}, Large=LARGE)
    assert found["$defs"] == {"Large": LARGE}
    assert found["properties"]["b"] == {"$ref": "#/$defs/Large", "description": "b"}


@pytest.mark.parametrize("root", [NODE, ref("Node"), {"type": "array", "items": ref("Node")}])
def test_what_leads_back_to_itself_is_kept_and_still_checks(root: Any) -> None:
    found = converted(root, Node=NODE)
    assert list(found["$defs"]) == ["Node"]
    compiled = compile_schema(encode_json(found))
    assert isinstance(compiled, Schema)
    good: dict[str, Any] = {"children": [{"children": []}]}
    bad = {"children": [{"children": 1}]}
    wrap = (lambda value: [value]) if root.get("type") == "array" else (lambda value: value)
    assert not compiled.check(encode_json(wrap(good)))
    assert compiled.check(encode_json(wrap(bad)))


def test_two_that_lead_to_each_other_are_kept() -> None:
    a = {"type": "object", "properties": {"b": ref("B")}}
    b = {"type": "object", "properties": {"a": ref("A")}}
    assert isinstance(compile_schema(encode_json(converted(ref("A"), A=a, B=b))), Schema)


def test_beside_a_reference_only_notes_count_in_3_0_and_everything_in_3_1() -> None:
    beside = {"description": "d", "maxLength": 3}
    assert early(ref("S", **beside), S={"type": "string"}) == {"type": "string", "description": "d"}
    assert converted(ref("S", **beside), S={"type": "string"}) == {"allOf": [{"type": "string"}], **beside}
    nullable = early({"properties": {"p": ref("S", nullable=True)}}, S={"type": "string"})
    assert nullable["properties"]["p"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}


def test_schemas_of_one_request_share_the_names_of_their_definitions() -> None:
    references = References({"components": {"schemas": {"Node": NODE}}})
    made = Schemas(references, is_early=False).stand_alone(
        {
            "a": DocumentNode(ref("Node")),
            "b": DocumentNode({"type": "array", "items": ref("Node")}),
            "c": DocumentNode({"type": "string"}),
        },
        Direction.INPUT,
    )
    assert made["a"]["$defs"] == made["b"]["$defs"]
    assert made["c"] == {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (ref("Nobody"), "leads nowhere"),
        ({"properties": {"a": ref("Nobody")}}, "leads nowhere"),
        (ref("Loop"), "refers to itself without end"),
        ({"$ref": "https://evil.example/schema.json"}, "another host or folder"),
    ],
)
def test_what_cant_be_resolved_is_said(schema: Any, why: str) -> None:
    with pytest.raises(DocumentError, match=why):
        converted(schema, Loop=ref("Loop"))


def test_a_schema_nested_without_end_is_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100):
        deep = {"items": deep}
    with pytest.raises(DocumentError, match="too deep"):
        converted(deep)


def test_a_chain_of_definitions_as_long_as_a_document_is_no_problem() -> None:
    chain: dict[str, Any] = {f"S{n}": {"type": "object", "properties": {"next": ref(f"S{n + 1}")}} for n in range(2000)}
    found = converted(ref("S0"), **chain, S2000={"type": "string"})
    assert isinstance(compile_schema(encode_json(found)), Schema)


def test_a_schema_with_too_many_parts_ends_at_a_bound() -> None:
    shared: dict[str, Any] = {"type": "string"}
    for _ in range(20):
        shared = {"anyOf": [shared] * 9}
    with pytest.raises(DocumentError, match="too large"):
        converted(shared)


def test_a_value_with_too_many_parts_is_not_carried_along() -> None:
    shared: list[Any] = ["x"] * 9
    for _ in range(30):
        shared = [shared] * 9
    found = converted({"type": "array", "default": shared, "enum": shared, "example": shared, "const": shared})
    assert found == {"type": "array"}


def test_all_schemas_of_a_document_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schemas, "MAX_PARTS_IN_ALL", 10)
    with pytest.raises(DocumentError, match="too large"):
        converted(LARGE)


_leaf = st.sampled_from(
    [True, None, 3, "x", [], {}, {"type": "string"}, {"type": "object"}, ref("A"), ref("B"), ref("C")]
)
_word = st.sampled_from(
    [
        "type",
        "properties",
        "items",
        "allOf",
        "oneOf",
        "required",
        "enum",
        "nullable",
        "minimum",
        "exclusiveMinimum",
        "additionalProperties",
        "readOnly",
        "$ref",
        "pattern",
        "patternProperties",
        "default",
        "not",
        "$defs",
        "format",
    ]
)
_schema = st.recursive(
    _leaf, lambda inner: st.dictionaries(_word, inner | st.lists(inner, max_size=3), max_size=4), max_leaves=12
)


@given(_schema, st.fixed_dictionaries({"A": _schema, "B": _schema, "C": _schema}), st.booleans())
def test_any_document_gives_schemas_that_compile_or_says_why_not(
    schema: Any, components: dict[str, Any], is_early: bool
) -> None:
    for direction in Direction:
        try:
            found = converted(schema, direction, is_early=is_early, **components)
        except DocumentError:
            continue
        compiled = compile_schema(encode_json(found))
        assert isinstance(compiled, Schema) or "itself" in compiled, (found, compiled)
