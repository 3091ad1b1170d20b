"""Orders of eviction by themselves: who goes next, whatever a clock says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.state.eviction import EVICTION_ORDERS, EvictionOrder, LfuOrder


def order_of(policy: str, steps: str) -> EvictionOrder:
    """An order after these steps: a small letter places a key, a capital one uses it, `-x` removes it."""
    order = EVICTION_ORDERS[policy]()
    letters = iter(steps)
    for letter in letters:
        if letter == "-":
            order.remove(next(letters).encode())
        elif letter.islower():
            order.place(letter.encode())
        else:
            order.touch(letter.lower().encode())
    return order


def victims(order: EvictionOrder, spare: bytes = b"") -> str:
    gone = ""
    while (key := order.victim(spare)) is not None:
        order.remove(key)
        gone += key.decode()
    return gone


@pytest.mark.requirement("S1/CACHE-004")
@pytest.mark.parametrize(
    ("policy", "steps", "expected"),
    [
        ("lru", "abc", "abc"),
        ("lru", "abcA", "bca"),
        ("lru", "abcABA", "cba"),
        ("lru", "abca", "bca"),
        ("lru", "abc-b", "ac"),
        ("fifo", "abcAAA", "abc"),
        ("fifo", "abca", "bca"),
        ("lfu", "abc", "abc"),
        ("lfu", "abcA", "bca"),
        ("lfu", "abcAAB", "cba"),
        ("lfu", "abcBA", "cba"),
        ("lfu", "abcABAB", "cab"),
        ("lfu", "abAAAAb", "ba"),
        ("lfu", "abBBB-aa", "ab"),
        ("lfu", "abAAAA-a-bab", "ab"),
    ],
)
def test_who_goes_first_follows_from_the_steps_alone(policy: str, steps: str, expected: str) -> None:
    assert victims(order_of(policy, steps)) == expected


@pytest.mark.requirement("S1/CACHE-004")
def test_equally_frequent_entries_go_in_the_order_of_their_last_use() -> None:
    assert victims(order_of("lfu", "abcdCADB")) == "cadb"


@pytest.mark.parametrize("policy", EVICTION_ORDERS)
def test_a_spared_key_is_never_the_victim(policy: str) -> None:
    order = order_of(policy, "abC".lower())
    assert victims(order, b"a") == "bc"
    assert order.victim(b"a") is None
    assert order.victim(b"") == b"a"


@pytest.mark.parametrize("policy", EVICTION_ORDERS)
def test_an_empty_order_has_no_victim(policy: str) -> None:
    assert EVICTION_ORDERS[policy]().victim(b"") is None


def test_a_bucket_between_two_others_is_made_and_unmade() -> None:
    order = order_of("lfu", "abAAA")
    order.touch(b"b")
    order.touch(b"b")
    order.place(b"c")
    order.touch(b"c")
    assert victims(order) == "cba"


@given(st.lists(st.tuples(st.sampled_from("ptr"), st.sampled_from("abcde")), max_size=60))
def test_buckets_are_never_empty_and_stand_in_order_whatever_comes_and_goes(
    steps: list[tuple[str, str]],
) -> None:
    order, uses = LfuOrder(), dict[bytes, int]()
    for kind, letter in steps:
        key = letter.encode()
        if kind == "p":
            order.place(key)
            uses[key] = uses.get(key, 0) + 1
        elif key in uses and kind == "t":
            order.touch(key)
            uses[key] += 1
        elif key in uses:
            order.remove(key)
            del uses[key]
        assert chain(order) == sorted(dict.fromkeys(uses.values()))


def chain(order: LfuOrder) -> list[int]:
    """The counts of all buckets from the rarest up, each joined to the one below it."""
    below, counts = order._root, []
    while (bucket := below.above) is not None:
        assert bucket.below is below
        assert bucket.keys
        counts.append(bucket.count)
        below = bucket
    return counts
