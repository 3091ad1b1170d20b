"""Schemas of tools: compiled once, when a tool is discovered, and checked against every value of a call (D8).

Whatever a server wrote as a schema and whatever value it meets, a check ends soon. Where the size of the schema times the size of the value
is small, the engine decides at once; otherwise it decides under a time limit, and what it can't decide in time is refused, saying so.
Nothing is fetched, coerced, filled in or stripped; `format` and `content*` assert nothing. Must not: repeat a value in an error, or raise.
Enforces S0/ECO-300 and the two checks of S2/MCP-001.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from typing import Any, Final

import jsonschema_rs
import msgspec
from msgspec import UNSET

from pactgate.core.display import flat
from pactgate.policy.json_paths import pointer
from pactgate.policy.schema.document import BYTES_TIMES_SUBSCHEMAS, Dialect, read_document
from pactgate.policy.schema.findings import SchemaError, violation
from pactgate.policy.schema.patterns import UnsupportedSchemaError
from pactgate.policy.schema.time_limit import COUNTED, Clock, LimitedSchema, compile_engine
from pactgate.protocol import messages
from pactgate.protocol.json_limits import MAX_CONTAINERS, check_shape

MAX_SCHEMA_BYTES: Final = 256 * 1024
MAX_SCHEMA_DEPTH: Final = 64
MAX_ERRORS: Final = 10
_EXPLAINED_BYTES: Final = 128 * 1024
_MAX_EXPLAINED_BYTES: Final = 2 * 1024 * 1024
"""Up to here the reason is looked for: the engine copies the value for it, twice, and does not give all of that memory back."""
_MAX_REPEATS: Final = 200
"""Errors looked at: the same one may be found on many ways."""
_LIMITED_SCHEMAS: Final = 16


class Schema:
    """A compiled schema. `noun` is what a member of its values is called in messages."""

    __slots__ = ("_clock", "_dialect", "_is_valid", "_noun", "_plain_bytes", "_source")

    def __init__(self, source: bytes, dialect: Dialect, noun: str, clock: Clock) -> None:
        """Raises UnsupportedSchemaError, and what the engine raises for a schema it can't compile."""
        document = read_document(_read(source), dialect)
        self._is_valid = compile_engine(document.root).is_valid
        self._plain_bytes = BYTES_TIMES_SUBSCHEMAS // document.cost
        self._source = source
        self._dialect = dialect
        self._noun = noun
        self._clock = clock

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
            return (violation((), "", "is not JSON that can be read"),)
        if len(text) <= self._plain_bytes:
            return () if self._is_valid(value) else self._explain(text, value)
        return self._check_within_limit(text, value)

    def _check_within_limit(self, text: bytes, value: Any) -> tuple[SchemaError, ...]:
        if check_shape(text, MAX_SCHEMA_DEPTH) is not None:
            bounds = f"{MAX_SCHEMA_DEPTH} levels, or has more than {MAX_CONTAINERS} arrays and objects"
            return (violation((), "", f"is nested deeper than {bounds}"),)
        is_valid, reason = _limited(self._source, self._dialect, self._clock).is_valid(value)
        if reason:
            return (violation((), "", reason),)
        return () if is_valid else self._explain(text, value)

    def _explain(self, text: bytes, value: Any) -> tuple[SchemaError, ...]:
        """The value does not fit; these are the reasons, as far as they are found soon."""
        if len(text) > _MAX_EXPLAINED_BYTES:
            return (violation((), "schema", "does not fit the schema"),)
        limited = _limited(self._source, self._dialect, self._clock)
        find = limited.violations if len(text) <= _EXPLAINED_BYTES else limited.first_violation
        found = dict.fromkeys(islice(find(value, self._noun), _MAX_REPEATS))
        return tuple(islice(found, MAX_ERRORS)) or (violation((), "schema", "does not fit the schema"),)


class LazySchema:
    """A schema that is compiled for the first value: a document may have a thousand, and most are never needed."""

    __slots__ = ("_schema", "_source")

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._schema: Schema | str | None = None

    def check(self, text: bytes | None, value: Any = UNSET) -> tuple[SchemaError, ...]:
        """As `Schema.check`. A schema that can't be used is the one thing wrong with every value."""
        if self._schema is None:
            self._schema = compile_schema(self._source)
        if isinstance(self._schema, str):
            return (violation((), "schema", f"can't be validated, because of its schema: {self._schema}"),)
        return self._schema.check(text, value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LazySchema) and other._source == self._source

    def __hash__(self) -> int:
        return hash(self._source)


def compile_schema(source: bytes, *, noun: str = "member", clock: Clock = COUNTED) -> Schema | str:
    """A schema ready to check values, or why it can't be used. Takes bounded time and memory, whatever the source is.

    A schema that does not name its dialect is read as draft 2020-12 and, if that is not what it is, as draft 7: before MCP had a default
    that was what most servers wrote. `clock` measures the time limit of each check.
    """
    if len(source) > MAX_SCHEMA_BYTES:
        return f"it has more than {MAX_SCHEMA_BYTES} bytes"
    if check_shape(source, MAX_SCHEMA_DEPTH) is not None:
        return f"it is nested deeper than {MAX_SCHEMA_DEPTH} levels"
    problems = []
    try:
        for dialect in _dialects(_read(source)):
            try:
                jsonschema_rs.meta.validate({**_read(source), "$schema": dialect.value})
                return Schema(source, dialect, noun, clock)
            except jsonschema_rs.ValidationError as problem:
                place = flat(pointer(problem.instance_path), 100)
                where = f" at {place}" if place else ""
                problems.append(f"it is not a valid schema{where}: {flat(problem.message, 200)}")
    except UnsupportedSchemaError as problem:
        return problem.reason
    except (jsonschema_rs.ReferencingError, ValueError, OverflowError) as problem:
        return f"it can't be compiled: {flat(str(problem), 200)}"
    return problems[0]


def _read(source: bytes) -> dict[str, Any]:
    try:
        schema = messages.value(source)
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise UnsupportedSchemaError("it is not JSON that can be read") from None
    if not isinstance(schema, dict):
        raise UnsupportedSchemaError("it is not an object")
    return schema


def _dialects(schema: dict[str, Any]) -> tuple[Dialect, ...]:
    named = schema.get("$schema")
    if named is None:
        return (Dialect.DRAFT_2020_12, Dialect.DRAFT_7)
    known = {_without_scheme(dialect.value): dialect for dialect in Dialect}
    dialect = known.get(_without_scheme(named)) if isinstance(named, str) else None
    if dialect is None:
        raise UnsupportedSchemaError(f"its dialect {flat(str(named), 100)} is not supported")
    return (dialect,)


def _without_scheme(uri: str) -> str:
    return uri.partition("://")[2].removesuffix("#")


@lru_cache(maxsize=_LIMITED_SCHEMAS)
def _limited(source: bytes, dialect: Dialect, clock: Clock) -> LimitedSchema:
    """Kept for the schemas that needed it last: most schemas are never broken and never meet a large value."""
    return LimitedSchema(read_document(_read(source), dialect).root, clock)
