"""Validation under a time limit, inside the engine and without a thread or process.

The engine can't be interrupted, but it calls custom keywords. To decide, every subschema X becomes `{"allOf": [guard, X]}`: once the limit
is reached all guards fail, and so does the check, within milliseconds; its result then counts as undecided. To explain, X becomes
`{"if": guard, "then": X}`: after the limit X is skipped and adds no error. One thread.
Must not: be used where the plain engine is safe; a guard costs up to 0.5 microseconds. Serves S0/ECO-300.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from jsonschema_rs import Draft202012Validator, ValidationError

from pactgate.policy.schema.document import APPLICATORS, Subschema, map_subschemas
from pactgate.policy.schema.findings import SchemaError, SchemaExplainer
from pactgate.policy.schema.patterns import ENGINE, measure_pattern
from pactgate.protocol.messages import encode_json

if TYPE_CHECKING:
    from jsonschema_rs import KeywordValidator

Clock = Callable[[], float]
"""Seconds. The gateway hands in the CPU time of its thread, so that a busy machine refuses nothing."""
COUNTED: Final[Clock] = count(0.0, 5e-7).__next__
"""A clock that counts guards, for those whose results must not depend on the machine. It bounds only combinations of subschemas."""
TIME_LIMIT_S: Final = 0.05
EXPLAIN_LIMIT_S: Final = 0.005
"""The engine then needs up to fifteen times as long to turn its errors into Python objects, each with a copy of the value."""
MAX_UNIQUE_BYTES: Final = 64 * 1024
"""Of an array whose items must be unique: 20 milliseconds of comparing."""
MAX_CONTAINS_ITEMS: Final = 50_000
"""The engine asks `contains` about every item even when all guards fail."""
_SKIPPED_MEANS_FAILED: Final = frozenset({"not", "oneOf", "contains", "unevaluatedItems", "unevaluatedProperties"})
"""Keywords that can fail because a subschema was skipped."""
_GUARD: Final = "pactgate:guard"
_HEAVY: Final = frozenset({"pattern", "uniqueItems", "multipleOf", "$ref"}) | APPLICATORS
_LIGHT_CHARS: Final = 100
_EXACT: Final = Context(prec=MAX_PREC, Emin=MIN_EMIN, Emax=MAX_EMAX)


class TimeLimit:
    """What a check may still spend. `reason` says why the limit is reached, or is empty."""

    def __init__(self, clock: Clock) -> None:
        self.reason = ""
        self._clock = clock
        self._ends_s = 0.0

    def start(self, seconds: float) -> None:
        self.reason = ""
        self._ends_s = self._clock() + seconds

    def is_reached(self) -> bool:
        if not self.reason and self._clock() > self._ends_s:
            self.reason = f"can't be checked within {TIME_LIMIT_S * 1000:.0f} ms"
        return self.reason != ""


class LimitedSchema:
    """A schema in normal form, compiled with guards when it is first needed: to decide, and to explain."""

    def __init__(self, root: dict[str, Any], clock: Clock) -> None:
        self._limit = TimeLimit(clock)
        self._root = root
        self._has_alternatives = "'anyOf':" in str(root) or "'oneOf':" in str(root)

    @cached_property
    def _decider(self) -> tuple[dict[str, Any], Draft202012Validator]:
        schema = _guarded(self._root, explains=False)
        return schema, compile_engine(schema, self._limit)

    @cached_property
    def _explainer(self) -> tuple[dict[str, Any], Draft202012Validator]:
        schema = _guarded(self._root, explains=True)
        return schema, compile_engine(schema, self._limit)

    def is_valid(self, value: Any) -> tuple[bool, str]:
        """Whether the value fits, and why that could not be decided, if it could not."""
        _, engine = self._decider
        self._limit.start(TIME_LIMIT_S)
        is_valid = engine.is_valid(value)
        return is_valid, self._limit.reason

    def violations(self, value: Any, noun: str) -> Iterator[SchemaError]:
        """What is wrong with a value, as far as it is found within the limits."""
        schema, engine = self._explainer
        self._limit.start(EXPLAIN_LIMIT_S)
        errors = list(engine.iter_errors(value))
        if self._limit.reason:
            errors = [error for error in errors if error.kind.name not in _SKIPPED_MEANS_FAILED]
        return SchemaExplainer(schema, noun).of(errors)

    def first_violation(self, value: Any, noun: str) -> Iterator[SchemaError]:
        """The first thing wrong with a large value; none where the engine would copy the value for each alternative."""
        schema, engine = self._decider
        self._limit.start(TIME_LIMIT_S)
        try:
            if not self._has_alternatives:
                engine.validate(value)
        except ValidationError as error:
            return SchemaExplainer(schema, noun).of([error] if not self._limit.reason else [])
        return iter(())


def compile_engine(root: dict[str, Any], limit: TimeLimit | None = None) -> Draft202012Validator:
    """Raises what the engine raises. Nothing is fetched; `format` asserts nothing."""
    keywords = {"uniqueItems": _PLAIN_UNIQUE_ITEMS}
    if limit is not None:
        keywords = {"uniqueItems": _unique_items(limit), _GUARD: _guard(limit)}
    return Draft202012Validator(root, validate_formats=False, offline=True, pattern_options=ENGINE, keywords=keywords)


def _guard(limit: TimeLimit) -> type[KeywordValidator]:
    class Guard:
        """Its value in the schema: how many bytes of text and how many items the subschema may meet; 0 for any number."""

        def __init__(self, parent_schema: dict[str, Any], value: Any, schema_path: list[str | int]) -> None:
            self._max_bytes, self._max_items = value

        def validate(self, instance: Any) -> None:
            if self._max_bytes and _text_bytes(instance) > self._max_bytes:
                limit.reason = f"has more than {self._max_bytes} bytes of text for one pattern"
            if self._max_items and isinstance(instance, list) and len(instance) > self._max_items:
                limit.reason = f"has an array of more than {self._max_items} items with a rule for what it contains"
            if limit.is_reached():
                raise ValueError(limit.reason)

    return Guard


def _unique_items(limit: TimeLimit | None) -> type[KeywordValidator]:
    class UniqueItems:
        """In place of the engine's own keyword, which takes quadratic time for long numbers."""

        def __init__(self, parent_schema: dict[str, Any], value: Any, schema_path: list[str | int]) -> None:
            self._is_asked = value is True

        def validate(self, instance: Any) -> None:
            if not self._is_asked or not isinstance(instance, list):
                return
            if limit is not None and len(encode_json(instance)) > MAX_UNIQUE_BYTES:
                limit.reason = f"has an array of more than {MAX_UNIQUE_BYTES} bytes whose items must be unique"
            elif has_duplicates(instance):
                raise ValueError("an item stands twice")

    return UniqueItems


