"""Why a value does not fit a schema, in sentences, and for large values whether it does, step by counted step.

The engine decides nearly every case in less than a microsecond, but it can't be interrupted, and when it explains itself it can take
exponential time. This walk does both slowly: every part applied to every value costs steps from a budget, and nothing is judged twice.
Single assertions (`type`, `pattern`, numbers) are still left to the engine, so both always mean the same by them.
Must not: repeat a value, only what the schema asks for; exceed its budget. Serves S0/ECO-300 and S2/MCP-001.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, Final

import jsonschema_rs
from msgspec import Struct

from pactgate.core.display import flat
from pactgate.policy.json_paths import Step
from pactgate.policy.schema.graph import Dialect, Graph
from pactgate.policy.schema.patterns import BYTES, ENGINE
from pactgate.policy.schema.phrases import ASSERTIONS, count_of_values, has_twins, names_of_types, sentence
from pactgate.policy.schema.weights import Part, choice_weight
from pactgate.protocol.messages import encode_json

MAX_FAULTS: Final = 10
_STEPS_A_PART: Final = 200
_STEPS_A_NAME: Final = 50
_STEPS_TO_PREPARE: Final = 1000
_STEPS_TO_WRITE: Final = 100
_MACHINE_BITS: Final = 64
_MAX_REPEATS: Final = 200
"""Faults looked at: the same one may be met on many ways."""

ENGINES: Final[dict[Dialect, type[jsonschema_rs.Validator]]] = {
    Dialect.DRAFT_4: jsonschema_rs.Draft4Validator,
    Dialect.DRAFT_6: jsonschema_rs.Draft6Validator,
    Dialect.DRAFT_7: jsonschema_rs.Draft7Validator,
    Dialect.DRAFT_2019_09: jsonschema_rs.Draft201909Validator,
    Dialect.DRAFT_2020_12: jsonschema_rs.Draft202012Validator,
}

_Steps = tuple[Step, ...]


class Fault(Struct, frozen=True, gc=False):
    """What is wrong where; `demand` continues a sentence about the value."""

    steps: _Steps
    keyword: str
    demand: str


class Findings(Struct, frozen=True):
    """`is_complete` is False when the budget ran out first: then no fault means nothing."""

    faults: tuple[Fault, ...]
    is_complete: bool


class _Spent(Exception):  # noqa: N818 - how a walk ends, not an error
    """The budget is used up."""


class _Assertion(Struct, frozen=True):
    keyword: str
    demand: str
    accepts: Callable[[Any], bool]
    cost: int = 0
    pattern_cost: int = 0


class Explainer:
    """A schema made ready for walks. Assertions are compiled when they are first met."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._engine = ENGINES[graph.dialect]
        self._assertions: dict[int, list[_Assertion]] = {}
        self._name_patterns: dict[str, Callable[[Any], bool]] = {}

    def explain(self, value: Any, budget: int) -> Findings:
        """The first faults of a value, no more than `MAX_FAULTS`."""
        walk = _Walk(self, budget)
        found: dict[Fault, None] = {}
        try:
            for number, fault in enumerate(walk.faults(self.graph.root, value, ()), 1):
                found[fault] = None
                if len(found) == MAX_FAULTS or number == _MAX_REPEATS:
                    break
        except (_Spent, RecursionError):
            return Findings(tuple(found), is_complete=False)
        if not found and walk.has_passed_unevaluated:
            demand = "has members or items the schema does not know"
            return Findings((Fault((), "unevaluatedProperties", demand),), is_complete=False)
        return Findings(tuple(found), is_complete=True)

    def assertions_of(self, part: dict[str, Any]) -> list[_Assertion] | None:
        return self._assertions.get(id(part))

    def prepare(self, part: dict[str, Any]) -> list[_Assertion]:
        made = [self._assertion(keyword, part) for keyword in ASSERTIONS if keyword in part]
        self._assertions[id(part)] = made
        return made

    def matches(self, pattern: str, name: str) -> bool:
        if pattern not in self._name_patterns:
            self._name_patterns[pattern] = self._compiled({"pattern": pattern})
        return self._name_patterns[pattern](name)

    def _assertion(self, keyword: str, part: dict[str, Any]) -> _Assertion:
        wanted = part[keyword]
        if keyword == "uniqueItems":
            return _Assertion(keyword, sentence(keyword, wanted), lambda value: not (wanted and has_twins(value)))
        cost = choice_weight(wanted) if keyword in ("enum", "const") else 0
        asked = {keyword: wanted}
        strict = {"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"}.get(keyword)
        if strict is not None and part.get(strict) is True:  # draft 4
            return _Assertion(strict, sentence(strict, wanted), self._compiled({**asked, strict: True}))
        if isinstance(wanted, bool) and keyword.startswith("exclusive"):
            return _Assertion(keyword, "", lambda _: True)
        pattern_cost = self.graph.patterns[wanted].cost if keyword == "pattern" else 0
        return _Assertion(keyword, sentence(keyword, wanted), self._compiled(asked), cost, pattern_cost)

    def _compiled(self, schema: dict[str, Any]) -> Callable[[Any], bool]:
        return self._engine(schema, validate_formats=False, offline=True, pattern_options=ENGINE).is_valid


