from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pactgate.inbound.resumable_streams import KEEP_S, MAX_BYTES, MAX_EVENTS, SessionStreams, StreamBudget
from tests.support.facing import Clock


class Sink:
    """Stands for an open event stream; takes everything until it is closed."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []
        self.is_open = True
        self.unsent_bytes = 0

    def write(self, data: bytes) -> bool:
        if self.is_open:
            self.taken.append(data)
        return self.is_open

    def close(self) -> None:
        self.is_open = False

    @property
    def ids(self) -> list[str]:
        return [event.split(b"\n")[0].removeprefix(b"id: ").decode() for event in self.taken]


def log(account: StreamBudget | None = None) -> tuple[SessionStreams, Clock, list[str]]:
    clock = Clock()
    return SessionStreams(account or StreamBudget(), clock), clock, []


def test_events_are_numbered_within_their_stream() -> None:
    kept, _, _ = log()
    first, second = Sink(), Sink()
    one, two = kept.open(first, lambda: None), kept.open(second, lambda: None)
    one.push(b"a")
    two.push(b"b")
    one.push(b"c")
    assert (first.ids, second.ids) == (["1-1", "1-2"], ["2-1"])
    assert first.taken[0] == b"id: 1-1\ndata: a\n\n"


def test_a_lost_stream_is_taken_up_behind_the_event_the_client_saw() -> None:
    kept, _, _ = log()
    lost, other, again = Sink(), Sink(), Sink()
    stream = kept.open(lost, lambda: None)
    noise = kept.open(other, lambda: None)
    for text in (b"1", b"2", b"3"):
        stream.push(text)
        noise.push(text)
    lost.is_open = False
    stream.lost(lost)
    stream.push(b"4")
    found = kept.find("1-2")
    assert found is not None
    found[0].attach(again, found[1])
    stream.push(b"5")
    assert again.ids == ["1-3", "1-4", "1-5"]
    stream.end()
    assert not again.is_open


def test_an_ended_stream_gives_its_rest_and_ends_again() -> None:
    kept, _, _ = log()
    gone, again = Sink(), Sink()
    gone.is_open = False
    stream = kept.open(gone, lambda: None)
    stream.push(b"answer")
    stream.end()
    stream.attach(again, 0)
    assert again.ids == ["1-1"]
    assert not again.is_open


def test_a_second_connection_takes_the_stream_from_the_first() -> None:
    kept, _, _ = log()
    first, second = Sink(), Sink()
    standing = kept.standing()
    standing.attach(first, 0)
    standing.attach(second, 0)
    standing.lost(first)
    standing.push(b"x")
    assert not first.is_open
    assert second.ids == ["0-1"]


def test_what_nobody_was_there_to_hear_waits_for_the_next_connection() -> None:
    kept, _, _ = log()
    standing = kept.standing()
    standing.push(b"early")
    sink = Sink()
    standing.attach(sink, standing.delivered)
    assert sink.ids == ["0-1"]


def test_ids_of_unknown_streams_and_other_texts_name_nothing() -> None:
    kept, _, _ = log()
    for text in ("", "1", "1-", "-1", "7-1", "1-1-1", "a-b", "1" * 50 + "-1", "\u0661-1"):
        assert kept.find(text) is None


def test_a_stream_nobody_comes_back_to_is_abandoned_once() -> None:
    kept, clock, calls = log()
    sink = Sink()
    stream = kept.open(sink, lambda: calls.append("abandoned"))
    stream.push(b"x")
    clock.now += 10 * KEEP_S
    kept.sweep(clock.now)
    assert calls == []
    sink.is_open = False
    stream.lost(sink)
    kept.sweep(clock.now + KEEP_S - 1)
    assert calls == []
    kept.sweep(clock.now + KEEP_S)
    kept.sweep(clock.now + KEEP_S)
    assert calls == ["abandoned"]
    assert kept.is_idle


def test_an_ended_stream_is_forgotten_without_further_ado() -> None:
    kept, clock, calls = log()
    stream = kept.open(Sink(), lambda: calls.append("abandoned"))
    stream.push(b"answer")
    stream.end()
    kept.sweep(clock.now + KEEP_S)
    assert calls == []
    assert kept.is_idle
    assert kept.find("1-1") is None


def test_no_event_id_is_given_twice_even_after_everything_was_forgotten() -> None:
    kept, clock, _ = log()
    kept.standing().push(b"x")
    kept.open(Sink(), lambda: None).end()
    kept.sweep(clock.now + KEEP_S)
    assert kept.is_idle
    later = SessionStreams(StreamBudget(), clock, kept.marks)
    sink = Sink()
    later.standing().attach(sink, later.standing().delivered)
    later.standing().push(b"y")
    later.open(sink, lambda: None).push(b"z")
    assert sink.ids == ["0-2", "2-1"]


def test_the_newest_event_is_kept_even_if_it_is_larger_than_a_session_s_share() -> None:
    kept, _, _ = log()
    stream = kept.standing()
    stream.push(b"x")
    stream.push(b"y" * (MAX_BYTES + 1))
    assert [event.number for event in kept.events(0, 0)] == [2]


def test_closing_gives_everything_back() -> None:
    account = StreamBudget()
    kept, _, _ = log(account)
    sink = Sink()
    kept.open(sink, lambda: None).push(b"x")
    assert account.kept_bytes > 0
    kept.close()
    assert account.kept_bytes == 0
    assert not sink.is_open


@given(sizes=st.lists(st.integers(0, MAX_BYTES // 3), max_size=40), share=st.integers(0, 2 * MAX_BYTES))
def test_what_is_kept_never_exceeds_its_bounds(sizes: list[int], share: int) -> None:
    account = StreamBudget(max_bytes=share)
    logs = [SessionStreams(account, Clock()) for _ in range(2)]
    for number, size in enumerate(sizes):
        logs[number % 2].standing().push(b"x" * size)
        kept = [event for each in logs for event in each.events(0, 0)]
        assert account.kept_bytes == sum(len(event.event) for event in kept)
        assert account.kept_bytes <= share


def test_the_number_of_events_is_bounded() -> None:
    kept, _, _ = log()
    for _ in range(MAX_EVENTS + 10):
        kept.standing().push(b"x")
    assert [event.number for event in kept.events(0, 0)] == list(range(11, MAX_EVENTS + 11))
