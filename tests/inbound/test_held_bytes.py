from __future__ import annotations

from pactgate.inbound.held_bytes import HeldBytes, Hold


def test_what_is_held_is_the_sum_over_all_connections() -> None:
    held = HeldBytes(1000)
    first, second = Hold(held), Hold(held)
    assert first.resize(300, "alice")
    assert second.resize(200, "bob")
    assert first.resize(100, "alice")
    assert (held.total, first.size, second.size) == (300, 100, 200)
    first.clear()
    second.clear()
    assert held.total == 0


def test_a_principal_and_all_who_are_not_admitted_leave_a_reserve_for_others() -> None:
    held = HeldBytes(1000)
    hers, unknown, his = Hold(held), Hold(held), Hold(held)
    assert hers.resize(1, "alice")
    assert not hers.resize(751, "alice")
    assert hers.resize(750, "alice")
    assert unknown.resize(1, None)
    assert not unknown.resize(190, None)
    assert unknown.resize(180, None)
    assert his.resize(60, "bob")
    assert held.total == 990


def test_a_refused_size_changes_nothing() -> None:
    held = HeldBytes(1000)
    hold = Hold(held)
    assert hold.resize(500, "alice")
    assert not hold.resize(1001, "alice")
    assert (held.total, hold.size) == (500, 500)


def test_the_owner_stays_until_nothing_is_held() -> None:
    held = HeldBytes(1000)
    hold, other = Hold(held), Hold(held)
    assert hold.resize(500, "alice")
    assert hold.resize(600, "bob")
    assert not other.resize(200, "alice"), "all of it is still hers"
    hold.clear()
    assert hold.resize(600, "bob")
    assert other.resize(200, "alice")
