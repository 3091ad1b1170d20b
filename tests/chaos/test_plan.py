"""The plan of a run can be repeated, and has every kind of fault."""

from __future__ import annotations

from chaos.plan import CLIENTS, FRAGILE, SIGNALS, STEADY, TOOLS, plan
from chaos.server import FAULTS


def test_the_same_seed_gives_the_same_faults_at_the_same_times() -> None:
    assert plan(7, 60) == plan(7, 60)
    assert plan(7, 60) != plan(8, 60)


def test_a_minute_has_every_kind_of_fault_and_a_quiet_end() -> None:
    faults = plan(1, 60)
    assert {fault.kind for fault in faults} == {*SIGNALS, *TOOLS, *CLIENTS}
    assert faults[-1].at_s < 40


def test_no_fault_is_done_to_a_steady_server() -> None:
    assert {fault.server for fault in plan(3, 600)} == set(FRAGILE)
    assert not set(FRAGILE) & set(STEADY)


def test_the_server_knows_every_fault_it_is_asked_for() -> None:
    assert set(TOOLS) == set(FAULTS)
