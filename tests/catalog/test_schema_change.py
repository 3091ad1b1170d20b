"""A schema that accepts more is wider, one that accepts less narrower, and what is not certain is neither."""

from __future__ import annotations

from typing import Any

import pytest

from pactgate.catalog.schema_change import compare_schemas

TEXT = {"type": "string"}


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        (closed(a=TEXT), closed(a={"type": "string", "description": "x"}), "equal"),
        (closed(a=TEXT), closed(a=TEXT, b=TEXT), "wider"),
        ({"properties": {"a": TEXT}}, {"properties": {"a": TEXT, "b": TEXT}}, "narrower"),
        ({"required": ["a"]}, {}, "wider"),
        (TEXT, {"type": ["string", "null"]}, "wider"),
        ({"type": "integer"}, {"type": "number"}, "wider"),
        (TEXT, {"type": "integer"}, "other"),
        ({"enum": ["a", "b"]}, {"enum": ["a"]}, "narrower"),
        ({"enum": ["a"]}, {"enum": ["b"]}, "other"),
        (TEXT, {"type": "string", "maxLength": 5}, "narrower"),
        ({"minimum": 1}, {"minimum": 2}, "narrower"),
        ({"maximum": 1}, {"maximum": 2}, "wider"),
        ({"items": TEXT}, {}, "wider"),
        ({"additionalProperties": False}, {}, "wider"),
        (closed(a=TEXT, b=TEXT), {"type": "object", "properties": {"a": TEXT}, "required": ["a"]}, "other"),
        ({"pattern": "a"}, {"pattern": "b"}, "other"),
        ({}, {"pattern": "b"}, "narrower"),
        ({"$ref": "#/a"}, {"$ref": "#/b"}, "other"),
        ({"properties": {"a": 1}}, {"properties": 3}, "other"),
        (True, False, "narrower"),
    ],
)
def test_the_change_is_named(old: Any, new: Any, change: str) -> None:
    assert compare_schemas(old, new) == change
    opposite = {"wider": "narrower", "narrower": "wider"}
    assert compare_schemas(new, old) == opposite.get(change, change)
