"""LINT-003."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pactgate.conformance.rule import DefinitionRule, pointer, quoted

_COMBINING: Final = ("$ref", "oneOf", "anyOf", "allOf", "not", "enum")
_MAX_SCHEMAS: Final = 2000
_HOLDERS: Final = ("properties", "$defs", "definitions", "patternProperties")
_LISTS: Final = ("oneOf", "anyOf", "allOf", "prefixItems")
_SINGLE: Final = ("items", "additionalProperties", "not")


class SchemaRefused(DefinitionRule):
    """Input schemas have a form that model APIs accept: a plain object at the top, and arrays with items.

    What it checks
        The `inputSchema` of each listed tool has no `$ref`, `oneOf`, `anyOf`, `allOf`, `not` or `enum` at its top level, and
        `type` is "object" there. Each schema of the type "array" inside it has `items` (or `prefixItems`).

    Why
        The API of Anthropic refuses schemas that combine others at the top, that of OpenAI also arrays without items. The whole
        request fails, or the client drops the tool without a word.

    How to fix
        Write the properties at the top, say in their descriptions which go together, and check that in the tool.

    Reference
        Tools, Data Types; the limits of the model APIs for input schemas; all revisions.
    """

    code = "LINT-003"
    spec = "server/tools#tool"

    def at_end(self) -> None:
        for _, name, item, place in self.definitions():
            self.seen += 1
            schema = item.definition.get("inputSchema")
            at = f"{place}/inputSchema"
            if not isinstance(schema, dict) or schema.get("type") != "object":
                self.fault(item.message, at if isinstance(schema, dict) else place, _no_object(name))
                continue
            for keyword in (keyword for keyword in _COMBINING if keyword in schema):
                text = f"The inputSchema of {quoted(name)} has {keyword} at its top level, which clients refuse."
                self.fault(item.message, at + pointer(keyword), text)
            for where in _arrays_without_items(schema):
                text = f"The inputSchema of {quoted(name)} has an array without items, which clients refuse."
                self.fault(item.message, at + where, text)


def _no_object(name: str) -> str:
    return f'The inputSchema of {quoted(name)} is not a schema of the type "object".'


def _arrays_without_items(schema: dict[str, Any]) -> Iterator[str]:
    """Pointers to array schemas without items. Looks at no more than a bounded number of schemas."""
    waiting: list[tuple[str, Any]] = [("", schema)]
    for _ in range(_MAX_SCHEMAS):
        if not waiting:
            return
        at, held = waiting.pop()
        if not isinstance(held, dict):
            continue
        if held.get("type") == "array" and "items" not in held and "prefixItems" not in held:
            yield at
        waiting += _below(at, held)


def _below(at: str, schema: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for holder in _HOLDERS:
        if isinstance(schema.get(holder), dict):
            yield from ((at + pointer(holder, name), below) for name, below in schema[holder].items())
    for name in _LISTS:
        if isinstance(schema.get(name), list):
            yield from ((at + pointer(name, number), below) for number, below in enumerate(schema[name]))
    for name in _SINGLE:
        if name in schema:
            yield at + pointer(name), schema[name]
