"""What a call knows: one result at a time and its parts with it, one limit, and nothing that outlives it."""

from __future__ import annotations

import asyncio

import pytest

from pactgate.config.model import Config
from pactgate.config.sections.limits import Timeouts
from pactgate.core.values import Tool
from pactgate.pipeline.call import FRAME_BYTES, Call
from pactgate.pipeline.tool_policy import Rulebook
from tests.support.callers import call as request_of
from tests.support.callers import context

TOOL = Tool("files", "read", "files.read", "files__read", b"{}", b"{}", "0")
PLAIN = b'{"content":[]}'


async def forever() -> None:
    await asyncio.Event().wait()


def made(**timeouts: int) -> Call:
    return Call(context(), request_of("x"), Rulebook(Config(timeouts=Timeouts(**timeouts)), b"{}"))


def test_a_result_of_the_ordinary_shape_comes_with_its_parts_until_it_is_replaced() -> None:
    call = made()
    call.take(PLAIN)
    assert call.plain is not None
    call.replace(b'{"content":[],"cut":true}')
    assert call.plain is None
    call.take(b"no JSON")
    assert (call.result, call.plain) == (b"no JSON", None)


def test_a_call_is_bound_to_the_rules_of_its_tool_and_to_a_shorter_limit_of_its_caller() -> None:
    call = made()
    call.caller_limit_ms = 5
    call.bind(TOOL)
    assert call.bound.tool is call.tool
    assert call.limit.ms == 5
    assert call.ctx.tool is call.tool


def test_the_frame_of_an_answer_is_counted_with_its_id() -> None:
    assert made().frame_bytes == FRAME_BYTES + 1


async def test_a_call_that_has_to_wait_does_so_under_its_limit() -> None:
    call = made(default_timeout_ms=100)
    with pytest.raises(asyncio.CancelledError):
        await call.over(forever())
    assert call.has_run_out()
    call.close()


async def test_a_call_that_was_begun_before_it_had_to_wait_has_only_the_rest_of_its_time() -> None:
    call = made(default_timeout_ms=60_000)
    call.sent_at = asyncio.get_running_loop().time() - 61
    with pytest.raises(asyncio.CancelledError):
        await call.over(forever())
    assert call.has_run_out()
    call.close()
