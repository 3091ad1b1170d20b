"""What classes of callers have by the permissions of a configuration, and what differs between two configurations.

Of a caller nothing but its class is assumed, and no condition is taken as met: conditions are compared by their text, selectors by what
they certainly cover. Must not: miss a change that gives somebody more; a change that may do so counts as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Final, NamedTuple

from msgspec.structs import replace

from pactgate.config.sections.permissions import CallerClass
from pactgate.config.selectors import EVERYTHING, Selector, SelectorKind
from pactgate.core.context import AppliedRule
from pactgate.core.principal import OF_KEYS, Principal, PrincipalKind
from pactgate.core.values import Tool
from pactgate.policy.permissions.rules import Permissions, class_of, tool_facts
from pactgate.policy.permissions.selection import Subject, selects

ClassPair = tuple[str | None, str | None]
"""The class of some callers before a change, and after it."""


class Terms(NamedTuple):
    """What has to be true for a rule to apply, and what must not be."""

    when: str = ""
    unless: str = ""


ALWAYS: Final = Terms()


class Clause(NamedTuple):
    """What a rule does with a subject that it selects."""

    is_allow: bool
    terms: Terms
    applied: AppliedRule = AppliedRule()

    def __str__(self) -> str:
        words = (f" {word} {text}" for word, text in self.terms._asdict().items() if text)
        return f"{'allow' if self.is_allow else 'deny'}{''.join(words)}"


class ClassReach(NamedTuple):
    """What a class has of a subject: the rules that allow it, and those that deny it all the same."""

    allows: tuple[Clause, ...] = ()
    denies: tuple[Clause, ...] = ()

    @property
    def answer(self) -> str:
        """`yes`, `no`, or `if`: it depends on the arguments or on the client."""
        if not self.allows:
            return "no"
        return "if" if self.denies or self.allows[0].terms != ALWAYS else "yes"

    @property
    def clauses(self) -> tuple[Clause, ...]:
        return *self.denies, *self.allows

    def may_exceed(self, other: ClassReach) -> bool:
        """Whether this may allow what the other does not."""
        if not self.allows:
            return False
        mine, others = ([{clause.terms for clause in some} for some in one] for one in (self, other))
        return not (ALWAYS in others[0] or mine[0] <= others[0]) or not others[1] <= mine[1]


class Change(NamedTuple):
    """What a class gains or loses. `name` is the full name of a tool, or a selector: of what it selects beside the known tools."""

    gains: bool
    loses: bool
    name: str
    before: ClassReach
    after: ClassReach


_OTHERS: Final = "(others)"
_Rows = list[tuple[Selector, Clause]]


def class_label(name: str | None) -> str:
    """The name of a class, also of the clients that are of none."""
    return _OTHERS if name is None else name


def reach_of(permissions: Permissions | None, name: str | None, tool: Tool) -> ClassReach:
    """What callers of a class have of a tool."""
    if permissions is None:
        return _reach([Clause(True, ALWAYS)])
    subject, clauses = Subject.of(tool), []
    for rule in permissions.rules_of(name):
        if any(selects(one, subject) for one in rule.selectors):
            if rule.asks_arguments or rule.caller_facts:
                clauses.append(Clause(rule.is_allow, Terms(*rule.sources), rule.applied))
            elif rule.applies_or_denies(tool_facts(subject)):
                clauses.append(Clause(rule.is_allow, ALWAYS, rule.applied))
    return _reach(clauses)


def compare(
    classes: ClassPair, old: Permissions | None, new: Permissions | None, tools: Iterable[tuple[Tool, Tool]]
) -> Iterator[Change]:
    """What callers of a class gain and lose. Each tool comes with its category of before, and with that of after."""
    known, changed = set(), list[tuple[Tool, bool]]()
    for was, now in tools:
        known.add(was.full_name)
        before, after = reach_of(old, classes[0], was), reach_of(new, classes[1], now)
        gains, loses = after.may_exceed(before), before.may_exceed(after)
        changed += [(was, is_gain) for is_gain, has in ((True, gains), (False, loses)) if has]
        if gains or loses:
            yield Change(gains, loses, was.full_name, before, after)
    # For prompts, resources, and tools that servers may list later; what the tools above show already is not repeated.
    rows, new_rows = _rows(old, classes[0]), _rows(new, classes[1])
    for selector in dict.fromkeys(selector for selector, _ in (*rows, *new_rows)):
        if selector.value in known:
            continue
        shown = {is_gain for tool, is_gain in changed if selects(selector, Subject.of(tool))}
        gains = True not in shown and _may_exceed(new_rows, rows, selector)
        loses = False not in shown and _may_exceed(rows, new_rows, selector)
        if gains or loses:
            yield Change(gains, loses, str(selector), _at_most(rows, selector), _at_most(new_rows, selector))


def class_pairs(before: Mapping[str, CallerClass], after: Mapping[str, CallerClass]) -> list[ClassPair]:
    """Each class that callers can be of before, with each that the same callers can be of after."""
    old, new = ([(name, replace(one, view=None)) for name, one in classes.items()] for classes in (before, after))
    if old == new:
        rest = () if any(one == CallerClass() for _, one in old) else (None,)
        return [(name, name) for name in (*before, *rest)]
    sorts = _principals([one for _, one in (*old, *new)])
    return [*dict.fromkeys((class_of(one, before), class_of(one, after)) for one in sorts)]


def _principals(classes: Sequence[CallerClass]) -> Iterator[Principal]:
    """One of each sort that classes tell apart. Two groups are enough: one for the class before the change, one for that after it."""
    keys, tokens = ({"", *(name for one in classes for name in getattr(one, word))} for word in ("keys", "tokens"))
    issuers = {one.issuer or "" for one in classes} | {""}
    alike = {tuple(name in one.groups for one in classes): name for one in classes for name in one.groups}
    for groups in (frozenset(some) for count in range(3) for some in combinations(alike.values(), count)):
        for issuer in sorted(issuers):
            yield Principal("", kind=PrincipalKind.OAUTH, issuer=issuer, groups=groups)
        for key in sorted(keys):
            yield Principal("", kind=PrincipalKind.KEY, issuer=OF_KEYS, subject=key, groups=groups)
    yield from map(Principal, sorted(tokens))


def _reach(clauses: Iterable[Clause]) -> ClassReach:
    """Without the rules that others make meaningless."""
    given = list(clauses)
    allows, denies = ([one for one in given if one.is_allow is is_allow] for is_allow in (True, False))
    certain, free = ([one for one in some if one.terms == ALWAYS][:1] for some in (denies, allows))
    if certain or not allows:
        return ClassReach(denies=tuple(certain))
    return ClassReach(tuple(free or allows), tuple(denies))


def _rows(permissions: Permissions | None, name: str | None) -> _Rows:
    """Each selector of each rule for a class."""
    if permissions is None:
        return [(EVERYTHING, Clause(True, ALWAYS))]
    return [
        (selector, Clause(rule.is_allow, Terms(*rule.sources), rule.applied))
        for rule in permissions.rules_of(name)
        for selector in rule.selectors
    ]


def _covered(rows: _Rows, selector: Selector) -> ClassReach:
    return _reach(clause for wide, clause in rows if wide.covers(selector))


def _at_most(rows: _Rows, selector: Selector) -> ClassReach:
    """What rules say of a selector, where one that allows a part of it counts."""
    kinds = (SelectorKind.NAME, SelectorKind.SERVER)
    return _reach(
        clause
        for wide, clause in rows
        if wide.covers(selector) or (clause.is_allow and wide.kind in kinds and wide.may_meet(selector))
    )


def _may_exceed(rows: _Rows, others: _Rows, selector: Selector) -> bool:
    """Whether rules with this selector may allow what other rules do not: one that they have not, or the lack of one that denies."""
    mine, theirs = ({clause[:2] for one, clause in some if one == selector} for some in (rows, others))
    has, had = _covered(rows, selector), _covered(others, selector)
    for is_allow, terms in mine - theirs:
        if is_allow and not _has(had.allows, terms) and not _has(has.denies, ALWAYS):
            return True
    is_reached = any(clause.is_allow and one.may_meet(selector) for one, clause in rows)
    return is_reached and any(not is_allow and not _has(has.denies, terms) for is_allow, terms in theirs - mine)


def _has(clauses: Iterable[Clause], terms: Terms) -> bool:
    return any(clause.terms in (ALWAYS, terms) for clause in clauses)
