"""Schemas of tools: compiled once, when a tool is discovered, and held against every value of a call (D8).

Whatever a server wrote as a schema and whatever is held against it, a check ends: what it may cost is known before it starts. The
engine does it where the schema's weight times the value's size is within `BUDGET` (ten nanoseconds a step, a tenth of a second in all);
otherwise a walk that counts its steps does, and what can't be decided within the budget is refused, saying so. Nothing is fetched,
coerced, filled in or stripped; `format` and `content*` assert nothing; a pattern with look-around or back references never matches a
text of more than 1024 (in repetitions: 256) characters. Must not: repeat a value in an error, or raise.
Enforces S0/ECO-300 and the two checks of S2/MCP-001.
"""

from __future__ import annotations

from array import array
from functools import lru_cache
from itertools import accumulate
from typing import Any, Final

import jsonschema_rs
import msgspec
from msgspec import UNSET, Struct

from pactgate.core.display import flat
from pactgate.policy.json_paths import dotted, pointer
from pactgate.policy.schema.graph import Dialect, Graph
from pactgate.policy.schema.patterns import BYTES, ENGINE, Unusable
from pactgate.policy.schema.phrases import has_twins
from pactgate.policy.schema.walk import ENGINES, Explainer, Fault
from pactgate.policy.schema.weights import MAX_LEVELS
from pactgate.protocol import messages
from pactgate.protocol.json_limits import check_shape

MAX_SCHEMA_BYTES: Final = 256 * 1024
MAX_SCHEMA_DEPTH: Final = 64
BUDGET: Final = 10_000_000

_QUICK_BYTES: Final = 65_536
_MESSAGE_CHARS: Final = 500
_LONG_DIGITS: Final = 40
_MAX_DIGITS: Final = 400
_EXPLAINERS: Final = 16
_NOT_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_STEPS: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_DIGITS: Final = bytes(48 if byte in b"0123456789" else 32 for byte in range(256))


class SchemaError(Struct, frozen=True, gc=False):
    """One thing in a value that the schema does not allow. `keyword` is the one that says so, or empty where nothing could be checked."""

    pointer: str
    path: str
    message: str
    keyword: str

    def facts(self) -> dict[str, str]:
        """The error as it is shown to callers."""
        return {"path": self.path, "pointer": self.pointer, "keyword": self.keyword, "message": self.message}


class Schema:
    """A compiled schema."""

    __slots__ = ("_dialect", "_has_unevaluated", "_is_recursive", "_is_valid", "_quick_bytes", "_text", "_weights")

    def __init__(self, text: bytes, graph: Graph) -> None:
        """Raises what the engine raises for a schema it can't compile."""
        engine = ENGINES[graph.dialect](
            graph.root,
            validate_formats=False,
            offline=True,
            pattern_options=ENGINE,
            keywords={"uniqueItems": _UniqueItems},
        )
        self._is_valid = engine.is_valid
        self._text = text
        self._dialect = graph.dialect
        self._weights = graph.weights if graph.is_recursive else graph.weights[-1:]
        self._is_recursive = graph.is_recursive
        self._has_unevaluated = graph.has_unevaluated
        self._quick_bytes = _quick_bytes(graph.weights[-1])

    def check(self, text: bytes | None, value: Any = UNSET) -> tuple[SchemaError, ...]:
        """What is wrong with a JSON text, ten things at most; nothing when it fits. No text stands for `{}`.

        `value` is the decoded text, where the caller has it already.
        """
        if text is None:
            text = b"{}"
        try:
            if value is UNSET:
                value = messages.value(text)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return (_error("is not JSON that can be read"),)
        if self._is_recursive:
            return self._check_nested(text, value)
        if len(text) <= self._quick_bytes:
            return () if self._is_valid(value) else self._explain(value)
        return self._check_large(text, value, self._weights[0])

    def _check_nested(self, text: bytes, value: Any) -> tuple[SchemaError, ...]:
        """Against a schema that leads back to itself, depth decides what a value costs, and how deep the engine goes."""
        levels = _nesting(text)
        if levels > MAX_LEVELS:
            return (_error(f"is nested deeper than {MAX_LEVELS} levels"),)
        if len(text) <= _quick_bytes(self._weights[levels]):
            return () if self._is_valid(value) else self._explain(value)
        return self._check_large(text, value, self._weights[levels])

    def _check_large(self, text: bytes, value: Any, weight: int) -> tuple[SchemaError, ...]:
        digits = text.translate(_DIGITS)
        if b"0" * _MAX_DIGITS in digits and b"0" * _MAX_DIGITS in _outside_strings(text).translate(_DIGITS):
            return (_error(f"has a number of {_MAX_DIGITS} digits or more, which can't be checked"),)
        size = text.count(b",") + text.count(b"[") + text.count(b"{") + 1
        size += len(text) if b"0" * _LONG_DIGITS in digits else len(text) // BYTES
        if size * weight <= BUDGET:
            return () if self._is_valid(value) else self._explain(value)
        findings = _explainer(self._text, self._dialect).explain(value, BUDGET)
        if findings.is_complete and not self._has_unevaluated:
            return tuple(map(_described, findings.faults))
        return (_error("is too large to be checked against this schema"),)

    def _explain(self, value: Any) -> tuple[SchemaError, ...]:
        """The engine says no; these are the reasons, as far as they can be found."""
        findings = _explainer(self._text, self._dialect).explain(value, BUDGET)
        return tuple(map(_described, findings.faults)) or (_error("does not fit the schema"),)


