"""The normal form of schemas: where references lead, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from pactgate.policy.schema.document import UNBOUNDED, Dialect, read_document
from pactgate.policy.schema.patterns import UnsupportedSchemaError

TEXT = {"type": "string"}


def root_of(schema: dict[str, Any], dialect: Dialect = Dialect.DRAFT_2020_12) -> dict[str, Any]:
    return read_document(schema, dialect).root


def target_of(schema: dict[str, Any], *path: str, dialect: Dialect = Dialect.DRAFT_2020_12) -> Any:
    root: Any = root_of(schema, dialect)
    part = root
    for step in path:
        part = part[step]
    return root["$defs"][part["$ref"].removeprefix("#/$defs/")]


@pytest.mark.parametrize(
    ("reference", "more"),
    [
        ("#/$defs/x", {"$defs": {"x": TEXT}}),
        ("#/definitions/x", {"definitions": {"x": TEXT}}),
        ("#/components/schemas/x", {"components": {"schemas": {"x": TEXT}}}),
        ("#/$defs/a~1b~0", {"$defs": {"a/b~": TEXT}}),
        ("#/$defs/a%20b", {"$defs": {"a b": TEXT}}),
        ("#/x/l/1", {"x": {"l": [True, TEXT]}}),
        ("#/definitions/List<a b>", {"definitions": {"List<a b>": TEXT}}),
        ("#named", {"$defs": {"x": {"$anchor": "named", **TEXT}}}),
        ("#named", {"$defs": {"x": {"$dynamicAnchor": "named", **TEXT}}}),
        ("Text", {"$defs": {"x": {"$id": "Text", **TEXT}}}),
        ("Text#/$defs/y", {"$defs": {"x": {"$id": "Text", "$defs": {"y": TEXT}}}}),
        ("Text#named", {"$defs": {"x": {"$id": "Text", "$defs": {"y": {"$anchor": "named", **TEXT}}}}}),
    ],
)
def test_references_lead_to_parts_of_the_document(reference: str, more: dict[str, Any]) -> None:
    assert target_of({"properties": {"a": {"$ref": reference}}, **more}, "properties", "a") == TEXT


def test_a_reference_inside_a_subschema_with_an_id_starts_there() -> None:
    inner = {"$id": "Inner", "properties": {"a": {"$ref": "#/$defs/y"}}, "$defs": {"y": {"type": "null"}}}
    schema = {"properties": {"b": inner}, "$defs": {"y": TEXT}}
    assert target_of(schema, "properties", "b", "properties", "a") == {"type": "null"}


def test_early_dialects_name_subschemas_by_their_ids() -> None:
    schema = {"items": {"$ref": "#named"}, "definitions": {"x": {"$id": "#named", **TEXT}}}
    assert target_of(schema, "items", dialect=Dialect.DRAFT_7) == TEXT
    schema = {"items": {"$id": "Other", "$ref": "#/definitions/x"}, "definitions": {"x": TEXT}}
    assert target_of(schema, "items", dialect=Dialect.DRAFT_7) == TEXT  # where a $ref stands nothing else counts
    schema = {"items": {"$ref": "Text"}, "definitions": {"x": {"id": "Text", **TEXT}}}
    assert target_of(schema, "items", dialect=Dialect.DRAFT_4) == TEXT


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "Text"},
        {"$ref": "Text", "$defs": {"x": {"$id": "https://example.org/Text"}}},
        {"$ref": "Text", "$defs": {"x": {"$id": "Text"}, "y": {"$id": "https://example.org/a/"}}},
        {"$ref": "https://example.org/Text", "$defs": {"x": {"$id": "https://example.org/Text"}}},
        {"$defs": {"x": {"$id": "Text"}, "y": {"$id": "Text"}}},
        {"$ref": "#/x/5", "x": [TEXT]},
        {"$ref": "#/x/²", "x": [TEXT, TEXT, TEXT]},
        {"$ref": "#/x/x", "x": [TEXT]},
        {"$ref": "#/$defs/x/type/0", "$defs": {"x": TEXT}},
        {"$ref": "#/x", "x": {"properties": 5}},
        {"$ref": "#/x", "x": {"allOf": {}}},
        {"$ref": "#/x", "x": {"items": 5}},
        {"$ref": "#/x", "x": {"$ref": 5}},
    ],
)
def test_references_that_readers_could_take_for_different_parts_are_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedSchemaError):
        root_of(schema)


def test_what_asserts_nothing_is_left_out_but_not_the_names_of_members() -> None:
    remarks = {"title": "t", "description": "d", "default": {}, "examples": [], "format": "date", "deprecated": True}
    schema = {**remarks, "properties": {name: {**TEXT, **remarks} for name in remarks}}
    assert root_of(schema) == {"properties": dict.fromkeys(remarks, TEXT)}


def test_a_reference_to_a_boolean_schema_is_that_schema() -> None:
    assert root_of({"items": {"$ref": "#/x"}, "x": False}) == {"items": {"allOf": [False]}}
    assert root_of({"items": {"$ref": "#/x"}, "x": True}) == {"items": {"allOf": [True]}}


def test_drafts_are_rewritten_as_2020_12() -> None:
    old = {"items": [TEXT], "additionalItems": False, "dependencies": {"a": ["b"], "c": TEXT}}
    assert root_of(old, Dialect.DRAFT_7) == {
        "prefixItems": [TEXT],
        "items": False,
        "dependentSchemas": {"a": {"required": ["b"]}, "c": TEXT},
    }
    strict = {"minimum": 1, "exclusiveMinimum": True, "maximum": 5, "exclusiveMaximum": False}
    assert root_of(strict, Dialect.DRAFT_4) == {"exclusiveMinimum": 1, "maximum": 5}


def test_the_cost_counts_subschemas_once_for_each_way_to_them() -> None:
    shared = {"$defs": {"x": {"items": TEXT}}}
    once = read_document({"items": {"$ref": "#/$defs/x"}, **shared}, Dialect.DRAFT_2020_12).cost
    twice = read_document({"allOf": [{"$ref": "#/$defs/x"}] * 2, **shared}, Dialect.DRAFT_2020_12).cost
    assert once < twice < 2 * once
    assert read_document({"items": {"$ref": "#"}}, Dialect.DRAFT_2020_12).cost == UNBOUNDED
    assert read_document({"unevaluatedItems": False}, Dialect.DRAFT_2020_12).cost >= UNBOUNDED
