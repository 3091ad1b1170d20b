"""Reads the schema of a tool into one normal form: draft 2020-12, assertions only, every reference `#` or `#/$defs/<number>`.

The reader refuses what must not reach the engine: references out of the document (nothing is ever fetched), references that lead back to
themselves on the same value, more subschemas or larger patterns than the bounds allow. It also counts how many subschemas one value can
meet, which decides whether a check needs a time limit. Must not: look at a value. Serves S0/ECO-300.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final, TypeVar
from urllib.parse import unquote

from msgspec import Struct

from pactgate.policy.schema.patterns import MAX_SIZE, UnsupportedSchemaError, measure_pattern

MAX_SUBSCHEMAS: Final = 5000
MAX_CHAIN: Final = 64
"""Subschemas applied to one and the same value inside one another: the engine recurses through them."""
MAX_PATTERNS_SIZE: Final = 8 * MAX_SIZE
UNBOUNDED: Final = 1 << 40
BYTES_TIMES_SUBSCHEMAS: Final = 1 << 22
"""The engine needs 50 milliseconds at most for a value of so many bytes times so many subschemas, wherever they meet."""

_UNIQUE_ITEMS_COST: Final = 80
_MULTIPLE_OF_COST: Final = 8

Subschema = dict[str, Any] | bool
T = TypeVar("T")


class Dialect(Enum):
    """The drafts of JSON Schema that the gateway reads."""

    DRAFT_4 = "http://json-schema.org/draft-04/schema#"
    DRAFT_6 = "http://json-schema.org/draft-06/schema#"
    DRAFT_7 = "http://json-schema.org/draft-07/schema#"
    DRAFT_2019_09 = "https://json-schema.org/draft/2019-09/schema"
    DRAFT_2020_12 = "https://json-schema.org/draft/2020-12/schema"

    @property
    def is_early(self) -> bool:
        """In early drafts a `$ref` hides its siblings."""
        return self in (Dialect.DRAFT_4, Dialect.DRAFT_6, Dialect.DRAFT_7)


_UNEVALUATED: Final = frozenset({"unevaluatedItems", "unevaluatedProperties"})
_SINGLE: Final = frozenset(
    {"not", "if", "then", "else", "items", "contains", "additionalProperties", "propertyNames", *_UNEVALUATED}
)
_LISTS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED: Final = frozenset({"properties", "patternProperties", "dependentSchemas"})
_IN_PLACE: Final = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"})
APPLICATORS: Final = _SINGLE | _LISTS | _NAMED
"""The keywords that hold subschemas."""
_ASSERTIONS: Final = frozenset(
    {"type", "enum", "const", "multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"}
    | {"maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "minContains", "maxContains"}
    | {"maxProperties", "minProperties", "required"}
)
_SINCE_2019: Final = frozenset({"dependentSchemas", "dependentRequired", "minContains", "maxContains", *_UNEVALUATED})
_SINCE_7: Final = _SINCE_2019 | {"if", "then", "else"}
_UNKNOWN: Final = {
    Dialect.DRAFT_4: _SINCE_7 | {"prefixItems", "const", "contains", "propertyNames"},
    Dialect.DRAFT_6: _SINCE_7 | {"prefixItems"},
    Dialect.DRAFT_7: _SINCE_2019 | {"prefixItems"},
    Dialect.DRAFT_2019_09: frozenset({"prefixItems"}),
    Dialect.DRAFT_2020_12: frozenset({"additionalItems"}),
}


class Document(Struct, frozen=True):
    """A schema in normal form. `cost` is the number of subschemas one value can meet, `UNBOUNDED` where depth decides."""

    root: dict[str, Any]
    cost: int


def read_document(root: dict[str, Any], dialect: Dialect) -> Document:
    """Raises UnsupportedSchemaError."""
    return _Reader(root, dialect).read()


class _Definition:
    """The root or the target of a reference, and the references inside it."""

    def __init__(self, source: dict[str, Any], resource: dict[str, Any]) -> None:
        self.source = source
        self.resource = resource
        self.schema: dict[str, Any] = {}
        self.cost = 0
        self.references: list[str] = []
        self.in_place: dict[str, int] = {}
        """References applied to the same value as the definition, each with the number of subschemas around it."""


class _Reader:
    def __init__(self, root: dict[str, Any], dialect: Dialect) -> None:
        self._root = root
        self._dialect = dialect
        self._id_keyword = "id" if dialect is Dialect.DRAFT_4 else "$id"
        self._subschemas = 0
        self._patterns: dict[str, int] = {}
        self._resources: dict[str, dict[str, Any]] = {}
        self._resource_of: dict[int, dict[str, Any]] = {}
        self._anchors: dict[tuple[int, str], dict[str, Any]] = {}
        self._names = {id(root): "#"}
        self._definitions = {"#": _Definition(root, root)}

    def read(self) -> Document:
        self._collect_names(self._root, self._root)
        waiting = ["#"]
        for name in waiting:
            definition = self._definitions[name]
            known = len(self._definitions)
            schema = self._read(definition.source, definition=definition, resource=definition.resource, depth=0)
            assert isinstance(schema, dict), "a definition is an object"
            definition.schema = schema
            waiting += list(self._definitions)[known:]
        self._refuse_endless_chains()
        inner = {name: one.schema for name, one in self._definitions.items() if name != "#"}
        root = self._definitions["#"].schema
        return Document(root={**root, "$defs": inner} if inner else root, cost=self._total_cost())

    def _collect_names(self, part: Any, resource: dict[str, Any]) -> None:
        """Find `$id` and anchors first: a reference may stand before its target."""
        if not isinstance(part, dict):
            return
        own_id = part.get(self._id_keyword)
        if isinstance(own_id, str) and part is not self._root and not (self._dialect.is_early and "$ref" in part):
            name, _, fragment = own_id.partition("#")
            if name in self._resources:
                raise UnsupportedSchemaError("two of its subschemas have the same $id")
            if name:
                self._resources[name] = self._resource_of[id(part)] = resource = part
            elif fragment:
                self._anchors[id(resource), fragment] = part
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(part.get(keyword), str):
                self._anchors[id(resource), part[keyword]] = part
        source = self._normalise(part)
        for keyword in source.keys() & APPLICATORS:
            map_subschemas(keyword, source[keyword], partial(self._collect_names, resource=resource))
        for inner in _local_definitions(part):
            self._collect_names(inner, resource)

    def _read(self, part: Any, *, definition: _Definition, resource: dict[str, Any], depth: int | None) -> Subschema:
        """`depth` counts the subschemas around this one on the same value; None means on another value."""
        if isinstance(part, bool):
            return part
        if not isinstance(part, dict):
            raise UnsupportedSchemaError("one of its references leads to something that is not a schema")
        self._subschemas += 1
        if self._subschemas > MAX_SUBSCHEMAS:
            raise UnsupportedSchemaError(f"it has more than {MAX_SUBSCHEMAS} subschemas")
        if "$dynamicRef" in part or "$recursiveRef" in part:
            raise UnsupportedSchemaError("it uses $dynamicRef or $recursiveRef, which are not supported")
        resource = self._resource_of.get(id(part), resource)
        for inner in _local_definitions(part):
            self._define(inner, resource)
        source = self._normalise(part)
        read = {keyword: value for keyword, value in source.items() if keyword in _ASSERTIONS}
        definition.cost += self._own_cost(read, source)
        for keyword in [keyword for keyword in source if keyword in APPLICATORS]:
            deeper = depth + 1 if depth is not None and keyword in _IN_PLACE else None
            read[keyword] = map_subschemas(
                keyword, source[keyword], partial(self._read, definition=definition, resource=resource, depth=deeper)
            )
        if "$ref" in part:
            self._refer(read, self._target(part["$ref"], resource), definition, resource, depth)
        return read

    def _refer(
        self,
        read: dict[str, Any],
        target: Subschema,
        definition: _Definition,
        resource: dict[str, Any],
        depth: int | None,
    ) -> None:
        if isinstance(target, bool):
            read["allOf"] = [*read.get("allOf", ()), target]
            return
        name = self._define(target, resource)
        read["$ref"] = name if name == "#" else f"#/$defs/{name}"
        definition.references.append(name)
        if depth is not None:
            definition.in_place[name] = max(depth + 1, definition.in_place.get(name, 0))

    def _define(self, target: Any, resource: dict[str, Any]) -> str:
        if not isinstance(target, dict):
            return ""
        name = self._names.setdefault(id(target), str(len(self._names)))
        if name not in self._definitions:
            self._definitions[name] = _Definition(target, resource)
        return name

    def _normalise(self, part: dict[str, Any]) -> dict[str, Any]:
        """The keywords of the dialect, written as draft 2020-12 writes them."""
        if self._dialect.is_early and "$ref" in part:
            return {}
        source = {keyword: value for keyword, value in part.items() if keyword not in _UNKNOWN[self._dialect]}
        if isinstance(source.get("items"), list):
            source["prefixItems"] = source["items"]
            source["items"] = source.get("additionalItems", True)
        if source.get("additionalProperties") is False:
            source.setdefault("properties", {})  # without it the engine does not name the members
        dependent = dict(_expect(dict, source.pop("dependentSchemas", {})))
        given = [source.pop("dependentRequired", {}), source.pop("dependencies", {}) if self._dialect.is_early else {}]
        for name, wanted in [pair for members in given for pair in _expect(dict, members).items()]:
            schema = {"required": wanted} if isinstance(wanted, list) else wanted
            dependent[name] = {"allOf": [dependent[name], schema]} if name in dependent else schema
        if dependent:
            source["dependentSchemas"] = dependent
        for bound, strict in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
            flag = source.get(strict)
            if isinstance(flag, bool):  # draft 4
                del source[strict]
                if flag and bound in source:
                    source[strict] = source.pop(bound)
        return source

    def _own_cost(self, assertions: dict[str, Any], source: dict[str, Any]) -> int:
        if source.keys() & _UNEVALUATED:
            return UNBOUNDED  # the engine asks subschemas again to learn what they evaluated
        patterns = [*_expect(dict, source.get("patternProperties", {}))]
        if isinstance(source.get("pattern"), str):
            patterns.append(source["pattern"])
        cost = sum(_count(value) for value in assertions.values())
        for pattern in patterns:
            measured = measure_pattern(pattern)
            self._patterns[pattern] = measured.size
            cost += BYTES_TIMES_SUBSCHEMAS // measured.max_bytes
        if sum(self._patterns.values()) > MAX_PATTERNS_SIZE:
            raise UnsupportedSchemaError("its patterns are too large")
        cost += _UNIQUE_ITEMS_COST if assertions.get("uniqueItems") is True else 0
        return 1 + cost + (_MULTIPLE_OF_COST if "multipleOf" in assertions else 0)

    def _target(self, reference: Any, resource: dict[str, Any]) -> Subschema:
        if not isinstance(reference, str):
            raise UnsupportedSchemaError("it has a $ref that is not a string")
        name, _, fragment = reference.partition("#")
        if name:
            # A name is unambiguous only if no `$id` changes the base it is resolved against.
            if name not in self._resources or any(":" in one or "/" in one for one in self._resources):
                raise UnsupportedSchemaError(f"it refers to {name[:80]!r}, which is not part of it; nothing is fetched")
            resource = self._resources[name]
        fragment = unquote(fragment)
        is_pointer = not fragment or fragment.startswith("/")
        target = _at(resource, fragment) if is_pointer else self._anchors.get((id(resource), fragment))
        if not isinstance(target, dict | bool):
            raise UnsupportedSchemaError(f"its reference {reference[:80]!r} leads nowhere")
        return target

    def _refuse_endless_chains(self) -> None:
        chains: dict[str, int] = {}
        try:
            order = [*TopologicalSorter({name: one.in_place for name, one in self._definitions.items()}).static_order()]
        except CycleError:
            raise UnsupportedSchemaError("it refers to itself without end") from None
        for name in order:
            inner = self._definitions[name].in_place
            chains[name] = max((depth + chains[other] for other, depth in inner.items()), default=0)
        if max(chains.values()) > MAX_CHAIN:
            raise UnsupportedSchemaError(f"its subschemas apply each other more than {MAX_CHAIN} deep")

    def _total_cost(self) -> int:
        """The cost of the root with all references replaced by their targets."""
        total: dict[str, int] = {}
        try:
            order = [
                *TopologicalSorter({name: one.references for name, one in self._definitions.items()}).static_order()
            ]
        except CycleError:
            return UNBOUNDED
        for name in order:
            one = self._definitions[name]
            total[name] = min(UNBOUNDED, one.cost + sum(total[other] for other in one.references))
        return total["#"]


def map_subschemas(keyword: str, value: Any, change: Callable[[Any], Any]) -> Any:
    """The value of an applicator with each subschema replaced by what `change` makes of it."""
    if keyword in _SINGLE:
        return change(value)
    if keyword in _LISTS:
        return [change(one) for one in _expect(list, value)]
    return {name: change(one) for name, one in _expect(dict, value).items()}


def _local_definitions(part: dict[str, Any]) -> list[Any]:
    return [one for keyword in ("$defs", "definitions") for one in _expect(dict, part.get(keyword, {})).values()]


def _expect(kind: type[T], value: Any) -> T:
    if not isinstance(value, kind):
        raise UnsupportedSchemaError("one of its subschemas is malformed")
    return value


def _count(value: Any) -> int:
    if isinstance(value, dict | list):
        return 1 + sum(map(_count, value.values() if isinstance(value, dict) else value))
    return 1


def _at(resource: Any, pointer: str) -> Any:
    found = resource
    for token in pointer.split("/")[1:]:
        step = token.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and step in found:
            found = found[step]
        elif isinstance(found, list) and step.isascii() and step.isdecimal() and int(step[:9]) < len(found):
            found = found[int(step[:9])]
        else:
            return None
    return found
