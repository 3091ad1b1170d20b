"""Which class of clients may call which tool, as the rules stand: for people who look at permissions. No call is decided here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from pactgate.config.model import Config
from pactgate.core.context import AppliedRule
from pactgate.core.principal import Principal, PrincipalKind
from pactgate.core.values import Tool
from pactgate.policy.permissions.rules import CallerKey, Denied, Grant, Permissions
from pactgate.policy.permissions.selection import Subject

OTHERS: Final = "(others)"


class Cell(NamedTuple):
    """What one class has of one tool: `yes`, `no`, or `if` its arguments meet a condition; and the rules that say so."""

    answer: str
    rules: tuple[AppliedRule, ...]
    conditions: tuple[str, ...] = ()


def class_names(settings: Config) -> list[str]:
    """The classes, and one for the clients that are of none."""
    has_rest = not any(one == type(one)() for one in settings.callers.values())
    return [*settings.callers, *([OTHERS] if has_rest else [])]


def cells_of(settings: Config, name: str, tools: Iterable[Tool]) -> dict[str, Cell]:
    """What a class has of each tool. For conditions on the client, it has the groups of its class and nothing else."""
    if not settings.permissions:
        return {tool.full_name: Cell("yes", ()) for tool in tools}
    permissions = Permissions(settings)
    one = settings.callers.get(name)
    groups = frozenset(one.groups) if one is not None else frozenset[str]()
    issuer = one.issuer or "" if one is not None else ""
    facts = permissions.key_of(Principal("", kind=PrincipalKind.OAUTH, issuer=issuer, groups=groups)).facts
    key = CallerKey(None if one is None else name, facts)
    return {tool.full_name: _cell(permissions.decide(key, Subject.of(tool))) for tool in tools}


def _cell(found: Grant | Denied) -> Cell:
    if isinstance(found, Denied):
        return Cell("no", () if found.rule is None else (found.applied,))
    if found.reader is None and found.rule is not None:
        return Cell("yes", (found.applied,))
    rules = (*found.denies, *((found.rule,) if found.rule is not None else found.allows))
    texts = (
        f"{word} {one.source}"
        for rule in rules
        for word, one in (("when", rule.when), ("unless", rule.unless))
        if one is not None
    )
    return Cell("if", tuple(rule.applied for rule in rules), tuple(texts))
