"""An answer reaches the request it is for, once; everything else is counted and goes nowhere."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pactgate.protocol.correlation import Correlation


def test_ids_are_minted_in_sequence_and_never_twice() -> None:
    flight: Correlation[str] = Correlation()
    assert [flight.open("a"), flight.open("b")] == [1, 2]
    flight.close(1)
    flight.abandon(2)
    flight.drain()
    assert flight.open("c") == 3


def test_answers_in_any_order_find_their_requests() -> None:
    flight: Correlation[str] = Correlation()
    ids = [flight.open(sink) for sink in "abc"]
    assert [flight.close(id_) for id_ in reversed(ids)] == ["c", "b", "a"]
    assert (len(flight), flight.late, flight.duplicate, flight.unknown) == (0, 0, 0, 0)


def test_a_second_answer_is_a_duplicate() -> None:
    flight: Correlation[str] = Correlation()
    id_ = flight.open("a")
    assert flight.close(id_) == "a"
    assert flight.close(id_) is None
    assert (flight.late, flight.duplicate, flight.unknown) == (0, 1, 0)


def test_an_id_spelt_as_text_or_never_minted_is_unknown() -> None:
    flight: Correlation[str] = Correlation()
    flight.open("a")
    for key in ("1", 0, -1, 2, 2**64, ""):
        assert flight.close(key) is None
    assert (len(flight), flight.late, flight.duplicate, flight.unknown) == (1, 0, 0, 6)


def test_the_answer_to_an_abandoned_request_is_late_once() -> None:
    flight: Correlation[str] = Correlation()
    id_ = flight.open("a")
    flight.abandon(id_)
    assert len(flight) == 0
    assert flight.close(id_) is None
    assert flight.close(id_) is None
    assert (flight.late, flight.duplicate, flight.unknown) == (1, 1, 0)


def test_abandoning_what_is_not_open_changes_nothing() -> None:
    flight: Correlation[str] = Correlation()
    id_ = flight.open("a")
    flight.close(id_)
    flight.abandon(id_)
    flight.abandon(99)
    flight.close(id_)
    assert (flight.late, flight.duplicate, flight.unknown) == (0, 1, 0)


def test_only_so_many_abandoned_requests_are_remembered() -> None:
    flight: Correlation[int] = Correlation(remembered=2)
    for id_ in [flight.open(n) for n in range(3)]:
        flight.abandon(id_)
    for id_ in (1, 2, 3):
        flight.close(id_)
    assert (flight.late, flight.duplicate) == (2, 1)


def test_draining_gives_every_open_sink_and_leaves_none() -> None:
    flight: Correlation[str] = Correlation()
    for sink in "abc":
        flight.open(sink)
    flight.close(2)
    assert flight.drain() == ["a", "c"]
    assert flight.drain() == []
    assert len(flight) == 0
    assert flight.close(1) is None
    assert flight.late == 1


@given(st.lists(st.tuples(st.sampled_from(["open", "close", "abandon"]), st.integers(0, 12))))
def test_every_sink_is_delivered_at_most_once_and_every_stray_answer_is_counted(steps: list[tuple[str, int]]) -> None:
    flight: Correlation[str] = Correlation(remembered=3)
    opened: dict[int, str] = {}
    ended: set[int] = set()
    strays = 0
    for step, number in steps:
        if step == "open":
            opened[flight.open(f"sink {len(opened) + 1}")] = f"sink {len(opened) + 1}"
        elif step == "abandon":
            flight.abandon(number)
            ended |= opened.keys() & {number}
        else:
            waiting = number in opened and number not in ended
            assert flight.close(number) == (opened[number] if waiting else None)
            strays += not waiting
            ended |= opened.keys() & {number}
    assert flight.late + flight.duplicate + flight.unknown == strays
    assert flight.drain() == [sink for id_, sink in opened.items() if id_ not in ended]


def test_the_next_id_is_known_before_a_request_is_opened_and_used_once() -> None:
    flight: Correlation[str] = Correlation()
    foreseen = flight.next_id
    assert flight.next_id == foreseen, "looking at it takes nothing"
    assert flight.open("a") == foreseen
    assert flight.next_id == foreseen + 1
    assert flight.close(flight.next_id) is None
    assert (flight.duplicate, flight.unknown) == (0, 1)