class _Walk:
    """One value on its way through a schema."""

    def __init__(self, explainer: Explainer, budget: int) -> None:
        self.has_passed_unevaluated = False
        self._explainer = explainer
        self._targets = explainer.graph.targets
        self._is_early = explainer.graph.dialect.is_early
        self._left = budget
        self._known: dict[tuple[int, int], bool] = {}

    def faults(self, part: Part, value: Any, steps: _Steps) -> Iterator[Fault]:
        """All faults, found one by one as they are asked for."""
        self._spend(_STEPS_A_PART)
        if isinstance(part, bool):
            if not part:
                yield Fault(steps, "false", "must not be there")
            return
        if "$ref" in part:
            yield from self._inside(self._targets[id(part)], value, steps)
            if self._is_early:
                return
        yield from self._asserted(part, value, steps)
        yield from self._combined(part, value, steps)
        if isinstance(value, dict):
            yield from self._required(part, value, steps)
            yield from self._members(part, value, steps)
        elif isinstance(value, list):
            yield from self._items(part, value, steps)
            yield from self._contained(part, value, steps)
        if "unevaluatedProperties" in part or "unevaluatedItems" in part:
            self.has_passed_unevaluated = True

    def _fits(self, part: Part, value: Any) -> bool:
        if not isinstance(value, dict | list):
            return next(self.faults(part, value, ()), None) is None
        key = (id(part), id(value))
        if key not in self._known:
            self._known[key] = next(self.faults(part, value, ()), None) is None
        return self._known[key]

    def _inside(self, part: Part, value: Any, steps: _Steps) -> Iterator[Fault]:
        """The faults of a part, without a second look at a list or table that fits."""
        if not isinstance(value, dict | list) or not self._fits(part, value):
            yield from self.faults(part, value, steps)

    def _spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise _Spent

    def _asserted(self, part: dict[str, Any], value: Any, steps: _Steps) -> Iterator[Fault]:
        assertions = self._explainer.assertions_of(part)
        if assertions is None:
            self._spend(_STEPS_TO_PREPARE)
            assertions = self._explainer.prepare(part)
        for assertion in assertions:
            self._spend(assertion.cost + self._cost_of(assertion, value))
            if not assertion.accepts(value):
                yield Fault(steps, assertion.keyword, assertion.demand)
                if assertion.keyword in ("type", "maxLength"):
                    return  # the others were written for values of another type, or would be slow

    def _cost_of(self, assertion: _Assertion, value: Any) -> int:
        """What looking at the value itself costs beyond a fixed price."""
        if isinstance(value, str):
            return _matching_cost(value, assertion.pattern_cost)
        if isinstance(value, list) and assertion.keyword == "uniqueItems":
            return _STEPS_TO_WRITE * count_of_values(value, self._left // _STEPS_TO_WRITE + 1)
        if isinstance(value, int):
            return 5 * value.bit_length() if value.bit_length() > _MACHINE_BITS else 0
        return len(value.as_tuple().digits) if isinstance(value, Decimal) else 0

    def _combined(self, part: dict[str, Any], value: Any, steps: _Steps) -> Iterator[Fault]:
        for inner in part.get("allOf", ()):
            yield from self._inside(inner, value, steps)
        for keyword in ("anyOf", "oneOf"):
            if keyword in part:
                yield from self._alternatives(keyword, part[keyword], value, steps)
        if "not" in part and self._fits(part["not"], value):
            yield Fault(steps, "not", "is what the schema rules out")
        if "if" in part:
            branch = "then" if self._fits(part["if"], value) else "else"
            yield from self._inside(part.get(branch, True), value, steps)

    def _alternatives(self, keyword: str, parts: list[Part], value: Any, steps: _Steps) -> Iterator[Fault]:
        fitting = 0
        for part in parts:
            fitting += self._fits(part, value)
            if fitting == 1 and keyword == "anyOf":
                return
        if fitting > 1:
            yield Fault(steps, keyword, f"must fit exactly one of {len(parts)} alternatives, and fits {fitting}")
        if fitting:
            return
        meant = self._meant(parts, value)
        if meant is not None:
            yield from self.faults(meant, value, steps)
            return
        types = [inner.get("type") if isinstance(inner, dict) else None for inner in map(self._resolved, parts)]
        if None not in types and not any(self._is_of_type(part, value) for part in parts):
            yield Fault(steps, keyword, f"must be {names_of_types(types)}")
        else:
            yield Fault(steps, keyword, f"must fit one of {len(parts)} alternatives")

    def _meant(self, parts: list[Part], value: Any) -> Part | None:
        """The one alternative of the value's type, and of its kind where a member says which, if there is one."""
        likely = [part for part in parts if self._is_of_type(part, value)]
        if len(likely) > 1:
            likely = [part for part in likely if self._is_of_kind(part, value)]
        return likely[0] if len(likely) == 1 else None

    def _is_of_type(self, part: Part, value: Any) -> bool:
        resolved = self._resolved(part)
        if isinstance(resolved, bool):
            return resolved
        assertions = self._explainer.assertions_of(resolved) or self._explainer.prepare(resolved)
        return all(assertion.accepts(value) for assertion in assertions if assertion.keyword in ("type", "const"))

    def _is_of_kind(self, part: Part, value: Any) -> bool:
        """Whether members with one fixed value (`kind: "circle"`) have it."""
        resolved = self._resolved(part)
        if isinstance(resolved, bool) or not isinstance(value, dict):
            return True
        fixed = {
            name: member
            for name, member in resolved.get("properties", {}).items()
            if isinstance(member, dict) and ("const" in member or len(member.get("enum", ())) == 1)
        }
        return all(name in value and self._fits(member, value[name]) for name, member in fixed.items())

    def _resolved(self, part: Part) -> Part:
        while isinstance(part, dict) and "$ref" in part and "type" not in part:
            part = self._targets[id(part)]
        return part

    def _required(self, part: dict[str, Any], value: dict[str, Any], steps: _Steps) -> Iterator[Fault]:
        names = part.get("required", ())
        self._spend(_STEPS_A_NAME * len(names))
        yield from (_missing(name, steps) for name in names if name not in value)
        for keyword in ("dependentRequired", "dependentSchemas", "dependencies"):
            for name, wanted in part.get(keyword, {}).items():
                self._spend(_STEPS_A_NAME)
                if name not in value:
                    continue
                if isinstance(wanted, list):
                    self._spend(_STEPS_A_NAME * len(wanted))
                    yield from (_missing(other, steps, keyword) for other in wanted if other not in value)
                else:
                    yield from self._inside(wanted, value, steps)

    def _members(self, part: dict[str, Any], value: dict[str, Any], steps: _Steps) -> Iterator[Fault]:
        named = part.get("properties", {})
        self._spend(_STEPS_A_NAME * len(named))
        for name, inner in named.items():
            if name in value:
                yield from self._inside(inner, value[name], (*steps, name))
        yield from self._other_members(part, value, steps)
        if "propertyNames" in part:
            for name in value:
                if not self._fits(part["propertyNames"], name):
                    yield Fault((*steps, name), "propertyNames", "has a name the schema does not allow")

    def _other_members(self, part: dict[str, Any], value: dict[str, Any], steps: _Steps) -> Iterator[Fault]:
        patterns = part.get("patternProperties", {})
        others = part.get("additionalProperties", True)
        if others is True and not patterns:
            return
        named = part.get("properties", {})
        for name, inner in value.items():
            self._spend(_STEPS_A_NAME)
            is_known = name in named
            for pattern, member in patterns.items():
                self._spend(_STEPS_A_NAME + _matching_cost(name, self._explainer.graph.patterns[pattern].cost))
                if self._explainer.matches(pattern, name):
                    is_known = True
                    yield from self._inside(member, inner, (*steps, name))
            if not is_known and others is False:
                yield Fault((*steps, name), "additionalProperties", "is not a member the schema knows")
            elif not is_known:
                yield from self._inside(others, inner, (*steps, name))

    def _items(self, part: dict[str, Any], value: list[Any], steps: _Steps) -> Iterator[Fault]:
        first = part.get("prefixItems", ())
        rest = part.get("items", True)
        if isinstance(rest, list):
            first, rest = rest, part.get("additionalItems", True)
        for number, inner in enumerate(value):
            if number >= len(first) and rest is True:
                break
            yield from self._inside(first[number] if number < len(first) else rest, inner, (*steps, number))

    def _contained(self, part: dict[str, Any], value: list[Any], steps: _Steps) -> Iterator[Fault]:
        if "contains" not in part:
            return
        fewest, most = part.get("minContains", 1), part.get("maxContains")
        count = sum(self._fits(part["contains"], inner) for inner in value)
        if count < fewest:
            yield Fault(steps, "contains", f"must have {fewest} items of a kind the schema asks for")
        if most is not None and count > most:
            yield Fault(steps, "maxContains", f"must have at most {most} items of a kind the schema bounds")


def _matching_cost(text: str, pattern_cost: int) -> int:
    size = len(text) if text.isascii() else 4 * len(text)
    return size * (1 + pattern_cost) // BYTES


def _missing(name: str, steps: _Steps, keyword: str = "required") -> Fault:
    return Fault(steps, keyword, f"must have the member {flat(encode_json(name).decode(), 100)}")
