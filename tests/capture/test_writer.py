"""The thread that writes."""

from __future__ import annotations

import threading

from pactgate.capture.writer import WriterThread


def test_jobs_are_done_in_their_order_and_all_of_them_before_it_ends() -> None:
    done: list[int] = []
    writer = WriterThread()
    for number in range(100):
        writer.put(10, done.append, number)
    writer.close(5)
    assert done == list(range(100))
    assert writer.backlog_bytes == 0


def test_what_waits_is_counted_and_nobody_waits_for_it() -> None:
    writer = WriterThread()
    go = threading.Event()
    writer.put(5, lambda: (go.wait(5), None)[1])
    writer.put(7, lambda: None)
    assert writer.backlog_bytes == 12
    go.set()
    writer.close(5)
    assert writer.backlog_bytes == 0


def test_closing_does_not_wait_for_a_disk_that_hangs() -> None:
    writer = WriterThread()
    go = threading.Event()
    writer.put(0, lambda: (go.wait(5), None)[1])
    writer.close(0.01)
    go.set()
    writer.close(5)


def test_what_is_for_later_is_done_at_once_when_it_closes() -> None:
    writer = WriterThread()
    done = threading.Event()
    writer.later(60, done.set)
    writer.close(5)
    assert done.is_set()


def test_without_a_job_there_is_no_thread() -> None:
    before = threading.active_count()
    writer = WriterThread()
    assert threading.active_count() == before
    writer.close(5)
