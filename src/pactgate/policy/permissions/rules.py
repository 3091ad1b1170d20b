"""The rules of `permissions`, compiled: the class of a caller, what it may use, and which rule decided.

What does not depend on arguments is decided when configuration, catalog or callers change. A call looks its `Grant` up; only rules with a
condition on arguments are left to be decided then. A denial wins over every rule that allows; a rule whose condition can't be decided
denies. Must not: find names, or know the paths by which callers come.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec import Struct, to_builtins

from pactgate.config.model import Config
from pactgate.config.sections.permissions import EVERYBODY, CallerClass, PermissionRule
from pactgate.config.selectors import Selector, SelectorKind, servers_of
from pactgate.core.conditions import ArgumentReader, Condition, ConditionError, Path, compile_condition
from pactgate.core.context import AppliedRule
from pactgate.core.principal import Principal, PrincipalKind
from pactgate.policy.permissions.selection import SelectedEntries, Subject, bits, selects
from pactgate.protocol.messages import encode_json

_REVISION_CHARS: Final = 12
_NAMED: Final = frozenset({PrincipalKind.TOKEN, PrincipalKind.ANONYMOUS, PrincipalKind.LOCAL})
_NO_ARGUMENTS: Final = b"{}"


class CompiledRule(Struct, frozen=True, gc=False, eq=False):
    """One rule. `classes` is None for everybody; `applied` is what records and envelopes say of it."""

    is_allow: bool
    selectors: tuple[Selector, ...]
    classes: frozenset[str] | None
    when: Condition | None
    unless: Condition | None
    say: str | None
    applied: AppliedRule
    envelope: bytes
    asks_arguments: bool = False
    asks_tool: bool = False
    caller_facts: frozenset[Path] = frozenset()
    """What its conditions ask of the caller."""

    @property
    def is_settled(self) -> bool:
        """Whether it applies to all that it selects, or to nothing, once the caller is known."""
        return not self.asks_arguments and not self.asks_tool

    @property
    def sources(self) -> tuple[str, ...]:
        """The texts of `when` and `unless`."""
        return tuple("" if one is None else one.source for one in (self.when, self.unless))

    def applies(self, values: Mapping[Path, Any]) -> bool:
        """Whether its conditions are met. Raises ConditionError."""
        if self.when is not None and not self.when.holds(values):
            return False
        return self.unless is None or not self.unless.holds(values)

    def applies_or_denies(self, values: Mapping[Path, Any]) -> bool:
        """As `applies`; what can't be decided allows nothing and denies."""
        try:
            return self.applies(values)
        except ConditionError:
            return not self.is_allow


class CallerKey(NamedTuple):
    """Callers with equal keys have equal rights. `rules` are those that concern them: of their class, and with a condition on the caller
    alone only if it is met. `facts` is what the conditions of the others ask of the caller.
    """

    rules: tuple[CompiledRule, ...]
    facts: tuple[tuple[Path, Any], ...]


class Denied(NamedTuple):
    """Why something is denied: by a rule, or because none allows it. `trouble` says why a condition could not be decided."""

    rule: CompiledRule | None
    applied: AppliedRule
    trouble: str = ""

    @property
    def say(self) -> str | None:
        return None if self.rule is None else self.rule.say


class Grant(Struct, frozen=True, gc=False, eq=False):
    """What one class of callers has of one tool. `rule` allows every call; without it one of `allows` has to, and none of `denies` may."""

    rule: CompiledRule | None
    allows: tuple[CompiledRule, ...] = ()
    denies: tuple[CompiledRule, ...] = ()
    facts: Mapping[Path, Any] = {}
    reader: ArgumentReader | None = None
    nothing: AppliedRule = AppliedRule()

    @property
    def applied(self) -> AppliedRule:
        return self.nothing if self.rule is None else self.rule.applied

    def decide(self, arguments: bytes = _NO_ARGUMENTS) -> CompiledRule | Denied:
        """The rule that allows a call with these arguments, or why it is denied."""
        if self.reader is None:
            assert self.rule is not None, "without conditions it is there because a rule allows it"
            return self.rule
        rule: CompiledRule | None = None
        try:
            values = {**self.facts, **self.reader.read(arguments)}
            for rule in self.denies:
                if rule.applies(values):
                    return Denied(rule, rule.applied)
            if self.rule is not None:
                return self.rule
            for rule in self.allows:
                if rule.applies(values):
                    return rule
        except ConditionError as problem:
            return Denied(rule, self.nothing if rule is None else rule.applied, str(problem))
        unmet = next((one for one in self.allows if one.say is not None), self.allows[0])
        return Denied(unmet, unmet.applied)


