"""A schema as a graph of its parts: what each leads to, and what it weighs.

Reading it finds what must not reach an engine: references out of the document (never fetched), references that turn in a circle
without going down, parts combined in exponentially many ways, patterns whose cost can't be bounded. It also takes out, in place,
what asserts nothing (texts, defaults, `format`), so that a compiled schema holds only what decides.
Must not: recurse, look anything up, or judge a value. Serves S0/ECO-300 (★ remote `$ref`, ★ invalid or exponential schemas).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import Any, Final
from urllib.parse import quote, unquote

from pactgate.policy.schema.patterns import MAX_PLACES, Pattern, Unusable, read_pattern
from pactgate.policy.schema.weights import Node, Part, choice_weight, weights_of

MAX_SUBSCHEMAS: Final = 5000


class Dialect(Enum):
    """The revisions of JSON Schema that are understood."""

    DRAFT_4 = "http://json-schema.org/draft-04/schema"
    DRAFT_6 = "http://json-schema.org/draft-06/schema"
    DRAFT_7 = "http://json-schema.org/draft-07/schema"
    DRAFT_2019_09 = "https://json-schema.org/draft/2019-09/schema"
    DRAFT_2020_12 = "https://json-schema.org/draft/2020-12/schema"

    @property
    def is_early(self) -> bool:
        """Whether a `$ref` hides what stands beside it."""
        return self in (Dialect.DRAFT_4, Dialect.DRAFT_6, Dialect.DRAFT_7)

    @property
    def id_keyword(self) -> str:
        return "id" if self is Dialect.DRAFT_4 else "$id"


_SILENT: Final = frozenset(
    {"title", "description", "default", "examples", "$comment", "deprecated", "readOnly", "writeOnly", "format"}
    | {"contentEncoding", "contentMediaType", "contentSchema"}
)
_SINCE_6: Final = frozenset({"const", "contains", "propertyNames"})
_SINCE_7: Final = frozenset({"if", "then", "else"})
_SINCE_2019: Final = frozenset(
    {"dependentSchemas", "dependentRequired", "minContains", "maxContains", "unevaluatedItems", "unevaluatedProperties"}
)
_UNKNOWN: Final = {
    Dialect.DRAFT_4: _SINCE_6 | _SINCE_7 | _SINCE_2019 | {"prefixItems"},
    Dialect.DRAFT_6: _SINCE_7 | _SINCE_2019 | {"prefixItems"},
    Dialect.DRAFT_7: _SINCE_2019 | {"prefixItems"},
    Dialect.DRAFT_2019_09: frozenset({"prefixItems"}),
    Dialect.DRAFT_2020_12: frozenset({"additionalItems"}),
}

_ON_THE_VALUE: Final = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else"})
_ON_THE_VALUE_BY_NAME: Final = frozenset({"dependentSchemas", "dependencies"})
_ON_ONE_ITEM: Final = frozenset({"items", "prefixItems", "additionalItems"})
_ON_ITEMS: Final = frozenset({"contains", "unevaluatedItems"})
_ON_ONE_MEMBER: Final = frozenset({"properties", "additionalProperties"})
_ON_MEMBERS: Final = frozenset({"patternProperties", "propertyNames", "unevaluatedProperties"})
_BY_NAME: Final = _ON_THE_VALUE_BY_NAME | {"properties", "patternProperties", "$defs", "definitions"}
_WITH_PARTS: Final = _ON_THE_VALUE | _ON_ONE_ITEM | _ON_ITEMS | _ON_ONE_MEMBER | _ON_MEMBERS | _BY_NAME
_PER_PART: Final = {"required": 3, "dependentRequired": 3, "properties": 4, "contains": 12}
_PER_PART_OF_UNIQUE: Final = 50
_TIMES_FOR_UNEVALUATED: Final = 3
_NUMERIC: Final = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
_SAFE: Final = "%#/?:@!$&'()*+,;=-._~"
_ESCAPED_STEP: Final = re.compile(r"%(?:2[fF]|7[eE])")
"""Readers of pointers disagree about what an escaped slash separates."""


class Graph:
    """`targets` says where the `$ref` of a part leads, by the part's identity. `weights[n]` is the most steps that one value nested
    n levels deep, or less, can take. `is_recursive` says whether values can be followed down without end."""

    def __init__(self, root: dict[str, Any], dialect: Dialect) -> None:
        """Raises Unusable. Changes `root`."""
        root.pop(dialect.id_keyword, None)  # nothing refers to the whole by name, and the name need not even be a URI
        self.root = root
        self.dialect = dialect
        self.targets: dict[int, Part] = {}
        self.patterns: dict[str, Pattern] = {}
        self.has_unevaluated = False
        self._nodes: dict[int, Node] = {}
        self._names: dict[tuple[int, str], dict[str, Any]] = {}
        self._resources: dict[str, dict[str, Any]] = {}
        self._waiting: list[Node] = []
        self._enter(root, root)
        self._follow()
        self.weights, self.is_recursive = weights_of(list(self._nodes.values()), root)
        self._nodes.clear()

    def _enter(self, part: dict[str, Any], resource: dict[str, Any]) -> None:
        if id(part) in self._nodes:
            return
        if len(self._nodes) == MAX_SUBSCHEMAS:
            raise Unusable(f"it has more than {MAX_SUBSCHEMAS} parts")
        node = Node(part, self._identify(part, resource))
        self._nodes[id(part)] = node
        self._waiting.append(node)

    def _identify(self, part: dict[str, Any], resource: dict[str, Any]) -> dict[str, Any]:
        """The resource the part belongs to: the nearest part around it that has an id."""
        own_id = part.get(self.dialect.id_keyword)
        if isinstance(own_id, str) and not (self.dialect.is_early and "$ref" in part):
            name, _, fragment = own_id.partition("#")
            if name:
                if name in self._resources:
                    raise Unusable("two of its parts have the same $id")
                self._resources[name] = resource = part
            elif fragment:
                self._names[id(resource), fragment] = part
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(part.get(keyword), str):
                self._names[id(resource), part[keyword]] = part
        return resource

    def _follow(self) -> None:
        """All parts, then where references lead, which may be parts nothing else leads to."""
        referring: list[Node] = []
        while self._waiting or referring:
            if self._waiting:
                node = self._waiting.pop()
                self._read(node)
                if "$ref" in node.part:
                    referring.append(node)
            else:
                node = referring.pop()
                target = self._target(node)
                self.targets[id(node.part)] = target
                node.here.append(target)
                if isinstance(target, dict):
                    self._enter(target, node.resource)

    def _read(self, node: Node) -> None:
        part = node.part
        for keyword in part.keys() & _UNKNOWN[self.dialect] | part.keys() & _SILENT:
            del part[keyword]
        if part is not self.root:
            part.pop("$schema", None)
        if "$dynamicRef" in part or "$recursiveRef" in part:
            raise Unusable("it uses $dynamicRef or $recursiveRef, which are not supported")
        if "unevaluatedProperties" in part or "unevaluatedItems" in part:
            self.has_unevaluated = True
            node.times = _TIMES_FOR_UNEVALUATED
        self._weigh(node)
        for keyword in part.keys() & _WITH_PARTS:
            inner = list(_parts_in(keyword, part[keyword]))
            for applied, keywords in (
                (node.here, _ON_THE_VALUE | _ON_THE_VALUE_BY_NAME),
                (node.one_item, _ON_ONE_ITEM),
                (node.items, _ON_ITEMS),
                (node.one_member, _ON_ONE_MEMBER),
                (node.members, _ON_MEMBERS),
            ):
                if keyword in keywords:
                    applied += inner
            for one in inner:
                if isinstance(one, dict):
                    self._enter(one, node.resource)

    def _weigh(self, node: Node) -> None:
        part = node.part
        for keyword in ("enum", "const"):
            if keyword in part:
                node.weight += choice_weight(part[keyword])
        node.weight += 6 * len(part.keys() & _NUMERIC)
        node.per_part = 1 + sum(_PER_PART[keyword] for keyword in part.keys() & _PER_PART.keys())
        node.per_part_of_parts = _PER_PART_OF_UNIQUE if part.get("uniqueItems") is True else 0
        if isinstance(part.get("pattern"), str):
            pattern = self._pattern(part["pattern"])
            node.pattern_weight = pattern.cost
            if pattern.max_chars is not None:
                given = part.get("maxLength")
                part["maxLength"] = min(pattern.max_chars, given) if isinstance(given, int) else pattern.max_chars
        names = part.get("patternProperties")
        for text in names if isinstance(names, dict) else ():
            pattern = self._pattern(text)
            node.per_part += 4 + pattern.cost
            if pattern.max_chars is not None:
                raise Unusable("it has look-around or back references in the patterns of its patternProperties")

    def _pattern(self, text: str) -> Pattern:
        if text not in self.patterns:
            self.patterns[text] = read_pattern(text)
            if sum(pattern.places for pattern in self.patterns.values()) > MAX_PLACES:
                raise Unusable("its patterns are too large")
        return self.patterns[text]

    def _target(self, node: Node) -> Part:
        reference = node.part["$ref"]
        if not isinstance(reference, str):
            raise Unusable("it has a $ref that is not a text")
        name, _, fragment = reference.partition("#")
        resource: Any = node.resource
        if name:
            # Only such names mean the same part whatever the ids around them are.
            if name not in self._resources or not all(map(_PLAIN_NAME.fullmatch, self._resources)):
                raise Unusable(f"it refers to {name[:80]!r}, which is not part of it; nothing is fetched")
            resource = self._resources[name]
        is_pointer = not fragment or fragment.startswith("/")
        target = _at(resource, fragment) if is_pointer else self._names.get((id(resource), unquote(fragment)))
        if not isinstance(target, dict | bool) or _ESCAPED_STEP.search(fragment):
            raise Unusable(f"its reference {reference[:80]!r} leads nowhere")
        node.part["$ref"] = quote(reference, safe=_SAFE)  # people write `#/definitions/List<Item>`
        return target


def _parts_in(keyword: str, value: Any) -> Iterator[Part]:
    inner: Any = value if isinstance(value, list) else [value]
    if keyword in _BY_NAME:
        inner = value.values() if isinstance(value, dict) else ()
    return (one for one in inner if isinstance(one, dict | bool))


def _at(resource: Any, pointer: str) -> Any:
    found = resource
    for token in unquote(pointer).split("/")[1:]:
        step = token.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and step in found:
            found = found[step]
        elif isinstance(found, list) and step.isascii() and step.isdecimal() and int(step[:9]) < len(found):
            found = found[int(step[:9])]
        else:
            return None
    return found
