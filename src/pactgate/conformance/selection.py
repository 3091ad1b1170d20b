"""Selects the rules that run, and those that decide the exit code (`--rules`). Must not: run anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from pactgate.conformance.rule import Rule
from pactgate.conformance.rules import ALL

RuleClass = type[Rule]

DOCUMENTED: Final[tuple[RuleClass, ...]] = tuple(rule for rule in ALL if rule.code.startswith(("INV-", "COMP-")))
OUR_OWN: Final[tuple[RuleClass, ...]] = tuple(rule for rule in ALL if rule.code.startswith("GW-"))
ADVICE: Final[tuple[RuleClass, ...]] = tuple(rule for rule in ALL if rule.code.startswith("LINT-"))
BY_CODE: Final[dict[str, RuleClass]] = {rule.code: rule for rule in ALL}
_GROUPS: Final[dict[str, tuple[RuleClass, ...]]] = {
    "inv": DOCUMENTED,
    "gw": OUR_OWN,
    "lint": ADVICE,
    "all": ALL,
}


def rule_of(code: str) -> RuleClass:
    """The rule or the check of the gateway profile with this code."""
    if code in BY_CODE:
        return BY_CODE[code]
    from pactgate.conformance.gateway import checks  # only a report of the profile needs them

    return checks.BY_CODE[code]


class UnknownRuleError(Exception):
    """A word that names neither a rule nor a group of rules."""

    def __init__(self, word: str) -> None:
        super().__init__(
            f"There is no rule {word!r}. `pactgate compliance rules` lists them; inv, gw, lint and all are groups."
        )


class RuleSelection(Struct, frozen=True):
    """The rules to run, in order, and the codes of those that decide."""

    rules: tuple[RuleClass, ...]
    deciding: frozenset[str]


def select(words: str | Sequence[str] | None = None) -> RuleSelection:
    """Without a word all rules run and the documented ones decide; otherwise those named run and decide."""
    if words is None:
        return RuleSelection(ALL, frozenset(rule.code for rule in DOCUMENTED))
    named = [word.strip() for word in (words.split(",") if isinstance(words, str) else words)]
    chosen: set[str] = set()
    for word in named:
        if word.lower() in _GROUPS:
            chosen |= {rule.code for rule in _GROUPS[word.lower()]}
        elif word.upper() in BY_CODE:
            chosen.add(word.upper())
        else:
            raise UnknownRuleError(word)
    return RuleSelection(tuple(rule for rule in ALL if rule.code in chosen), frozenset(chosen))
