"""Counters several processes share."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from pactgate.workers.epochs import SLOTS, Epochs, size_bytes
from pactgate.workers.homes import Place


@pytest.fixture
def memory() -> Iterator[mmap.mmap]:
    with mmap.mmap(-1, size_bytes(3)) as shared:
        yield shared


def test_what_one_counts_all_others_see_and_itself_does_not(memory: mmap.mmap) -> None:
    workers = [Epochs(memory, Place(index, 3)) for index in range(3)]
    before = [worker.of_others("files") for worker in workers]
    workers[1].count("files")
    after = [worker.of_others("files") for worker in workers]
    assert [now - then for now, then in zip(after, before, strict=True)] == [1, 0, 1]
    assert workers[0].of_others("mail") == 0
    for worker in workers:
        worker.close()


def test_counts_of_two_at_once_never_hide_each_other(memory: mmap.mmap) -> None:
    reader, first, second = (Epochs(memory, Place(index, 3)) for index in range(3))
    seen = [reader.of_others("files")]
    for writer in (first, second, second, first):
        writer.count("files")
        seen.append(reader.of_others("files"))
    assert seen == sorted(set(seen)), "each count is a change"
    for worker in (reader, first, second):
        worker.close()


def test_the_memory_is_the_same_for_another_process_and_every_server_has_its_place_there() -> None:
    file = os.memfd_create("epochs")
    os.ftruncate(file, size_bytes(2))
    code = (
        "import mmap, sys; from pactgate.workers.epochs import Epochs, size_bytes; from pactgate.workers.homes import Place;"
        "Epochs(mmap.mmap(int(sys.argv[1]), size_bytes(2)), Place(1, 2)).count('files')"
    )
    with mmap.mmap(file, size_bytes(2)) as memory:
        here = Epochs(memory, Place(0, 2))
        subprocess.run([sys.executable, "-c", code, str(file)], pass_fds=(file,), check=True, timeout=20)
        assert here.of_others("files") == 1
        assert size_bytes(2) == 2 * SLOTS * 8
        here.close()
    os.close(file)
