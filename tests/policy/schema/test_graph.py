"""Schemas as graphs: where references lead, and what is left out."""

from __future__ import annotations

from typing import Any

import pytest

from pactgate.policy.schema.graph import Dialect, Graph
from pactgate.policy.schema.patterns import Unusable

TEXT = {"type": "string"}


def graph(schema: dict[str, Any], dialect: Dialect = Dialect.DRAFT_2020_12) -> Graph:
    return Graph(schema, dialect)


@pytest.mark.parametrize(
    ("reference", "more"),
    [
        ("#/$defs/x", {"$defs": {"x": TEXT}}),
        ("#/definitions/x", {"definitions": {"x": TEXT}}),
        ("#/components/schemas/x", {"components": {"schemas": {"x": TEXT}}}),
        ("#/$defs/a~1b~0", {"$defs": {"a/b~": TEXT}}),
        ("#/$defs/a%20b", {"$defs": {"a b": TEXT}}),
        ("#/$defs/l/1", {"$defs": {"l": [True, TEXT]}}),
        ("#/definitions/List<a b>", {"definitions": {"List<a b>": TEXT}}),
        ("#named", {"$defs": {"x": {"$anchor": "named", **TEXT}}}),
        ("#named", {"$defs": {"x": {"$dynamicAnchor": "named", **TEXT}}}),
        ("Text", {"$defs": {"x": {"$id": "Text", **TEXT}}}),
        ("Text#/$defs/y", {"$defs": {"x": {"$id": "Text", "$defs": {"y": TEXT}}}}),
        ("Text#named", {"$defs": {"x": {"$id": "Text", "$defs": {"y": {"$anchor": "named", **TEXT}}}}}),
    ],
)
def test_references_lead_to_parts_of_the_document(reference: str, more: dict[str, Any]) -> None:
    part = {"$ref": reference}
    target = graph({"properties": {"a": part}, **more}).targets[id(part)]
    assert isinstance(target, dict)
    assert target["type"] == "string"


def test_a_reference_inside_a_part_with_an_id_starts_there() -> None:
    part = {"$ref": "#/$defs/y"}
    inner = {"$id": "Inner", "properties": {"a": part}, "$defs": {"y": {"type": "null"}}}
    found = graph({"properties": {"b": inner}, "$defs": {"y": TEXT}})
    assert found.targets[id(part)] == {"type": "null"}


def test_early_dialects_name_parts_by_their_ids() -> None:
    part = {"$ref": "#named"}
    found = graph({"items": part, "definitions": {"x": {"$id": "#named", **TEXT}}}, Dialect.DRAFT_7)
    assert found.targets[id(part)] == {"$id": "#named", **TEXT}
    beside = {"$id": "Other", "$ref": "#/definitions/x"}  # where a $ref stands nothing else counts
    found = graph({"items": beside, "definitions": {"x": TEXT}}, Dialect.DRAFT_7)
    assert found.targets[id(beside)] == TEXT
    part = {"$ref": "Text"}
    found = graph({"items": part, "definitions": {"x": {"id": "Text", **TEXT}}}, Dialect.DRAFT_4)
    assert found.targets[id(part)] == {"id": "Text", **TEXT}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "Text"},
        {"$ref": "Text", "$defs": {"x": {"$id": "https://example.org/Text"}}},
        {"$ref": "Text", "$defs": {"x": {"$id": "Text"}, "y": {"$id": "https://example.org/a/"}}},
        {"$ref": "https://example.org/Text", "$defs": {"x": {"$id": "https://example.org/Text"}}},
        {"$defs": {"x": {"$id": "Text"}, "y": {"$id": "Text"}}},
        {"$ref": "#/$defs/a%2Fb", "$defs": {"a": {"b": TEXT}, "a/b": TEXT}},
        {"$ref": "#/$defs/l/5", "$defs": {"l": [TEXT]}},
        {"$ref": "#/$defs/l/²", "$defs": {"l": [TEXT, TEXT, TEXT]}},
        {"$ref": "#/$defs/l/x", "$defs": {"l": [TEXT]}},
        {"$ref": "#/$defs/x/type/0", "$defs": {"x": TEXT}},
    ],
)
def test_references_that_readers_could_take_for_different_parts_are_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(Unusable):
        graph(schema)


def test_what_asserts_nothing_is_left_out_but_not_the_names_of_members() -> None:
    remarks = {"title": "t", "description": "d", "default": {}, "examples": [], "format": "date", "deprecated": True}
    schema = {**remarks, "properties": {name: {**TEXT, **remarks} for name in remarks}}
    assert graph(schema).root == {"properties": dict.fromkeys(remarks, TEXT)}
