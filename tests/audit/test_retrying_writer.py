"""What can't be written is owed, within bounds, and paid in order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pactgate.audit import retrying_writer as writer_module
from pactgate.audit.chain_file import ChainFile
from pactgate.audit.retrying_writer import RETRY_S, RetryingWriter
from pactgate.audit.verify import verify
from tests.audit.logs import call, fill_the_disk, said


class Told:
    """A writer, the time, and what it told."""

    def __init__(self, log: Path, **settings: Any) -> None:
        self.now = 0.0
        self.failures: list[str] = []
        self.recoveries: list[tuple[int, int]] = []
        self.log = log
        file = ChainFile(log, **{"max_bytes": 2**30, "max_files": 9, "fsync": False, **settings})
        self.writer = RetryingWriter(
            file,
            on_failure=self.failures.append,
            on_recovery=lambda late, lost: self.recoveries.append((late, lost)),
            clock=lambda: self.now,
        )
        self.writer.begin()

    def fill_the_disk(self) -> None:
        fill_the_disk(self.log)

    def ids(self) -> list[str]:
        return [line["requestId"] for line in said(self.log) if line["kind"] == "call"]


@pytest.fixture
def told(tmp_path: Path) -> Told:
    return Told(tmp_path / "audit.jsonl")


def test_a_day_without_trouble_begins_and_ends_with_a_record(told: Told) -> None:
    assert told.writer.write([call(1), call(2)])
    assert told.writer.write([])
    told.writer.end()
    assert [line["kind"] for line in said(told.log)] == ["opened", "call", "call", "closed"]
    assert (told.failures, told.recoveries) == ([], [])


def test_records_that_failed_are_paid_in_order_before_anything_else(told: Told) -> None:
    told.fill_the_disk()
    assert not told.writer.write([call(1)])
    assert not told.writer.write([call(2)])
    assert told.failures == [told.writer.trouble] == ["No space left on device"]
    told.now += RETRY_S
    assert told.writer.write([call(3)])
    assert (told.ids(), told.recoveries, told.writer.trouble) == (["r1", "r2", "r3"], [(3, 0)], None)
    told.writer.end()
    assert verify([told.log]).is_valid


def test_a_failing_disk_is_tried_only_so_often(told: Told) -> None:
    told.fill_the_disk()
    assert not told.writer.write([call(1)])
    assert not told.writer.write([])
    assert told.ids() == []
    told.now += RETRY_S
    assert told.writer.write([])
    assert told.ids() == ["r1"]
    told.writer.end()


def test_a_debt_is_bounded_and_what_is_lost_is_counted_in_the_log(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "MAX_OWED", 3)
    told.fill_the_disk()
    for number in range(10):
        assert not told.writer.write([call(number)], lost=1)
    told.now += RETRY_S
    assert told.writer.write([])
    *_, gap = said(told.log)
    assert told.ids() == ["r0", "r1", "r2"]
    assert (gap["kind"], gap["lostCalls"]) == ("gap", 17)
    assert told.recoveries == [(3, 17)]
    told.writer.end()
    assert verify([told.log]).is_valid


def test_a_record_that_comes_with_the_recovery_needs_no_room_in_the_debt(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "MAX_OWED", 2)
    told.fill_the_disk()
    assert not told.writer.write([call(1), call(2)])
    told.now += RETRY_S
    assert told.writer.write([call(3)])
    assert (told.ids(), told.recoveries) == (["r1", "r2", "r3"], [(3, 0)])
    told.writer.end()


def test_a_debt_is_bounded_in_bytes_too(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "MAX_OWED_BYTES", 100)
    told.fill_the_disk()
    told.writer.write([call(number) for number in range(10)])
    told.now += RETRY_S
    assert told.writer.write([])
    assert len(told.ids()) == 3
    told.writer.end()


def test_calls_lost_without_trouble_are_counted_too(told: Told) -> None:
    assert told.writer.write([call(1)], lost=2)
    assert [line.get("lostCalls") for line in said(told.log)] == [None, None, 2]
    assert told.recoveries == []
    told.writer.end()


def test_a_log_that_can_not_be_opened_is_let_go_of(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    log.mkdir()
    with pytest.raises(OSError):
        Told(log)
    log.rmdir()
    Told(log).writer.end()
