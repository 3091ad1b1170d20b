"""Which rules run and which decide."""

from __future__ import annotations

import pytest

from pactgate.conformance.rules import ALL
from pactgate.conformance.selection import UnknownRuleError, select


def test_by_default_all_run_and_the_documented_ones_decide() -> None:
    chosen = select()
    assert chosen.rules == ALL
    assert chosen.deciding == {*(f"INV-00{n}" for n in range(1, 8)), "COMP-001", "COMP-002"}


@pytest.mark.parametrize(
    ("words", "first", "count"),
    [
        ("inv", "INV-001", 9),
        ("gw", "GW-001", len(ALL) - 13),
        ("lint", "LINT-001", 4),
        ("all", "INV-001", len(ALL)),
        ("GW-012, inv-003", "INV-003", 2),
    ],
)
def test_what_is_named_runs_and_decides(words: str, first: str, count: int) -> None:
    chosen = select(words)
    assert chosen.rules[0].code == first
    assert len(chosen.rules) == count
    assert chosen.deciding == {rule.code for rule in chosen.rules}


def test_a_list_of_words_is_taken_too() -> None:
    assert [rule.code for rule in select(["GW-001", "inv"]).rules][-1] == "GW-001"


@pytest.mark.parametrize("words", ["", "INV-008", "inv,nothing", "inv;gw"])
def test_a_rule_that_does_not_exist_is_refused(words: str) -> None:
    with pytest.raises(UnknownRuleError):
        select(words)
