"""A recorder that fails is reported once, and the connection goes on unrecorded."""

from __future__ import annotations

from pactgate.capture.guarded_recorder import GuardedRecorder
from pactgate.core.events import Event, InternalFailure
from pactgate.core.fault_barrier import FaultBarrier
from pactgate.core.recording import Headers


class Notes:
    """Both kinds of recorder; fails from the wanted note on."""

    def __init__(self, fails_at: int) -> None:
        self.notes: list[str] = []
        self._fails_at = fails_at

    def _note(self, what: str) -> None:
        self.notes.append(what)
        if len(self.notes) >= self._fails_at:
            raise OSError("no room")

    def passed(self, data: bytes, *, from_client: bool) -> None:
        self._note(f"passed {data!r}")

    def requested(self, verb: str, path: str, headers: Headers, body: bytes) -> Notes:
        self._note("requested")
        return self

    def answered(self, status: int, headers: Headers, body: bytes) -> None:
        self._note("answered")

    def streaming(self, status: int, headers: Headers) -> None:
        self._note("streaming")

    def events(self, data: bytes) -> None:
        self._note("events")

    def ended(self, *, by_client: bool) -> None:
        self._note("ended")

    def closed(self) -> None:
        self._note("closed")


def use(recorder: GuardedRecorder) -> None:
    recorder.passed(b"{}", from_client=True)
    exchange = recorder.requested("POST", "/mcp", b"", b"")
    exchange.answered(200, b"", b"")
    exchange.streaming(200, b"")
    exchange.events(b"")
    exchange.ended(by_client=False)
    recorder.closed()


def test_everything_that_passes_is_recorded() -> None:
    notes, events = Notes(fails_at=100), list[Event]()
    use(GuardedRecorder(notes, FaultBarrier(events.append)))
    assert notes.notes == ["passed b'{}'", "requested", "answered", "streaming", "events", "ended", "closed"]
    assert events == []


def test_after_its_first_fault_a_recorder_is_left_alone_and_the_fault_is_reported_once() -> None:
    for fails_at in range(1, 8):
        notes, events = Notes(fails_at), list[Event]()
        use(GuardedRecorder(notes, FaultBarrier(events.append)))
        assert len(notes.notes) == fails_at
        assert [event.where for event in events if isinstance(event, InternalFailure)] == ["recorder"]