UNRESTRICTED: Final = Grant(CompiledRule(True, (), None, None, None, None, AppliedRule(), b""))
"""Where no permissions are configured."""


class Permissions:
    """All rules of one configuration."""

    def __init__(self, config: Config) -> None:
        said = encode_json(to_builtins(permission_settings(config)[:-1]))
        self.revision = hashlib.sha256(said).hexdigest()[:_REVISION_CHARS]
        self.nothing = AppliedRule(revision=self.revision)
        self._classes = config.callers
        places = config.rule_places or ("",) * len(config.permissions)
        self.rules = tuple(
            self._compile(number, rule, place)
            for number, (rule, place) in enumerate(zip(config.permissions, places, strict=True), 1)
        )
        self._of_class: dict[str | None, tuple[CompiledRule, ...]] = {}

    def key_of(self, principal: Principal) -> CallerKey:
        rules = self.rules_of(class_of(principal, self._classes))
        facts = {fact: _caller_fact(principal, fact[1]) for rule in rules for fact in rule.caller_facts}
        met = tuple(rule for rule in rules if not rule.is_settled or rule.applies_or_denies(facts))
        asked = {fact for rule in met if not rule.is_settled for fact in rule.caller_facts}
        return CallerKey(met, tuple((fact, _hashable(facts[fact])) for fact in sorted(asked)))

    def rules_of(self, name: str | None) -> tuple[CompiledRule, ...]:
        """The rules for a class of callers, whatever their conditions."""
        known = self._of_class.get(name)
        if known is None:
            known = self._of_class[name] = tuple(
                rule for rule in self.rules if rule.classes is None or name in rule.classes
            )
        return known

    def grants(self, key: CallerKey, entries: SelectedEntries) -> dict[int, Grant]:
        """What callers with this key have of a server, by the place of the entry."""
        allowed: list[tuple[CompiledRule, int]] = []
        residual: list[tuple[CompiledRule, int]] = []
        denied = 0
        for rule in key.rules:
            mask = self._met(rule, key, entries, entries.mask(rule.selectors))
            if not mask:
                continue
            if rule.asks_arguments:
                residual.append((rule, mask))
            elif rule.is_allow:
                allowed.append((rule, mask))
            else:
                denied |= mask
        found: dict[int, Grant] = {}
        taken = denied
        for rule, mask in allowed:
            grant = Grant(rule)
            found.update(dict.fromkeys(bits(mask & ~taken), grant))
            taken |= mask
        if residual:
            self._add_residual(found, residual, denied, key, entries.subjects)
        return found

    def decide(self, key: CallerKey, subject: Subject) -> Grant | Denied:
        """The same for one subject, that need not be in any list, such as a URI; and, if it is denied, by which rule."""
        selected = [rule for rule in key.rules if any(selects(one, subject) for one in rule.selectors)]
        facts = _facts_of(key, subject)
        static = [
            rule for rule in selected if rule.is_settled or (not rule.asks_arguments and rule.applies_or_denies(facts))
        ]
        denials = [rule for rule in static if not rule.is_allow]
        if denials:
            rule = next((one for one in denials if one.say is not None), denials[0])
            return Denied(rule, rule.applied)
        allowing = next((rule for rule in static if rule.is_allow), None)
        residual = [rule for rule in selected if rule.asks_arguments]
        if allowing is None and not any(rule.is_allow for rule in residual):
            return Denied(None, self.nothing)
        return self._grant(allowing, residual, facts)

    def may_reach(self, key: CallerKey, server: str) -> bool:
        """Whether anything of a server could be allowed. A server of which nothing can be allowed does not exist for the caller."""
        allowing, denying = _about(key, server)
        return bool(allowing) and not any(rule.is_settled and _takes_all(rule, server) for rule in denying)

    def has_whole(self, key: CallerKey, server: str) -> bool:
        """Whether everything of a server is allowed and nothing denied, so that methods outside the protocol may pass too."""
        allowing, denying = _about(key, server)
        return not denying and any(rule.is_settled and _takes_all(rule, server) for rule in allowing)

    def _compile(self, number: int, rule: PermissionRule, place: str) -> CompiledRule:
        applied = AppliedRule(number=number, place=place, revision=self.revision)
        when, unless = (None if text is None else compile_condition(text) for text in (rule.when, rule.unless))
        conditions = [one for one in (when, unless) if one is not None]
        facts = {fact for one in conditions for fact in one.facts}
        return CompiledRule(
            is_allow=rule.allow is not None,
            selectors=rule.selectors,
            classes=None if EVERYBODY in rule.classes else frozenset(rule.classes),
            when=when,
            unless=unless,
            say=rule.say,
            applied=applied,
            envelope=b'"rule":%d,"policyRevision":%b,' % (number, encode_json(self.revision)),
            asks_arguments=any(one.paths for one in conditions),
            asks_tool=any(fact[0] == "tool" for fact in facts),
            caller_facts=frozenset(fact for fact in facts if fact[0] == "caller"),
        )

    def _met(self, rule: CompiledRule, key: CallerKey, entries: SelectedEntries, mask: int) -> int:
        """Those of the selected entries for which the conditions are met that do not depend on arguments."""
        if not mask or rule.is_settled or rule.asks_arguments:
            return mask
        met = (at for at in bits(mask) if rule.applies_or_denies(_facts_of(key, entries.subjects[at])))
        return sum(1 << at for at in met)

    def _add_residual(
        self,
        found: dict[int, Grant],
        residual: Sequence[tuple[CompiledRule, int]],
        denied: int,
        key: CallerKey,
        subjects: Sequence[Subject],
    ) -> None:
        """Replace the grants of entries that rules with conditions on arguments are about."""
        touched = 0
        for _, mask in residual:
            touched |= mask & ~denied
        for at in bits(touched):
            held = found.get(at)
            rules = [rule for rule, mask in residual if mask >> at & 1]
            if held is None and not any(rule.is_allow for rule in rules):
                continue
            found[at] = self._grant(None if held is None else held.rule, rules, _facts_of(key, subjects[at]))

    def _grant(self, rule: CompiledRule | None, residual: Iterable[CompiledRule], facts: Mapping[Path, Any]) -> Grant:
        denies = tuple(one for one in residual if not one.is_allow)
        allows = () if rule is not None else tuple(one for one in residual if one.is_allow)
        if not denies and not allows:
            return Grant(rule)
        asked = {
            path
            for one in (*denies, *allows)
            for condition in (one.when, one.unless)
            if condition is not None
            for path in condition.paths
        }
        return Grant(rule, allows, denies, facts, ArgumentReader(tuple(sorted(asked))), self.nothing)


