"""JSON Schemas of recorded tools, compiled once and applied within bounds. No reference is ever fetched.

A schema that the checker can't use (too large, references that can't be followed, an unknown dialect) is not called invalid: it is
unjudged, with a reason.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

import msgspec

from pactgate.conformance.rule import SessionRule, quoted
from pactgate.conformance.session_state import ListedItem
from pactgate.policy.schema.validation import Schema as Compiled
from pactgate.policy.schema.validation import compile_schema

_MAX_COMPILED: Final = 512
_INVALID: Final = ("it is not a valid schema", "it is not an object")
"""How `compile_schema` begins where the schema itself is wrong, and not merely beyond the bounds."""
_ENCODER: Final = msgspec.json.Encoder(decimal_format="number")


class RecordedSchema:
    """One schema. Exactly one of: `check` works, `invalid` says what breaks JSON Schema, `unjudged` why neither is known."""

    def __init__(self, schema: Any) -> None:
        self.invalid: str | None = None
        self.unjudged: str | None = None
        self._compiled: Compiled | None = None
        if isinstance(schema, bool):
            self.unjudged = "it is a boolean"
            return
        text = encoded(schema)
        compiled = "it can't be written as UTF-8" if text is None else compile_schema(text)
        if isinstance(compiled, Compiled):
            self._compiled = compiled
        elif compiled.startswith(_INVALID):
            self.invalid = compiled
        else:
            self.unjudged = compiled

    def check(self, value: Any) -> tuple[str, str] | None:
        """Where (a JSON pointer) and why a value violates the schema. None if it does not, or if that is unknown."""
        text = encoded(value)
        if self._compiled is None or text is None:
            return None
        found = next(iter(self._compiled.check(text, value)), None)
        if found is None or not found.keyword:  # what could not be decided has no keyword
            return None
        return found.pointer, found.message


class ToolSchemaRule(SessionRule):
    """A rule that validates calls against a schema of the listed tool. `member` names the schema in the definition."""

    member: ClassVar[str]

    def prepare(self) -> None:
        self._compiled: dict[str, tuple[ListedItem, RecordedSchema]] = {}

    def schema_of(self, name: Any) -> RecordedSchema | None:
        """None where the tool has no such schema, or none that can be used, which is reported."""
        item = self.session.lists["tools/list"].items.get(name) if isinstance(name, str) else None
        if item is None or item.definition.get(self.member) is None:
            return None
        held = self._compiled.get(name)
        if held is None or held[0] is not item:
            if len(self._compiled) >= _MAX_COMPILED:
                self._compiled.clear()
            held = self._compiled[name] = (item, RecordedSchema(item.definition[self.member]))
        schema = held[1]
        why = schema.unjudged or schema.invalid
        if why is not None:
            self.unjudged(f"The {self.member} of {quoted(name)}: {why}.")
        return schema if why is None else None


def encoded(value: Any) -> bytes | None:
    """The JSON text of a decoded value; None where it holds half a surrogate pair, which has no bytes."""
    try:
        return _ENCODER.encode(value)
    except ValueError:
        return None
