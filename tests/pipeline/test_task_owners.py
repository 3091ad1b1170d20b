"""A task is its caller's own: found by nobody else, bounded, and gone with the session it was made in."""

from __future__ import annotations

import gc
import json
from types import SimpleNamespace
from typing import Any

import pytest

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.values import HandleOwner
from pactgate.pipeline.task_owners import TaskOwners, created_task
from pactgate.protocol.versions import Era

ANN, BOB = HandleOwner("ann"), HandleOwner("bob")


class FakeSession:
    def __init__(self, *, is_modern_http: bool = False) -> None:
        self.is_modern_http = is_modern_http
        self.peer = SimpleNamespace(server="a")


def session(**facts: Any) -> Any:
    return FakeSession(**facts)


def created(id_: Any) -> bytes:
    return json.dumps({"task": {"taskId": id_, "status": "working"}}).encode()


def owns(tasks: TaskOwners, where: Any, owner: HandleOwner, id_: str) -> bool:
    try:
        tasks.require(where, owner, id_)
    except GatewayFailure as failure:
        return failure.kind is not Kind.INVALID_PARAMS
    return True


@pytest.mark.parametrize(
    ("result", "id_"),
    [
        (created("t"), "t"),
        (b'{"resultType":"task","taskId":"t"}', "t"),
        (b'{"taskId":"t"}', None),
        (b'{"resultType":"complete","taskId":"t"}', None),
        (b'{"task":{"taskId":1}}', None),
        (b'{"task":"t"}', None),
        (b"{}", None),
        (b"[]", None),
    ],
)
def test_only_a_result_that_creates_a_task_names_one(result: bytes, id_: str | None) -> None:
    assert created_task(result) == id_


def test_a_task_is_found_by_its_owner_in_its_session_and_nowhere_else() -> None:
    tasks, here, there = TaskOwners(), session(), session()
    tasks.note(here, ANN, created("t"))
    assert owns(tasks, here, ANN, "t")
    assert not owns(tasks, there, ANN, "t")
    for other in (BOB, HandleOwner("ann", "s1")):
        assert not owns(tasks, here, other, "t")
        tasks.note(here, other, created("t"))  # a server that gives an id twice takes it from nobody
        assert not owns(tasks, here, other, "t")
    assert owns(tasks, here, ANN, "t")


def test_a_modern_server_over_http_has_no_sessions_so_its_tasks_outlive_a_connection() -> None:
    tasks = TaskOwners()
    tasks.note(session(is_modern_http=True), ANN, created("t"))
    assert owns(tasks, session(is_modern_http=True), ANN, "t")
    assert not owns(tasks, session(), ANN, "t")


def test_a_session_is_not_kept_by_its_tasks_and_its_tasks_mean_nothing_after_it() -> None:
    tasks = TaskOwners()
    for _ in range(3):
        tasks.note(session(), ANN, created("t"))
    gc.collect()
    assert len(tasks._sessions) == 0
    assert not owns(tasks, session(), ANN, "t")


def test_a_subject_with_too_many_tasks_loses_its_own_oldest() -> None:
    tasks, here = TaskOwners(max_tasks=10, max_of_one=3), session()
    tasks.note(here, BOB, created("b"))
    for number in range(5):
        tasks.note(here, HandleOwner("ann", f"s{number}"), created(f"a{number}"))
    assert len(tasks) == 4
    assert owns(tasks, here, BOB, "b")
    assert [owns(tasks, here, HandleOwner("ann", f"s{n}"), f"a{n}") for n in range(5)] == [False] * 2 + [True] * 3


def test_with_too_many_tasks_in_all_whoever_has_most_loses_one() -> None:
    tasks, here = TaskOwners(max_tasks=4, max_of_one=3), session()
    tasks.note(here, BOB, created("b"))
    for number in range(3):
        tasks.note(here, ANN, created(f"a{number}"))
    tasks.note(here, HandleOwner("eve"), created("e"))
    assert len(tasks) == 4
    assert owns(tasks, here, BOB, "b")
    assert owns(tasks, here, HandleOwner("eve"), "e")
    assert not owns(tasks, here, ANN, "a0")


def test_an_id_of_any_length_takes_bounded_room() -> None:
    tasks, here = TaskOwners(), session()
    tasks.note(here, ANN, created("x" * 100_000))
    assert len(tasks) == 0


def test_the_id_that_a_modern_client_sees_leads_to_the_replica_that_knows_the_task() -> None:
    tasks, result = TaskOwners(owned_id="replica"), b'{"taskId":"t","n":1e400}'
    assert tasks.shown(Era.MODERN, result) == b'{"taskId":"replica.t","n":1e400}'
    assert tasks.of_server(Era.MODERN, "replica.t") == "t"
    assert tasks.of_server(Era.MODERN, "another.t") == "another.t"
    for unchanged in (b"{}", b'{"taskId":1}'):
        assert tasks.shown(Era.MODERN, unchanged) == unchanged


def test_without_other_replicas_and_in_legacy_sessions_an_id_stays_as_its_server_gave_it() -> None:
    result = b'{"taskId":"t"}'
    for tasks, era in ((TaskOwners(), Era.MODERN), (TaskOwners(owned_id="replica"), Era.LEGACY)):
        assert tasks.shown(era, result) == result
        assert tasks.of_server(era, "t") == "t"


def test_a_list_keeps_what_else_it_says_and_one_that_breaks_the_protocol_is_refused() -> None:
    tasks, here = TaskOwners(), session()
    tasks.note(here, ANN, created("t"))
    listed = b'{"tasks":[{"taskId":"t","n":1e400},{"taskId":"u"}],"nextCursor":"c","_meta":{"a":1}}'
    assert tasks.only_own(here, ANN, listed) == b'{"tasks":[{"taskId":"t","n":1e400}],"nextCursor":"c","_meta":{"a":1}}'
    assert json.loads(tasks.only_own(here, BOB, listed))["tasks"] == []
    for broken in (b"{}", b'{"tasks":{}}', b'{"tasks":[{}]}', b'{"tasks":[1]}'):
        with pytest.raises(GatewayFailure) as failure:
            tasks.only_own(here, ANN, broken)
        assert failure.value.kind is Kind.MALFORMED_RESULT


def test_the_tasks_of_a_subject_that_may_no_longer_call_are_nobodys() -> None:
    tasks, here = TaskOwners(), session()
    tasks.note(here, ANN, created("t"))
    tasks.note(here, BOB, created("u"))
    tasks.forget("ann")
    tasks.forget("nobody")
    assert not owns(tasks, here, ANN, "t")
    assert owns(tasks, here, BOB, "u")
