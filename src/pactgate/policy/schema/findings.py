"""Turns the errors of the engine into sentences: "limit must be an integer".

Must not: repeat the value that failed, only the names in it and what the schema asks for, which is public. Both are cut and made printable.
Serves the messages of S0/ECO-300.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, Final, cast

from jsonschema_rs import ValidationError, ValidationErrorKind
from msgspec import Struct

from pactgate.core.display import flat
from pactgate.policy.json_paths import Step, dotted, pointer
from pactgate.protocol.messages import encode_json

_MESSAGE_CHARS: Final = 500
_SHOWN_CHARS: Final = 200
_SHOWN_OPTIONS: Final = 20
_PHRASES: Final = {
    "const": "must be {}",
    "enum": "must be one of {}",
    "multipleOf": "must be a multiple of {}",
    "maximum": "must be at most {}",
    "exclusiveMaximum": "must be less than {}",
    "minimum": "must be at least {}",
    "exclusiveMinimum": "must be more than {}",
    "maxLength": "must have at most {} characters",
    "minLength": "must have at least {} characters",
    "pattern": "must match the pattern {}",
    "maxItems": "must have at most {} items",
    "minItems": "must have at least {} items",
    "maxProperties": "must have at most {} members",
    "minProperties": "must have at least {} members",
    "uniqueItems": "must not have an item twice",
    "unevaluatedItems": "has items the schema does not know",
    "falseSchema": "must not be there",
    "not": "is what the schema rules out",
}
_TYPES: Final = {
    "array": "an array",
    "integer": "an integer",
    "object": "an object",
    "boolean": "true or false",
    "null": "null",
}
_Kind = ValidationErrorKind


class SchemaError(Struct, frozen=True, gc=False):
    """One thing in a value that the schema does not allow. `keyword` says by which rule; it is empty where nothing could be decided."""

    pointer: str
    path: str
    message: str
    keyword: str

    def facts(self) -> dict[str, str]:
        """The violation as callers see it."""
        return {"path": self.path, "pointer": self.pointer, "keyword": self.keyword, "message": self.message}


def violation(steps: Iterable[Step], keyword: str, demand: str) -> SchemaError:
    """`demand` continues a sentence about the value."""
    places = tuple(steps)
    path = dotted(places)
    message = flat(f"{path or 'the value'} {demand}", _MESSAGE_CHARS)
    return SchemaError(pointer=pointer(places), path=path, message=message, keyword=keyword)


class SchemaExplainer:
    """Explains errors of one schema. `noun` is what a member of the whole value is called: "argument" or "member"."""

    def __init__(self, schema: dict[str, Any], noun: str) -> None:
        self._schema = schema
        self._noun = noun

    def of(self, errors: Sequence[ValidationError]) -> Iterator[SchemaError]:
        """Of a choice, the errors of the alternative that was meant stand for the choice, where one was."""
        waiting = [*reversed(errors)]
        while waiting:
            error = waiting.pop()
            likely = _likely(error)
            if len(likely) == 1:
                waiting += reversed(likely[0])
            else:
                yield from self._explain(error)

    def _explain(self, error: ValidationError) -> Iterator[SchemaError]:
        kind, steps = error.kind, error.instance_path
        if isinstance(kind, _Kind.AnyOf | _Kind.OneOfNotValid):
            types = [one.kind.types for errors in kind.context for one in errors if isinstance(one.kind, _Kind.Type)]
            are_types = not _likely(error) and len(types) == len(kind.context)
            wanted = f"be {_names([*chain(*types)])}" if are_types else f"match one of {len(kind.context)} alternatives"
            yield violation(steps, kind.name, f"must {wanted}")
        elif isinstance(kind, _Kind.OneOfMultipleValid):
            fitting = sum(not errors for errors in kind.context)
            yield violation(
                steps, "oneOf", f"must match exactly one of {len(kind.context)} alternatives, but matches {fitting}"
            )
        elif isinstance(kind, _Kind.AdditionalProperties | _Kind.UnevaluatedProperties):
            yield from self._unknown(error, kind.unexpected)
        elif isinstance(kind, _Kind.Required):
            yield self._about_member("missing", kind.property, steps, "required")
        else:
            yield self._assertion(error)

    def _assertion(self, error: ValidationError) -> SchemaError:
        kind, steps = error.kind, error.instance_path
        if isinstance(kind, _Kind.Type):
            return violation(steps, "type", f"must be {_names(kind.types)}")
        if isinstance(kind, _Kind.PropertyNames):
            return violation((*steps, str(kind.error.instance)), kind.name, "has a name the schema does not allow")
        if isinstance(kind, _Kind.BacktrackLimitExceeded | _Kind.RegexEngineFailure):
            return violation(steps, "pattern", "can't be matched against its pattern, which takes too many steps")
        if isinstance(kind, _Kind.Contains):
            is_most = error.schema_path[-1] == "maxContains"
            count = self._subschema(error).get("maxContains" if is_most else "minContains", 1)
            wanted = f"{'most' if is_most else 'least'} {count} items of the kind the schema asks for"
            return violation(steps, "contains", f"must contain at {wanted}")
        keyword = "false" if kind.name == "falseSchema" else kind.name
        phrase = _PHRASES.get(kind.name, "does not fit the schema")
        return violation(steps, keyword, phrase.format(_shown(kind.value)) if "{}" in phrase else phrase)

    def _about_member(self, what: str, name: str, steps: Sequence[Step], keyword: str, remark: str = "") -> SchemaError:
        holder = dotted(steps[: len(steps) - (what == "unknown")])
        shown = flat(encode_json(name).decode(), _SHOWN_CHARS)
        said = f"{what} member {shown} in {holder}" if holder else f"{what} {self._noun} {shown}"
        message = flat(f"{said}{remark}", _MESSAGE_CHARS)
        return SchemaError(pointer=pointer(steps), path=dotted(steps), message=message, keyword=keyword)

    def _unknown(self, error: ValidationError, names: list[str]) -> Iterator[SchemaError]:
        keyword = error.kind.name
        listed = self._subschema(error).get("properties", ()) if keyword == "additionalProperties" else ()
        allowed = f" (allowed: {', '.join(islice(listed, _SHOWN_OPTIONS))})" if listed else ""
        for name in names:
            yield self._about_member("unknown", name, (*error.instance_path, name), keyword, allowed)

    def _subschema(self, error: ValidationError) -> dict[str, Any]:
        """The subschema that the error is about."""
        part: Any = self._schema
        for step in error.schema_path[:-1]:
            part = part[step if isinstance(part, list) else str(step)]
        return cast(dict[str, Any], part)


def _likely(error: ValidationError) -> list[list[ValidationError]]:
    """The alternatives of the value's type and, where a member says which is meant, of its kind; each by its errors."""
    if not isinstance(error.kind, _Kind.AnyOf | _Kind.OneOfNotValid):
        return []
    steps = error.instance_path
    likely = [errors for errors in error.kind.context if not any(_is_other_type(one, steps) for one in errors)]
    if len(likely) > 1:
        likely = [errors for errors in likely if not any(_is_other_kind(one, steps) for one in errors)]
    return likely


def _is_other_type(error: ValidationError, steps: list[Step]) -> bool:
    return error.instance_path == steps and isinstance(error.kind, _Kind.Type | _Kind.Constant)


def _is_other_kind(error: ValidationError, steps: list[Step]) -> bool:
    """Whether a member with one fixed value (`kind: "circle"`) has another."""
    is_fixed = isinstance(error.kind, _Kind.Constant) or (
        isinstance(error.kind, _Kind.Enum) and len(error.kind.options) == 1
    )
    return is_fixed and error.instance_path[:-1] == steps


def _names(types: list[str]) -> str:
    """`a string or null`."""
    ordered = sorted(dict.fromkeys(types), key=lambda name: name == "null")
    return " or ".join(_TYPES.get(name, f"a {name}") for name in ordered)


def _shown(value: Any) -> str:
    if isinstance(value, list):
        more = f" or {len(value) - _SHOWN_OPTIONS} others" if len(value) > _SHOWN_OPTIONS else ""
        return ", ".join(map(_shown, value[:_SHOWN_OPTIONS])) + more
    return flat(encode_json(value).decode(), _SHOWN_CHARS)
