"""One call: its own arguments, its own end, a result whatever happened."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from msgspec import Struct

from pactgate.runner.calls import CallResult, CallRunner
from pactgate.runner.signature import ServedTool, serve
from pactgate.tool_values import Call
from pactgate.tools import MARK, Retryable, ToolError, tool
from tests.support.eventually import eventually


class Item(Struct):
    tags: list[str]


def served(function: Callable[..., Any], **words: Any) -> ServedTool:
    given = {"category": "query", "idempotent": True, "effects": [], **words}
    found = serve(getattr(tool(**given)(function), MARK))
    assert isinstance(found, ServedTool), found
    return found


@pytest.fixture
async def calls() -> AsyncIterator[CallRunner]:
    made = CallRunner(refuses=False, max_result_bytes=10_000, on_late=lambda *_: None, on_stuck=lambda: None)
    yield made
    made.close()


async def answer(
    calls: CallRunner, function: Callable[..., Any], arguments: Any = None, **words: Any
) -> dict[str, Any]:
    ending = await ended(calls, function, arguments, **words)
    found: dict[str, Any] = json.loads(ending.result)
    return found


async def ended(calls: CallRunner, function: Callable[..., Any], arguments: Any = None, **words: Any) -> CallResult:
    async with asyncio.timeout(5):
        return await calls.run(served(function, **words), json.dumps(arguments or {}).encode(), Call())


def code_of(result: dict[str, Any]) -> str:
    assert result["isError"]
    return str(result["_meta"]["dev.pactgate/error"]["code"])


@pytest.mark.requirement("S2/MCP-005")
async def test_calls_that_share_arguments_share_no_object(calls: CallRunner) -> None:
    meeting = threading.Barrier(8)
    seen: list[Item] = []

    def grow(item: Item) -> Item:
        """Changes what it was given."""
        meeting.wait(5)
        item.tags.append("mine")
        seen.append(item)
        return item

    arguments = {"item": {"tags": ["yours"]}}
    results = await asyncio.gather(*(answer(calls, grow, arguments) for _ in range(8)))
    assert [one["structuredContent"] for one in results] == [{"tags": ["yours", "mine"]}] * 8
    assert len({id(item.tags) for item in seen}) == 8
    assert arguments == {"item": {"tags": ["yours"]}}


@pytest.mark.requirement("S2/MCP-001")
@pytest.mark.parametrize("bad", [{"id": "1"}, {"tags": [1]}, [], object(), {"tags": "x"}])
async def test_a_result_that_does_not_fit_is_never_a_success(calls: CallRunner, bad: Any) -> None:
    def give() -> Item:
        """Gives something else."""
        return bad  # type: ignore[no-any-return]

    assert code_of(await answer(calls, give)) == "INVALID_OUTPUT"


@pytest.mark.requirement("S2/MCP-001")
async def test_arguments_that_do_not_fit_never_reach_the_tool(calls: CallRunner) -> None:
    ran: list[int] = []

    def take(a: int) -> None:
        """Takes."""
        ran.append(a)

    assert code_of(await answer(calls, take, {"a": "x"})) == "INVALID_INPUT"
    assert ran == []


@pytest.mark.requirement("S2/MCP-003")
@pytest.mark.parametrize(
    ("raised", "code", "undeclared"),
    [
        (ToolError("GONE", "Not there.", {"id": 4}), "GONE", None),
        (ToolError("NOT_FOUND", "Not there."), "NOT_FOUND", None),
        (ToolError("MADE_UP", "Odd."), "OPERATION_FAILED", "MADE_UP"),
        (ToolError("", ""), "OPERATION_FAILED", "(empty)"),
        (KeyError("secret"), "INTERNAL_ERROR", None),
        (SystemExit(3), "INTERNAL_ERROR", None),
        (KeyboardInterrupt(), "INTERNAL_ERROR", None),
        (asyncio.CancelledError(), "INTERNAL_ERROR", None),
        (RecursionError(), "INTERNAL_ERROR", None),
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
async def test_whatever_a_tool_raises_becomes_a_standard_or_declared_code(
    calls: CallRunner,
    raised: BaseException,
    code: str,
    undeclared: str | None,
    is_async: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail() -> None:
        """Fails."""
        raise raised

    async def fail_async() -> None:
        """Fails."""
        raise raised

    result = await answer(calls, fail_async if is_async else fail, errors={"GONE": Retryable("It went away.")})
    said = result["_meta"]["dev.pactgate/error"]
    assert (said["code"], said.get("undeclaredCode")) == (code, undeclared)
    assert said["message"].strip()
    assert "Traceback" not in json.dumps(result)
    assert "secret" not in json.dumps(result)
    if code == "INTERNAL_ERROR":
        assert "Traceback" in capsys.readouterr().err or isinstance(raised, asyncio.CancelledError)


async def test_a_crash_is_kept_for_the_author(calls: CallRunner, capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        """Fails."""
        raise KeyError("where")

    crash = (await ended(calls, fail)).crash
    assert crash is not None
    assert "KeyError: 'where'" in crash
    assert crash in capsys.readouterr().err


async def test_details_are_bounded_and_always_json(calls: CallRunner) -> None:
    def fail(how: str) -> None:
        """Fails."""
        raise ToolError("NOT_FOUND", "No.", {"much": "x" * 20_000} if how == "much" else {"odd": object()})

    for how in ("much", "odd"):
        assert "detailsLost" in (await answer(calls, fail, {"how": how}))["_meta"]["dev.pactgate/error"]["details"]


async def test_a_result_too_large_for_the_wire_is_a_failure_and_costs_nobody_else_anything(calls: CallRunner) -> None:
    def give(size: int) -> str:
        """Gives."""
        return "x" * size

    assert code_of(await answer(calls, give, {"size": 11_000})) == "OPERATION_FAILED"
    assert not (await answer(calls, give, {"size": 100}))["isError"]


async def test_texts_are_shown_as_they_are_and_other_values_as_json(calls: CallRunner) -> None:
    def text() -> str:
        """Text."""
        return 'a "b"'

    def number() -> int:
        """Number."""
        return 7

    def nothing() -> None:
        """Nothing."""

    assert (await answer(calls, text))["content"][0]["text"] == 'a "b"'
    assert (await answer(calls, number))["content"][0]["text"] == '{"result":7}'
    assert (await answer(calls, nothing))["content"] == [{"type": "text", "text": "Done."}]


async def test_when_only_abandoned_threads_are_left_the_runner_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    stuck = asyncio.Event()
    began, go = threading.Event(), threading.Event()
    calls = CallRunner(refuses=False, max_result_bytes=1000, on_late=lambda *_: None, on_stuck=stuck.set, threads=1)

    def hang() -> None:
        """Hangs."""
        began.set()
        go.wait(5)

    task = asyncio.create_task(calls.run(served(hang), b"{}", Call()))
    await asyncio.to_thread(began.wait, 5)
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    assert stuck.is_set()
    assert calls.abandoned == 1
    go.set()
    await eventually(lambda: not calls.abandoned)
    calls.close()
