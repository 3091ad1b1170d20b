"""Random schemas and values small enough to be judged by a plain, slow and independent validator."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

NAMES = ("a", "b", "c")
PATTERNS = ("^a", "b$", "^[ab]+$", "a{2}", "^(?!b)", "(a|b)c?")

SCALARS: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.5, 1.0, 2.5, -2.0, 2**64, 2**64 + 1, 10**30])
    | st.text("abc", max_size=3)
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=8,
)
_COUNTS = st.integers(0, 3)
_TYPES = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
_NAME_LISTS = st.lists(st.sampled_from(NAMES), max_size=2, unique=True)
REFERENCES = st.sampled_from(["#", "#/$defs/x", "#/$defs/y", "#named"])

ASSERTIONS: dict[str, st.SearchStrategy[Any]] = {
    "type": _TYPES | st.lists(_TYPES, min_size=1, max_size=3, unique=True),
    "enum": st.lists(VALUES, min_size=1, max_size=3),
    "const": VALUES,
    "minimum": st.integers(-2, 2),
    "maximum": st.integers(-2, 2) | st.just(2**64),
    "exclusiveMinimum": st.integers(-2, 2),
    "exclusiveMaximum": st.integers(-2, 2),
    "multipleOf": st.sampled_from([1, 2, 3, 0.5]),
    "minLength": _COUNTS,
    "maxLength": _COUNTS,
    "pattern": st.sampled_from(PATTERNS),
    "minItems": _COUNTS,
    "maxItems": _COUNTS,
    "uniqueItems": st.booleans(),
    "minProperties": _COUNTS,
    "maxProperties": _COUNTS,
    "required": _NAME_LISTS,
    "dependentRequired": st.dictionaries(st.sampled_from(NAMES), _NAME_LISTS, max_size=2),
    "title": st.text(max_size=3),
    "format": st.sampled_from(["email", "date", "uri", "made-up"]),
    "default": VALUES,
}


def _parts(inner: st.SearchStrategy[Any]) -> dict[str, st.SearchStrategy[Any]]:
    several = st.lists(inner, min_size=1, max_size=3)
    named = st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    return {
        "allOf": several,
        "anyOf": several,
        "oneOf": several,
        "not": inner,
        "if": inner,
        "then": inner,
        "else": inner,
        "dependentSchemas": named,
        "properties": named,
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "[bc]"]), inner, max_size=2),
        "additionalProperties": inner,
        "propertyNames": inner,
        "prefixItems": several,
        "items": inner,
        "contains": inner,
        "minContains": _COUNTS,
        "maxContains": _COUNTS,
        "$ref": REFERENCES,
    }


def _objects(choices: dict[str, st.SearchStrategy[Any]], most: int) -> st.SearchStrategy[dict[str, Any]]:
    keywords = st.lists(st.sampled_from(sorted(choices)), max_size=most, unique=True)
    return keywords.flatmap(lambda chosen: st.fixed_dictionaries({keyword: choices[keyword] for keyword in chosen}))


PART: st.SearchStrategy[Any] = st.recursive(
    st.booleans() | _objects(ASSERTIONS | {"$ref": REFERENCES}, 3),
    lambda inner: _objects(ASSERTIONS | _parts(inner), 4),
    max_leaves=8,
)
SCHEMAS: st.SearchStrategy[dict[str, Any]] = st.builds(
    lambda root, x, y, z: {**root, "$defs": {"x": x, "y": y, "z": {**z, "$anchor": "named"}}},
    _objects(ASSERTIONS | _parts(PART), 4),
    PART,
    PART,
    _objects(ASSERTIONS, 2),
)