_PLAIN_UNIQUE_ITEMS: Final = _unique_items(None)


def _guarded(root: dict[str, Any], *, explains: bool) -> dict[str, Any]:
    """The schema with a guard for each subschema; to decide, small ones without subschemas need none."""

    def guard(part: Subschema) -> Subschema:
        if isinstance(part, bool) or not (explains or part.keys() & _HEAVY or len(str(part)) > _LIGHT_CHARS):
            return part
        inner = {
            keyword: map_subschemas(keyword, value, guard) if keyword in APPLICATORS else value
            for keyword, value in part.items()
        }
        if explains and len(part.get("required", ())) > 1:  # each missing name is an error
            each = [guard({"required": [name]}) for name in inner.pop("required")]
            inner["allOf"] = [*inner.get("allOf", ()), *each]
        patterns = [*part.get("patternProperties", ()), *([part["pattern"]] if "pattern" in part else ())]
        max_bytes = min((measure_pattern(one).max_bytes // len(patterns) for one in patterns), default=0)
        first = {_GUARD: [max_bytes, MAX_CONTAINS_ITEMS if "contains" in part else 0]}
        return {"if": first, "then": inner} if explains else {"allOf": [first, inner]}

    definitions = {name: guard(part) for name, part in root.get("$defs", {}).items()}
    whole = guard({keyword: value for keyword, value in root.items() if keyword != "$defs"})
    return {"allOf": [whole], "$defs": definitions}


def has_duplicates(items: list[Any]) -> bool:
    """Whether an item stands twice, as JSON Schema counts: 1 equals 1.0, but not true. Linear, whatever the items are."""
    return len({_comparable(item) for item in items}) != len(items)


def _comparable(value: Any) -> Any:
    """Numbers become strings, because their hashes can be chosen to collide and those of strings can't."""
    if isinstance(value, dict):
        return frozenset((name, _comparable(inner)) for name, inner in value.items())
    if isinstance(value, list):
        return tuple(map(_comparable, value))
    if isinstance(value, str):
        return f"'{value}"
    if isinstance(value, bool) or value is None:
        return f"={value}"
    return str(_EXACT.normalize(_EXACT.plus(Decimal(value))))


def _text_bytes(value: Any) -> int:
    """The length of a string, or of all names of an object, which `patternProperties` matches."""
    strings = [value] if isinstance(value, str) else value if isinstance(value, dict) else ()
    return sum(len(one) if one.isascii() else len(one.encode("utf-8", "replace")) for one in strings)