def permission_settings(config: Config) -> tuple[Any, ...]:
    """The settings that decide; and where the rules stand, which changes nothing but what is said of them."""
    return config.callers, config.permissions, config.categories, config.rule_places


def class_of(principal: Principal, classes: Mapping[str, CallerClass]) -> str | None:
    """The first class that matches a caller."""
    return next((name for name, one in classes.items() if _is_of(principal, one)), None)


def _is_of(principal: Principal, one: CallerClass) -> bool:
    if one.groups and principal.groups.isdisjoint(one.groups):
        return False
    if one.issuer is not None and principal.issuer != one.issuer:
        return False
    if not one.keys and not one.tokens:
        return True
    if principal.kind is PrincipalKind.KEY:
        return principal.subject in one.keys
    return principal.kind in _NAMED and principal.key in one.tokens


def _caller_fact(principal: Principal, name: str) -> str | list[str]:
    facts: dict[str, str | list[str]] = {
        "subject": principal.subject or principal.key,
        "issuer": principal.issuer,
        "client": principal.client_id,
        "kind": principal.kind.value,
        "groups": sorted(principal.groups),
        "scopes": sorted(principal.scopes or ()),
        "roles": sorted(principal.roles),
    }
    return facts[name]


def _hashable(value: str | list[str]) -> str | tuple[str, ...]:
    return value if isinstance(value, str) else tuple(value)


def _facts_of(key: CallerKey, subject: Subject) -> dict[Path, Any]:
    facts: dict[Path, Any] = {fact: list(value) if isinstance(value, tuple) else value for fact, value in key.facts}
    return facts | tool_facts(subject)


def tool_facts(subject: Subject) -> dict[Path, Any]:
    """What conditions can ask of a tool."""
    facts: dict[Path, Any] = {("tool", "name"): subject.name, ("tool", "server"): subject.server}
    if subject.tool is not None:
        facts["tool", "category"] = subject.tool.traits.category
        facts["tool", "readOnly"] = subject.tool.traits.is_read_only
    return facts


def _about(key: CallerKey, server: str) -> tuple[list[CompiledRule], list[CompiledRule]]:
    """The rules that can be about something of a server: those that allow, and those that deny."""
    rules = [rule for rule in key.rules if any(servers_of(one, (server,)) for one in rule.selectors)]
    return [rule for rule in rules if rule.is_allow], [rule for rule in rules if not rule.is_allow]


def _takes_all(rule: CompiledRule, server: str) -> bool:
    whole = Selector(SelectorKind.SERVER, server)
    return any(one.covers(whole) for one in rule.selectors)