def compile_schema(text: bytes) -> Schema | str:
    """A schema ready to check values, or why it can't be used. Takes bounded time and memory, whatever the text is.

    A schema that does not name its dialect is read as draft 2020-12 and, if that is not what it is, as draft 7: before MCP had a default
    that was what most servers wrote.
    """
    if len(text) > MAX_SCHEMA_BYTES:
        return f"it has more than {MAX_SCHEMA_BYTES} bytes"
    if check_shape(text, MAX_SCHEMA_DEPTH) is not None:
        return f"it is nested deeper than {MAX_SCHEMA_DEPTH} levels"
    try:
        return _compile(text, _dialects(_read(text)))
    except Unusable as problem:
        return problem.why
    except (jsonschema_rs.ReferencingError, ValueError, OverflowError) as problem:
        return f"it can't be compiled: {flat(str(problem), 200)}"


def _compile(text: bytes, dialects: tuple[Dialect, ...]) -> Schema | str:
    problems = []
    for dialect in dialects:
        try:
            return Schema(text, Graph(_read(text), dialect))
        except jsonschema_rs.ValidationError as problem:
            place = flat(pointer(problem.instance_path), 100)
            where = f" at {place}" if place else ""
            problems.append(f"it is not a valid schema{where}: {flat(problem.message, 200)}")
    return problems[0]


def _read(text: bytes) -> dict[str, Any]:
    try:
        schema = messages.value(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise Unusable("it is not JSON that can be read") from None
    if not isinstance(schema, dict):
        raise Unusable("it is not an object")
    return schema


def _dialects(schema: dict[str, Any]) -> tuple[Dialect, ...]:
    named = schema.get("$schema")
    if named is None:
        return (Dialect.DRAFT_2020_12, Dialect.DRAFT_7)
    known = {dialect.value.partition("://")[2]: dialect for dialect in Dialect}
    dialect = known.get(named.partition("://")[2].removesuffix("#")) if isinstance(named, str) else None
    if dialect is None:
        raise Unusable(f"its dialect {flat(str(named), 100)} is not supported")
    return (dialect,)


@lru_cache(maxsize=_EXPLAINERS)
def _explainer(text: bytes, dialect: Dialect) -> Explainer:
    """Kept for the schemas that were broken last: the decoded schema is several times its text, and most are never broken."""
    return Explainer(Graph(_read(text), dialect))


class _UniqueItems:
    """In the engine's place: its own takes quadratic time over long numbers."""

    def __init__(self, parent_schema: dict[str, Any], value: Any, schema_path: list[str | int]) -> None:
        self._is_asked = value is True

    def validate(self, instance: Any) -> None:
        if self._is_asked and has_twins(instance):
            raise ValueError("an item stands twice")


def _described(fault: Fault) -> SchemaError:
    path = dotted(fault.steps)
    message = flat(f"{path or 'the value'} {fault.demand}", _MESSAGE_CHARS)
    return SchemaError(pointer(fault.steps), path, message, fault.keyword)


def _error(demand: str) -> SchemaError:
    return _described(Fault((), "", demand))


def _quick_bytes(weight: int) -> int:
    """Up to where a text needs no closer look: n bytes hold at most n / 2 values, and no number longer than themselves."""
    return min(_QUICK_BYTES, 2 * BUDGET // (3 * weight))


def _outside_strings(text: bytes) -> bytes:
    return b"".join(text.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2])


def _nesting(text: bytes) -> int:
    """How many levels deep a JSON text is."""
    steps = array("b", _outside_strings(text).translate(_STEPS, _NOT_BRACKETS))
    return max(accumulate(steps), default=0)
