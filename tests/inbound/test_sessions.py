from __future__ import annotations

import gc
import tracemalloc
from collections.abc import AsyncIterator

import pytest

from pactgate.config.model import Sessions
from pactgate.core.principal import Principal
from pactgate.inbound.resumable_streams import KEEP_S
from pactgate.inbound.sessions import LegacySession, SessionTable
from pactgate.protocol.legacy import InitializeParams, Phase
from tests.support.facing import Clock

OFFER = InitializeParams("2025-11-25", "tests/1", {"roots": {"listChanged": True}, "sampling": {}})


class Call:
    def __init__(self) -> None:
        self.stopped: list[str] = []

    def stop(self, reason: str) -> None:
        self.stopped.append(reason)


class Tables:
    """Makes tables with a hand-moved clock and closes them at the end."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.made: list[SessionTable] = []

    def __call__(self, **bounds: int) -> SessionTable:
        table = SessionTable(Sessions(**bounds), self.clock)
        self.made.append(table)
        return table


@pytest.fixture
async def tables() -> AsyncIterator[Tables]:
    made = Tables()
    yield made
    for table in made.made:
        table.close()


def opened(table: SessionTable, subject: str = "ann", scope: str | None = None) -> LegacySession:
    assert table.make_room(subject)
    return table.open(Principal(subject), scope, "2025-11-25", OFFER)


async def test_a_session_is_found_only_by_its_owner_on_its_path(tables: Tables) -> None:
    table = tables()
    session = opened(table, "ann", "files")
    assert table.find(session.id, "ann", "files") is session
    assert table.find(session.id, "bob", "files") is None
    assert table.find(session.id, "ann", None) is None
    assert table.find(session.id, "ann", "web") is None
    assert table.find(session.id.upper(), "ann", "files") is None
    assert table.find("", "ann", "files") is None


async def test_ids_have_128_random_bits_and_handles_do_not_show_them(tables: Tables) -> None:
    table = tables()
    sessions = [opened(table) for _ in range(200)]
    assert len({session.id for session in sessions}) == 200
    assert all(len(bytes.fromhex(session.id)) == 16 for session in sessions)
    assert all(session.handle not in session.id for session in sessions)


async def test_an_idle_session_ends_and_a_used_one_does_not(tables: Tables) -> None:
    table = tables(idle_timeout_ms=10_000)
    idle, used, busy = opened(table), opened(table), opened(table)
    call = Call()
    busy.running[1] = call
    tables.clock.now += 9
    assert table.find(used.id, "ann", None) is used
    tables.clock.now += 1
    table.sweep()
    assert table.all() == (used, busy)
    assert idle.phase is Phase.CLOSED
    assert call.stopped == []
    del busy.running[1]
    tables.clock.now += 10
    table.sweep()
    assert len(table) == 0


async def test_the_longest_unused_session_makes_room_for_a_new_one(tables: Tables) -> None:
    table = tables(max_sessions=3)
    first, second, third = (opened(table) for _ in range(3))
    table.find(first.id, "ann", None)
    fourth = opened(table)
    assert table.all() == (third, first, fourth)
    assert second.phase is Phase.CLOSED


async def test_a_busy_session_never_makes_room(tables: Tables) -> None:
    table = tables(max_sessions=2)
    for session in (opened(table), opened(table)):
        session.running["x"] = Call()
    assert not table.make_room("ann")
    assert len(table) == 2


async def test_one_caller_s_sessions_make_room_only_for_its_own(tables: Tables) -> None:
    table = tables(max_per_caller=2)
    others = [opened(table, "bob"), opened(table, "bob")]
    first, second, third = (opened(table, "ann") for _ in range(3))
    assert first.phase is Phase.CLOSED
    assert table.all() == (*others, second, third)
    second.running[1] = third.running[1] = Call()
    assert not table.make_room("ann")
    assert table.make_room("cid")


async def test_a_caller_with_many_sessions_can_not_push_out_those_of_another(tables: Tables) -> None:
    table = tables(max_sessions=4)
    bobs = opened(table, "bob")
    anns = [opened(table, "ann") for _ in range(20)]
    assert bobs.phase is not Phase.CLOSED
    assert table.all() == (bobs, *anns[-3:])


async def test_sessions_of_others_make_room_where_those_of_the_largest_caller_are_all_busy(tables: Tables) -> None:
    table = tables(max_sessions=3)
    bobs = opened(table, "bob")
    for session in (opened(table, "ann"), opened(table, "ann")):
        session.running[1] = Call()
    assert not table.make_room("ann")
    assert bobs.phase is not Phase.CLOSED
    assert table.make_room("cid")
    assert bobs.phase is Phase.CLOSED


async def test_ending_a_session_stops_what_runs_in_it(tables: Tables) -> None:
    table = tables()
    session = opened(table)
    call = Call()
    session.running[1] = call
    session.notify("notifications/tools/list_changed", None)
    table.end(session)
    table.end(session)
    assert call.stopped == ["The session has ended."]
    assert table.find(session.id, "ann", None) is None
    assert table.account.kept_bytes == 0
    assert table.streaming == set()


async def test_closing_the_table_ends_every_session(tables: Tables) -> None:
    table = tables()
    sessions = [opened(table) for _ in range(5)]
    table.close()
    assert {session.phase for session in sessions} == {Phase.CLOSED}
    assert len(table) == 0


async def test_notices_nobody_fetches_are_forgotten(tables: Tables) -> None:
    table = tables()
    session = opened(table)
    session.notify("notifications/tools/list_changed", None)
    assert session in table.streaming
    assert table.account.kept_bytes > 0
    tables.clock.now += KEEP_S
    table.sweep()
    assert table.account.kept_bytes == 0
    assert table.streaming == set()


async def test_an_idle_session_costs_less_than_a_kibibyte(tables: Tables) -> None:
    table = tables()
    for _ in range(10):
        opened(table)
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(800):
            session = opened(table)
            session.client = f"client-{number}"
            session.notify("notifications/tools/list_changed", None)
        tables.clock.now += KEEP_S
        table.sweep()
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (after - before) / 800 < 1024
