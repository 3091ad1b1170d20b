from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.core.fair_share import is_fair, uncontended


def taken(total: int, others: int = 0) -> int:
    """As much as one principal gets of what others have left."""
    held = 0
    while is_fair(held, total - others - held):
        held += 1
    return held


@pytest.mark.parametrize(("total", "share"), [(0, 0), (1, 1), (2, 1), (3, 2), (4, 3), (8, 6), (100, 75)])
def test_one_principal_gets_three_quarters_and_at_least_one(total: int, share: int) -> None:
    assert taken(total) == share


def test_each_further_principal_gets_three_quarters_of_the_rest() -> None:
    shares: list[int] = []
    while sum(shares) < 100:
        shares.append(taken(100, others=sum(shares)))
    assert shares == [75, 18, 5, 1, 1]


def test_more_than_is_free_is_never_fair() -> None:
    assert not is_fair(0, 10, 11)
    assert is_fair(0, 10, 10)
    assert not is_fair(1, 10, 8)


@given(total=st.integers(0, 200), data=st.data())
def test_below_the_uncontended_part_everybody_is_within_its_share(total: int, data: st.DataObject) -> None:
    if not uncontended(total):
        return
    in_all = data.draw(st.integers(0, uncontended(total) - 1))
    held = data.draw(st.integers(0, in_all))
    assert is_fair(held, total - in_all)
