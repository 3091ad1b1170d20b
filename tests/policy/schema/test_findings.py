"""The sentences about values that do not fit."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pactgate.policy.schema.findings import SchemaError
from pactgate.policy.schema.validation import Schema, compile_schema


def errors_of(schema: Any, value: Any) -> tuple[SchemaError, ...]:
    found = compile_schema(json.dumps(schema).encode())
    assert isinstance(found, Schema), found
    return found.check(json.dumps(value).encode())


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"type": ["string", "null"]}, 5, "must be a string or null"),
        ({"type": "integer"}, "x", "must be an integer"),
        ({"enum": ["a", 1, None]}, "x", 'must be one of "a", 1, null'),
        ({"enum": list(range(25))}, "x", " or 5 others"),
        ({"minimum": 5}, 4, "must be at least 5"),
        ({"exclusiveMaximum": 5}, 5, "must be less than 5"),
        ({"pattern": "^x"}, "y", 'must match the pattern "^x"'),
        ({"minProperties": 2}, {"a": 1}, "must have at least 2 members"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 5, "must be a string or null"),
        ({"anyOf": [{"type": "string", "maxLength": 2}, {"type": "null"}]}, "abc", "must have at most 2 characters"),
        ({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, {}, "must match one of 2 alternatives"),
        ({"oneOf": [{}, {"type": "string"}]}, "x", "must match exactly one of 2 alternatives, but matches 2"),
        ({"contains": {"type": "null"}, "minContains": 2}, [None], "must contain at least 2 items"),
        ({"contains": {}, "maxContains": 1}, [1, 2], "must contain at most 1 items"),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, 'missing member "b"'),
        ({"propertyNames": {"maxLength": 1}}, {"ab": 1}, "has a name the schema does not allow"),
        ({"items": False}, [1], "must not be there"),
        ({"items": {"required": ["a"]}}, [{}], 'missing member "a" in [0]'),
        ({"additionalProperties": False, "properties": {"a": {}, "b": {}}}, {"c": 1}, 'unknown member "c" (allowed: a, b)'),
        ({"items": {"additionalProperties": False}}, [{"when": 1}], 'unknown member "when" in [0]'),
        ({"pattern": "(?:(?=.*z)a)*x"}, "a" * 250 + "z", "too many steps"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_words(schema: Any, value: Any, expected: str) -> None:
    (error,) = errors_of(schema, value)
    assert expected in error.message


def test_of_a_tagged_union_the_meant_alternative_is_explained() -> None:
    def shape(kind: str, **members: Any) -> dict[str, Any]:
        return {"type": "object", "properties": {"kind": {"const": kind}, **members}, "required": list(members)}

    shapes = [shape("circle", r={"type": "number"}), shape("box", w={"type": "number"}, h={"type": "number"})]
    schema = {"properties": {"shape": {"anyOf": [{"$ref": "#/$defs/0"}, {"$ref": "#/$defs/1"}]}}}
    schema["$defs"] = {str(number): one for number, one in enumerate(shapes)}
    found = errors_of(schema, {"shape": {"kind": "box", "w": "1"}})
    assert sorted((error.keyword, error.pointer) for error in found) == [("required", "/shape"), ("type", "/shape/w")]
    (error,) = errors_of(schema, {"shape": {"kind": "line"}})
    assert (error.keyword, error.pointer) == ("anyOf", "/shape")
