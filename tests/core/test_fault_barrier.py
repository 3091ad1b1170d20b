"""What one step or one listener raises stays with it, and is reported."""

from __future__ import annotations

import asyncio

import pytest

from pactgate.core.events import Event, InternalFailure, UpstreamNoise
from pactgate.core.fault_barrier import FaultBarrier, Listeners

EVENT = UpstreamNoise("files", "something", "")


def broken(*_: object) -> None:
    raise RuntimeError("a bug")


def failures(events: list[Event]) -> list[InternalFailure]:
    return [event for event in events if isinstance(event, InternalFailure)]


# Steps


def test_a_step_that_raises_reaches_nobody_and_is_reported_with_its_place() -> None:
    events: list[Event] = []
    assert FaultBarrier(events.append).run("reader", broken, 1, 2) is False
    (told,) = failures(events)
    assert (told.where, told.request_id) == ("reader", "")
    assert "a bug" in repr(told)
    assert "in broken" in repr(told), "the report says where the fault is"


def test_a_step_that_ends_well_is_not_reported_and_gets_its_arguments() -> None:
    events: list[Event] = []
    given: list[int] = []
    assert FaultBarrier(events.append).run("reader", given.append, 7) is True
    assert (given, events) == ([7], [])


def test_steps_after_one_that_raised_run_as_ever() -> None:
    events: list[Event] = []
    ran: list[int] = []
    barrier = FaultBarrier(events.append)
    for number in range(4):
        barrier.run("reader", broken if number == 1 else ran.append, number)
    assert ran == [0, 2, 3]
    assert len(failures(events)) == 1


@pytest.mark.parametrize("ending", [asyncio.CancelledError, KeyboardInterrupt, SystemExit])
def test_what_is_no_fault_is_not_held_up(ending: type[BaseException]) -> None:
    def end() -> None:
        raise ending

    events: list[Event] = []
    with pytest.raises(ending):
        FaultBarrier(events.append).run("reader", end)
    assert events == []


def test_a_fault_of_a_request_is_reported_with_its_id() -> None:
    events: list[Event] = []
    FaultBarrier(events.append).report("kernel", RuntimeError("a bug"), "id-1")
    (told,) = failures(events)
    assert (told.where, told.request_id) == ("kernel", "id-1")


# Listeners


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_listener_that_raises_is_counted_and_reported_once_and_every_other_gets_every_event(place: int) -> None:
    listeners = Listeners()
    heard: dict[str, list[Event]] = {"first": [], "second": []}
    names = list(heard)
    names.insert(place, "broken")
    for name in names:
        listeners.add(name, heard[name].append if name in heard else broken)
    for _ in range(5):
        listeners.emit(EVENT)
    for events in heard.values():
        assert [event for event in events if not isinstance(event, InternalFailure)] == [EVENT] * 5
        (told,) = failures(events)
        assert told.where == "listener broken"
        assert "a bug" in repr(told)
    # The five events, and the report of its own fault.
    assert listeners.faults == {"broken": 6}


def test_two_listeners_that_raise_are_reported_by_name_each_once() -> None:
    listeners = Listeners()
    heard: list[Event] = []
    for name in ("one", "two"):
        listeners.add(name, broken)
    listeners.add("good", heard.append)
    for _ in range(3):
        listeners.emit(EVENT)
    assert sorted(told.where for told in failures(heard)) == ["listener one", "listener two"]
    assert heard.count(EVENT) == 3
    assert listeners.faults.keys() == {"one", "two"}


def test_a_listener_that_fails_only_on_reports_ends_nothing() -> None:
    def picky(event: Event) -> None:
        if isinstance(event, InternalFailure):
            raise RuntimeError("can not write that")

    listeners = Listeners()
    heard: list[Event] = []
    for name, listener in (("picky", picky), ("broken", broken), ("good", heard.append)):
        listeners.add(name, listener)
    listeners.emit(EVENT)
    listeners.emit(EVENT)
    assert heard.count(EVENT) == 2
    assert sorted(told.where for told in failures(heard)) == ["listener broken", "listener picky"]


def test_a_listener_added_again_under_its_name_takes_its_own_place() -> None:
    listeners = Listeners()
    old: list[Event] = []
    new: list[Event] = []
    listeners.add("log", old.append)
    listeners.add("log", new.append)
    listeners.emit(EVENT)
    assert (old, new) == ([], [EVENT])
    assert listeners.faults == {}
