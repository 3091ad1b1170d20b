"""A call that asks the person at its client goes on with the answer, in one process and over several requests."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pactgate.runner.load import load
from pactgate.runner.running_call import MAX_UNTOLD, MAX_WAITING_THREADS, CallerFacts, RunningCall
from tests.runner.driving import Driven, error, operations, write_tools
from tests.support.eventually import eventually_blocking

KIT = '''
import enum
from typing import Literal
from pactgate import Call, NotAnswered


class Size(enum.Enum):
    SMALL = "small"
    LARGE = "large"


class Order(Struct):
    count: int
    size: Size = Size.SMALL


@tool
def order(call: Call) -> str:
    """Asks twice."""
    open(__file__).close()
    count = call.ask("How many?", int)
    chosen = call.ask("Which?", Literal["wide", "high"])
    return f"{count} {chosen}"


@tool
async def whole(call: Call) -> str:
    """Asks for all at once."""
    try:
        found = await call.ask("What?", Order)
    except NotAnswered as reason:
        return reason.reason
    return f"{found.count} {found.size.name}"


class Picky(Struct):
    count: int

    def __post_init__(self) -> None:
        raise KeyError("count")


@tool
def picky(call: Call) -> str:
    """Asks with a class of its own making."""
    return str(call.ask("How many?", Picky).count)


@tool
def never(call: Call) -> str:
    """Asks for what nobody can be asked."""
    return call.ask("What?", list[int])


@tool
def known(call: Call) -> str:
    """Says who calls."""
    call.log("looked", "debug")
    call.log("found", "warning")
    return f"{call.caller.name} {call.caller.groups}"
'''
CALLER = {"name": "ann", "client": "tests/1", "roles": [], "groups": ["sales"], "canBeAsked": True}


@pytest.fixture
def kit(tmp_path: Path) -> Iterator[Driven]:
    with Driven(write_tools(tmp_path, KIT), "--reports") as driven:
        yield driven


def begin(kit: Driven, tool: str, **caller: Any) -> dict[str, Any]:
    meta = {"dev.pactgate/caller": {**CALLER, **caller}}
    result: dict[str, Any] = kit.ask("tools/call", {"name": tool, "arguments": {}, "_meta": meta})["result"]
    return result


def asked(result: dict[str, Any]) -> dict[str, Any]:
    assert result["resultType"] == "input_required"
    (one,) = result["inputRequests"].values()
    assert one["method"] == "elicitation/create"
    params: dict[str, Any] = one["params"]
    return params


def answered(kit: Driven, result: dict[str, Any], **answer: Any) -> dict[str, Any]:
    (key,) = result["inputRequests"]
    params = {"name": "x", "requestState": result["requestState"], "inputResponses": {key: answer}}
    found: dict[str, Any] = kit.ask("tools/call", params)["result"]
    return found


def test_the_function_waits_where_it_asked_and_goes_on_with_the_answer(kit: Driven) -> None:
    first = begin(kit, "order")
    assert asked(first)["message"] == "How many?"
    assert asked(first)["requestedSchema"]["properties"] == {"answer": {"type": "integer"}}
    second = answered(kit, first, action="accept", content={"answer": 3})
    assert asked(second)["requestedSchema"]["properties"]["answer"]["enum"] == ["wide", "high"]
    last = answered(kit, second, action="accept", content={"answer": "high"})
    assert last["structuredContent"] == {"result": "3 high"}
    assert [one["kind"] for one in operations(last)] == []  # its own file is no effect


def test_a_class_asks_for_several_fields_in_one_form(kit: Driven) -> None:
    first = begin(kit, "whole")
    fields = asked(first)["requestedSchema"]["properties"]
    assert fields["size"]["enum"] == ["small", "large"]
    assert (fields["size"]["type"], fields["size"]["default"]) == ("string", "small")
    last = answered(kit, first, action="accept", content={"count": 2, "size": "large"})
    assert last["structuredContent"] == {"result": "2 LARGE"}


@pytest.mark.parametrize(("action", "reason"), [("decline", "declined"), ("cancel", "cancelled")])
def test_a_tool_learns_why_nobody_answered(kit: Driven, action: str, reason: str) -> None:
    assert answered(kit, begin(kit, "whole"), action=action)["structuredContent"] == {"result": reason}


def test_a_client_that_can_not_ask_is_never_sent_a_question(kit: Driven) -> None:
    assert begin(kit, "whole", canBeAsked=False)["structuredContent"] == {"result": "unavailable"}
    assert error(begin(kit, "order", canBeAsked=False))["code"] == "OPERATION_FAILED"


def test_an_answer_that_does_not_fit_and_a_question_nobody_can_be_asked_fail_the_call(kit: Driven) -> None:
    wrong = answered(kit, begin(kit, "whole"), action="accept", content={"count": "many"})
    assert error(wrong)["code"] == "INTERNAL_ERROR"
    assert error(begin(kit, "never"))["code"] == "INTERNAL_ERROR"


def test_a_class_that_fails_with_an_answer_fails_its_call_and_nothing_waits_on(kit: Driven) -> None:
    result = answered(kit, begin(kit, "picky"), action="accept", content={"count": 1})
    assert error(result)["code"] == "INTERNAL_ERROR"
    assert "KeyError" in kit.told[-1]["params"]["text"]
    kit.close()
    assert kit.code == 0


def test_answers_that_nothing_waits_for_are_refused_and_answers_left_out_are_asked_again(kit: Driven) -> None:
    stray = {"name": "order", "requestState": "x", "inputResponses": {}}
    assert kit.ask("tools/call", stray)["error"]["code"] == -32602
    first = begin(kit, "order")
    again = kit.ask("tools/call", {"name": "order", "requestState": first["requestState"], "inputResponses": {}})
    assert asked(again["result"])["message"] == "How many?"
    assert kit.ask("tools/call", {"name": "order", "requestState": first["requestState"]})["error"]["code"] == -32602


def test_a_tool_knows_who_calls_and_its_log_messages_name_the_request(kit: Driven) -> None:
    assert begin(kit, "known")["structuredContent"] == {"result": "ann ('sales',)"}
    (told,) = [one["params"] for one in kit.told if one["method"] == "notifications/message"]
    assert (told["level"], told["logger"], told["data"]) == ("warning", "known", "found")
    assert told["_meta"] == {"dev.pactgate/request": 2}
    kit.ask("logging/setLevel", {"level": "debug"})
    begin(kit, "known")
    assert [one["params"]["level"] for one in kit.told[-2:]] == ["debug", "warning"]


async def test_a_tool_that_tells_more_than_its_client_reads_waits(tmp_path: Path) -> None:
    loaded = load(write_tools(tmp_path, KIT))
    running, told = RunningCall(loaded.tools["known"], CallerFacts()), list[float]()
    running.on_progress = lambda done, total, message: told.append(done)
    count = 2 * MAX_UNTOLD

    def tell() -> None:
        for number in range(count):
            running.progress(number, None, None)

    teller = threading.Thread(target=tell)
    teller.start()
    teller.join(0.2)  # here nothing else runs, as when the client does not read
    assert teller.is_alive()
    assert told == []
    await asyncio.to_thread(teller.join)
    assert told == [*range(count)]


def test_calls_that_wait_leave_threads_to_the_others(kit: Driven) -> None:
    for _ in range(MAX_WAITING_THREADS - 1):
        asked(begin(kit, "order"))
    asked(begin(kit, "order", answerMs=300))
    asked(begin(kit, "whole"))  # an async tool holds no thread
    assert begin(kit, "known")["structuredContent"] == {"result": "ann ('sales',)"}
    # One that nobody comes back to in its time is cancelled, and gives its thread back.
    eventually_blocking(lambda: "result" in ask_order(kit))
    assert "Too many calls wait" in ask_order(kit)["error"]["message"]


def ask_order(kit: Driven) -> dict[str, Any]:
    return kit.ask("tools/call", {"name": "order", "_meta": {"dev.pactgate/caller": CALLER}})


def test_a_runner_ends_at_once_while_a_call_waits_for_an_answer(kit: Driven) -> None:
    begin(kit, "order")
    kit.close()
    assert kit.code in (0, 4)  # 4: the thread had not noticed yet that its call is cancelled
