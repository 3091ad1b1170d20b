"""Compares two JSON Schemas: does the new one accept more (wider), less (narrower), or is it another one (other)?

Knows the keywords that schemas of tools are made of. Whatever it does not know and that differs is `other`, so `wider` and `narrower` can
be relied on. Texts for people, such as descriptions, do not count. Pure.
"""

from __future__ import annotations

from typing import Any, Final, Literal

SchemaChange = Literal["equal", "wider", "narrower", "other"]
_TEXTS: Final = frozenset({"title", "description", "$comment", "examples", "default", "deprecated", "$schema", "$id"})
_LEAST: Final = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_MOST: Final = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_MAX_DEPTH: Final = 32
_KNOWN: Final = {"properties", "additionalProperties", "items", "required", "enum", "const", "type", *_LEAST, *_MOST}


def compare_schemas(old: Any, new: Any) -> SchemaChange:
    found = _changes(old, new, 0)
    if not found:
        return "equal"
    return found.pop() if len(found) == 1 else "other"


def _changes(old: Any, new: Any, depth: int) -> set[SchemaChange]:
    """Every way in which the schemas differ."""
    if _without_texts(old) == _without_texts(new):
        return set()
    old, new = ({} if one is True else one for one in (old, new))
    if old is False or new is False:
        return {"wider"} if old is False else {"narrower"}
    if not isinstance(old, dict) or not isinstance(new, dict) or depth > _MAX_DEPTH:
        return {"other"}
    found: set[SchemaChange] = set()
    for key in (old.keys() | new.keys()) - _TEXTS - _KNOWN:
        if old.get(key) != new.get(key):
            found.add("wider" if key not in new else "narrower" if key not in old else "other")
    found |= _values(_allowed(old), _allowed(new)) | _values(_types(old), _types(new))
    found |= _values(_names(new.get("required")), _names(old.get("required")))
    for key in _LEAST:
        found |= _bounds(old.get(key), new.get(key))
    for key in _MOST:
        found |= _bounds(new.get(key), old.get(key), is_most=True)
    found |= _changes(old.get("items", {}), new.get("items", {}), depth + 1)
    return found | _properties(old, new, depth)


def _properties(old: dict[str, Any], new: dict[str, Any], depth: int) -> set[SchemaChange]:
    """A property that is not named is of the schema that `additionalProperties` gives."""
    before, now = (one if isinstance(one, dict) else {} for one in (old.get("properties"), new.get("properties")))
    others_before, others_now = old.get("additionalProperties", {}), new.get("additionalProperties", {})
    found = _changes(others_before, others_now, depth + 1)
    for name in before.keys() | now.keys():
        found |= _changes(before.get(name, others_before), now.get(name, others_now), depth + 1)
    return found


def _values(old: frozenset[str] | None, new: frozenset[str] | None) -> set[SchemaChange]:
    """Compares sets of allowed values; None allows everything."""
    if old == new:
        return set()
    if new is None or (old is not None and old < new):
        return {"wider"}
    return {"narrower"} if old is None or new < old else {"other"}


def _bounds(old: Any, new: Any, *, is_most: bool = False) -> set[SchemaChange]:
    """Compares lower bounds. Upper bounds are compared the other way round."""
    if old == new:
        return set()
    if old is None or new is None:
        return {"narrower"} if (old is None) != is_most else {"wider"}
    if not all(isinstance(one, int | float) for one in (old, new)):
        return {"other"}
    return {"narrower"} if new > old else {"wider"}


def _allowed(schema: dict[str, Any]) -> frozenset[str] | None:
    if "const" in schema:
        return frozenset({repr(schema["const"])})
    values = schema.get("enum")
    return frozenset(map(repr, values)) if isinstance(values, list) else None


def _types(schema: dict[str, Any]) -> frozenset[str] | None:
    given = schema.get("type")
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list):
        return None
    return frozenset(map(str, names)) | (frozenset({"integer"}) if "number" in names else frozenset())


def _names(names: Any) -> frozenset[str]:
    return frozenset(map(str, names)) if isinstance(names, list) else frozenset()


def _without_texts(schema: Any) -> Any:
    return {key: value for key, value in schema.items() if key not in _TEXTS} if isinstance(schema, dict) else schema
