"""What is remembered is bounded, and forgetting is admitted."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.conformance import bounded
from pactgate.conformance.bounded import BoundedDict, UsedIds, digest, id_key

ids = st.lists(st.one_of(st.integers(-3, 12), st.text("ab", max_size=2)), max_size=40)


@given(ids)
def test_a_ledger_is_a_set(keys: list[Any]) -> None:
    used, seen = UsedIds(), set()
    for key in keys:
        assert used.add(key) == (key not in seen)
        seen.add(key)
        assert key in used
    assert set(used) == seen
    assert len(used) == len(seen)


def test_ids_that_count_upwards_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "_MAX_IDS", 1000)
    used = UsedIds()
    assert all(used.add(number) for number in range(100_000))
    assert not used.has_forgotten
    assert 99_999 in used
    assert 100_000 not in used


def test_more_ids_than_fit_are_admitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "_MAX_IDS", 2)
    used = UsedIds()
    for key in ("a", "b", "c"):
        used.add(key)
    assert used.has_forgotten
    assert "c" not in used


def test_a_full_memory_keeps_what_it_has() -> None:
    held: BoundedDict[int] = BoundedDict(limit=1)
    held["a"] = 1
    held["a"] = 2
    held["b"] = 3
    assert dict(held) == {"a": 2}
    assert held.has_forgotten


@pytest.mark.parametrize("value", [None, True, 1.0, [], {}])
def test_what_is_no_id_has_no_key(value: Any) -> None:
    assert id_key(value) is None


def test_ids_keep_their_type_and_long_ones_are_shortened() -> None:
    assert id_key(1) != id_key("1")
    assert id_key("x" * 1000) == id_key("x" * 1000) != id_key("x" * 1001)
    assert isinstance(id_key("\ud800" * 100), bytes)


def test_equal_json_has_equal_digests_whatever_the_order_of_members() -> None:
    assert digest({"a": 1, "b": [2]}) == digest({"b": [2], "a": 1})
    assert digest({"a": 1}) != digest({"a": "1"})
