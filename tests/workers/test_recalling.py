"""Kept answers in several workers: what one has written to, no other gives from before."""

from __future__ import annotations

import mmap
from collections.abc import Iterator

import pytest

from pactgate.config.sections.cache import Cache
from pactgate.policy.cache_policy import Keys
from pactgate.policy.result_cache import Lease
from pactgate.state.guarded import GuardedStore
from pactgate.state.memory_cache import MemoryCache
from pactgate.state.ports import Lookup
from pactgate.workers.epochs import Epochs, size_bytes
from pactgate.workers.homes import Place
from pactgate.workers.recalling import CrewRecall

KEYS = Keys(b"key", None)


class Workers:
    """Two workers in one process, with the memory two processes would share."""

    def __init__(self, memory: mmap.mmap) -> None:
        self.epochs = [Epochs(memory, Place(index, 2)) for index in range(2)]
        self.writer, self.reader = (CrewRecall(GuardedStore(MemoryCache(Cache())), epochs) for epochs in self.epochs)

    def lease(self, recall: CrewRecall, server: str = "files") -> Lease:
        lease = recall.ask(KEYS, server)
        assert isinstance(lease, Lease)
        return lease

    def kept(self, recall: CrewRecall, server: str = "files") -> bytes | None:
        found = recall.ask(KEYS, server)
        if isinstance(found, Lease):
            found.decline()
            return None
        assert isinstance(found, Lookup)
        return found.value


@pytest.fixture
def workers() -> Iterator[Workers]:
    with mmap.mmap(-1, size_bytes(2)) as memory:
        both = Workers(memory)
        yield both
        for epochs in both.epochs:
            epochs.close()


async def test_what_is_kept_is_given_until_another_worker_writes(workers: Workers) -> None:
    workers.lease(workers.reader).keep(b"before", ttl_ms=0)
    assert workers.kept(workers.reader) == b"before"
    workers.writer.drop_server("files")
    assert workers.kept(workers.reader) is None
    workers.lease(workers.reader).keep(b"after", ttl_ms=0)
    assert workers.kept(workers.reader) == b"after"


async def test_an_answer_asked_for_before_the_write_is_not_kept_after_it(workers: Workers) -> None:
    under_way = workers.lease(workers.reader)
    workers.writer.drop_server("files")
    under_way.keep(b"from before", ttl_ms=0)
    assert workers.kept(workers.reader) is None


async def test_nobody_who_asks_after_the_write_waits_for_an_answer_from_before(workers: Workers) -> None:
    before = workers.lease(workers.reader)
    workers.writer.drop_server("files")
    after = workers.lease(workers.reader)
    after.keep(b"after", ttl_ms=0)
    before.keep(b"before", ttl_ms=0)
    assert workers.kept(workers.reader) == b"after"


async def test_other_servers_are_left_alone_and_so_is_the_writer_s_own_next_answer(workers: Workers) -> None:
    workers.lease(workers.reader, "mail").keep(b"mail", ttl_ms=0)
    workers.writer.drop_server("files")
    assert workers.kept(workers.reader, "mail") == b"mail"
    workers.lease(workers.writer).keep(b"own", ttl_ms=0)
    assert workers.kept(workers.writer) == b"own"


async def test_a_write_long_before_the_first_question_changes_nothing(workers: Workers) -> None:
    workers.writer.drop_server("files")
    workers.lease(workers.reader).keep(b"first", ttl_ms=0)
    assert workers.kept(workers.reader) == b"first"
