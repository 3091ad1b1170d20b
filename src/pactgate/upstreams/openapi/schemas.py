"""Converts schemas of an OpenAPI document to self-contained JSON Schemas of draft 2020-12.

Keywords of the 3.0 and 3.1 dialects are rewritten (`nullable`, `exclusiveMinimum: true`, `example`), `readOnly` members are removed from
requests and `writeOnly` members from responses, and invalid keywords are dropped. A referenced schema is inlined where it is small or
used once, and goes to `$defs` where it is shared or recursive. Must not: widen a schema except by dropping an unreadable keyword, or
exceed its bounds, because a document may be hostile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from enum import Enum
from functools import lru_cache
from typing import Any, Final, NamedTuple

import jsonschema_rs

from pactgate.core.display import cut
from pactgate.protocol.messages import encode_json
from pactgate.upstreams.openapi.document_text import DocumentError
from pactgate.upstreams.openapi.names import definition_names
from pactgate.upstreams.openapi.references import DocumentNode, References

MAX_PARTS: Final = 20_000
"""Of one schema, everything it refers to included."""
MAX_PARTS_IN_ALL: Final = 3_000_000
MAX_LEVELS: Final = 50
MAX_VALUES: Final = 5000
"""In one `default`, `enum` or `const`."""
_INLINE_LEVELS: Final = 12
_SMALL_PARTS: Final = 10
_SMALL_BYTES: Final = 200
_TEXT_CHARS: Final = 1000
_EXAMPLE_BYTES: Final = 200


class Direction(Enum):
    """Whether a schema describes a request or a response; the value is the keyword of members that do not belong there."""

    INPUT = "readOnly"
    OUTPUT = "writeOnly"


class _Use(NamedTuple):
    """A reference to the schema with this key, and the keywords beside it."""

    key: str
    beside: dict[str, Any]


class _Fragment(NamedTuple):
    """One converted definition; its references are not resolved yet."""

    schema: Any
    uses: Counter[str]
    is_small: bool


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and value == int(value)


def _is_light(value: Any) -> bool:
    """Whether a value is small enough to be copied."""
    count, waiting = 0, [(value, 0)]
    while waiting and count <= MAX_VALUES:
        holder, level = waiting.pop()
        count += 1
        if isinstance(holder, dict | list):
            if level == MAX_LEVELS:
                return False
            waiting += [(inner, level + 1) for inner in (holder.values() if isinstance(holder, dict) else holder)]
    return count <= MAX_VALUES


@lru_cache(maxsize=4096)
def _is_pattern(text: str) -> bool:
    """Whether the engine can read a pattern. Documents have patterns of many languages."""
    try:
        jsonschema_rs.Draft202012Validator({"pattern": text}, validate_formats=False, offline=True)
    except (jsonschema_rs.ValidationError, ValueError):
        return False
    return True


_PLAIN: Final[dict[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("title", "format", "contentEncoding", "contentMediaType"), _is_text),
    "pattern": lambda value: _is_text(value) and _is_pattern(value),
    **dict.fromkeys(("minimum", "maximum"), _is_number),
    "multipleOf": lambda value: _is_number(value) and value > 0,
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _is_count),
    **dict.fromkeys(("minContains", "maxContains"), _is_count),
    **dict.fromkeys(("uniqueItems", "deprecated"), lambda value: isinstance(value, bool)),
    "enum": lambda value: isinstance(value, list) and len(value) > 0 and _is_light(value),
    **dict.fromkeys(("const", "default"), _is_light),
}
_ONE: Final = frozenset(
    {"not", "additionalProperties", "contains", "propertyNames", "if", "then", "else", "items"}
    | {"unevaluatedProperties", "unevaluatedItems"}
)
_SEVERAL: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED: Final = frozenset({"patternProperties", "dependentSchemas"})
_TYPES: Final = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
_COMBINING: Final = frozenset({"allOf", "anyOf", "oneOf", "enum", "const", "not", "if"})
_NOTES: Final = frozenset({"title", "description", "default", "deprecated", "examples"})


class Schemas:
    """The schemas of one document. Shared ones are converted once."""

    def __init__(self, references: References, *, is_early: bool) -> None:
        """`is_early` for OpenAPI 3.0, which ignores keywords beside a `$ref`, except annotations."""
        self._references = references
        self._is_early = is_early
        self._fragments: dict[tuple[Direction, str], _Fragment] = {}
        self._parts_in_all = 0
        self._parts = 0

    def stand_alone(self, spots: dict[str, DocumentNode], direction: Direction) -> dict[str, dict[str, Any]]:
        """Each schema by its label, self-contained; equal names in their `$defs` are equal definitions.

        Raises DocumentError.
        """
        roots = {label: self._convert_root(spot, direction) for label, spot in spots.items()}
        reachable, counts = self._closure([root.uses for root in roots.values()], direction)
        names = definition_names({key: key.rpartition("/")[2] or "schema" for key in sorted(reachable)})
        assembly = _Assembly({key: self._fragments[direction, key] for key in reachable}, counts, names)
        return {label: assembly.complete(root.schema) for label, root in roots.items()}

    def _convert_root(self, spot: DocumentNode, direction: Direction) -> _Fragment:
        fragment = self._fragment(spot, direction)
        schema, beside, seen = fragment.schema, [], 0
        while isinstance(schema, _Use):
            beside.append(schema.beside)
            seen += 1
            if seen > MAX_LEVELS:
                raise DocumentError("it refers to itself without end")
            schema = self._definition(schema.key, direction).schema
        for notes in reversed(beside):
            schema = _joined(schema, notes)
        return _Fragment(schema, _uses_in(schema), False)

    def _closure(self, uses: Iterable[Counter[str]], direction: Direction) -> tuple[set[str], Counter[str]]:
        counts: Counter[str] = Counter()
        for one in uses:
            counts.update(one)
        reachable: set[str] = set()
        waiting = list(counts)
        while waiting:
            key = waiting.pop()
            if key in reachable:
                continue
            reachable.add(key)
            if len(reachable) > MAX_PARTS:
                raise DocumentError(f"it refers to more than {MAX_PARTS} others")
            fragment = self._definition(key, direction)
            counts.update(fragment.uses)
            waiting += fragment.uses
        return reachable, counts

    def _definition(self, key: str, direction: Direction) -> _Fragment:
        known = self._fragments.get((direction, key))
        if known is None:
            file, _, pointer = key.partition("#")
            known = self._fragment(self._references.locate(f"#{_quoted(pointer)}", file)[1], direction)
            self._fragments[direction, key] = known
        return known

    def _fragment(self, spot: DocumentNode, direction: Direction) -> _Fragment:
        self._parts = 0
        schema = self._convert(spot, direction, 0)
        uses = _uses_in(schema)
        is_small = not uses and self._parts <= _SMALL_PARTS and len(encode_json(schema)) <= _SMALL_BYTES
        return _Fragment(schema, uses, is_small)

    def _convert(self, spot: DocumentNode, direction: Direction, level: int) -> Any:
        self._parts += 1
        self._parts_in_all += 1
        if self._parts > MAX_PARTS or level > MAX_LEVELS or self._parts_in_all > MAX_PARTS_IN_ALL:
            raise DocumentError("it is too large or nested too deep")
        if isinstance(spot.value, bool):
            return spot.value
        given = spot.members()
        if isinstance(given.get("$ref"), str):
            return self._convert_reference(spot, direction, level)
        schema = self._plain_words(given)
        for word in given:
            if word in _ONE:
                schema.update(self._one(word, spot, direction, level))
            elif word in _SEVERAL and isinstance(given[word], list) and given[word]:
                schema[word] = [self._convert(one, direction, level + 1) for one in spot.inside(word).items()]
            elif word in _NAMED and isinstance(given[word], dict):
                schema[word] = {
                    name: self._convert(spot.inside(word, name), direction, level + 1)
                    for name in given[word]
                    if word != "patternProperties" or _is_pattern(name)
                }
        self._members(spot, direction, level, schema)
        return _nullable(schema) if given.get("nullable") is True else schema

    def _convert_reference(self, spot: DocumentNode, direction: Direction, level: int) -> Any:
        beside = {word: value for word, value in spot.value.items() if word != "$ref"}
        key, _ = self._references.locate(spot.value["$ref"], spot.file)
        rest = self._convert(DocumentNode(beside, spot.file), direction, level + 1) if beside else {}
        if self._is_early:
            is_nullable = beside.get("nullable") is True
            notes = {word: value for word, value in rest.items() if word in _NOTES}
            return {"anyOf": [_Use(key, {}), {"type": "null"}], **notes} if is_nullable else _Use(key, notes)
        return _Use(key, rest)

    def _one(self, word: str, spot: DocumentNode, direction: Direction, level: int) -> dict[str, Any]:
        inner = spot.inside(word)
        if word == "items" and isinstance(inner.value, list):  # a tuple of drafts before 2020-12
            return {"prefixItems": [self._convert(one, direction, level + 1) for one in inner.items()]}
        if not isinstance(inner.value, dict | bool):
            return {}
        return {word: self._convert(inner, direction, level + 1)}

    def _members(self, spot: DocumentNode, direction: Direction, level: int, schema: dict[str, Any]) -> None:
        named = spot.inside("properties")
        hidden: set[str] = set()
        if isinstance(named.value, dict):
            schema["properties"] = {}
            for name, member in named.value.items():
                if self._is_marked(DocumentNode(member, spot.file), direction.value):
                    hidden.add(name)
                else:
                    schema["properties"][name] = self._convert(DocumentNode(member, spot.file), direction, level + 1)
        required = spot.value.get("required") if isinstance(spot.value, dict) else None
        if isinstance(required, list):
            names = [name for name in dict.fromkeys(filter(_is_text, required)) if name not in hidden]
            if names:
                schema["required"] = names

    def _is_marked(self, spot: DocumentNode, mark: str) -> bool:
        for _ in range(MAX_LEVELS):
            if spot.is_set(mark):
                return True
            reference = spot.members().get("$ref")
            if not isinstance(reference, str):
                return False
            spot = self._references.locate(reference, spot.file)[1]
        raise DocumentError("it refers to itself without end")

    def _plain_words(self, given: dict[str, Any]) -> dict[str, Any]:
        schema: dict[str, Any] = {}
        if (types := _types(given.get("type"))) is not None:
            schema["type"] = types
        if isinstance(given.get("description"), str):
            schema["description"] = cut(given["description"].strip(), _TEXT_CHARS)
        for word, is_fit in _PLAIN.items():
            if word in given and is_fit(given[word]):
                value = given[word]
                schema[word] = int(value) if is_fit is _is_count else value
        _exclusive(given, schema)
        if examples := _examples(given):
            schema["examples"] = examples
        return schema


class _Assembly:
    """Inlines definitions, or collects them in `$defs`."""

    def __init__(self, fragments: dict[str, _Fragment], counts: Counter[str], names: dict[str, str]) -> None:
        self._fragments = fragments
        self._counts = counts
        self._names = names
        self._parts = 0
        self._wanted: list[str] = []

    def complete(self, schema: Any) -> dict[str, Any]:
        self._parts, self._wanted = 0, []
        filled = self._fill(schema, 0)
        root = filled if isinstance(filled, dict) else ({} if filled else {"not": {}})
        definitions: dict[str, Any] = {}
        for key in self._wanted:  # grows while it is read
            if key not in definitions:
                definitions[key] = None
                definitions[key] = self._fill(self._fragments[key].schema, 0)
        if definitions:
            root = {**root, "$defs": {self._names[key]: definitions[key] for key in sorted(definitions)}}
        return root

    def _fill(self, part: Any, level: int) -> Any:
        if isinstance(part, _Use):
            fragment = self._fragments[part.key]
            if fragment.is_small or (self._counts[part.key] == 1 and level <= _INLINE_LEVELS):
                return self._fill(_joined(fragment.schema, part.beside), level)
            self._wanted.append(part.key)
            beside = {word: self._fill(value, level + 1) for word, value in part.beside.items()}
            return {"$ref": f"#/$defs/{self._names[part.key]}", **beside}
        if isinstance(part, dict):
            self._tally()
            return {word: self._fill(value, level + 1) for word, value in part.items()}
        if isinstance(part, list):
            self._tally()
            return [self._fill(one, level + 1) for one in part]
        return part

    def _tally(self) -> None:
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise DocumentError("it is too large with everything it refers to")


def _joined(schema: Any, beside: dict[str, Any]) -> Any:
    """A definition with the keywords beside the reference to it."""
    if not beside:
        return schema
    if isinstance(schema, dict) and beside.keys() <= _NOTES:
        return {**schema, **beside}
    return {"allOf": [schema], **beside}


def _uses_in(schema: Any) -> Counter[str]:
    uses: Counter[str] = Counter()
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, _Use):
            uses[part.key] += 1
            waiting += part.beside.values()
        elif isinstance(part, dict):
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return uses


def _types(given: Any) -> str | list[str] | None:
    """The known types, None if there are none."""
    if isinstance(given, str):
        return given if given in _TYPES else None
    if isinstance(given, list):
        return [one for one in dict.fromkeys(filter(_is_text, given)) if one in _TYPES] or None
    return None


def _exclusive(given: dict[str, Any], schema: dict[str, Any]) -> None:
    for word, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        value = given.get(word)
        if value is True and bound in schema:
            schema[word] = schema.pop(bound)
        elif _is_number(value):
            schema[word] = value


def _examples(given: dict[str, Any]) -> list[Any]:
    listed = given.get("examples")
    found = listed if isinstance(listed, list) else [given["example"]] if "example" in given else []
    return [one for one in found[:3] if _is_light(one) and len(encode_json(one)) <= _EXAMPLE_BYTES]


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema that allows null as well, which OpenAPI 3.0 calls nullable."""
    types = schema.get("type")
    if types is None or schema.keys() & (_COMBINING - {"enum"}):
        notes = {word: schema[word] for word in schema.keys() & _NOTES}
        rest = {word: value for word, value in schema.items() if word not in notes}
        return {"anyOf": [rest, {"type": "null"}], **notes} if rest else notes
    every = [types] if isinstance(types, str) else types
    schema["type"] = every if "null" in every else [*every, "null"]
    if "enum" in schema and None not in schema["enum"]:
        schema["enum"] = [*schema["enum"], None]
    return schema


def _quoted(pointer: str) -> str:
    return pointer.replace("%", "%25").replace("#", "%23")
