"""What a call knows: one result at a time and its parts with it, one limit, and nothing that outlives it."""

from __future__ import annotations

import asyncio
from typing import Any

from pactgate.config.model import Config
from pactgate.config.sections.limits import Timeouts
from pactgate.core.values import Tool
from pactgate.pipeline.call import Call
from pactgate.pipeline.tool_policy import PolicyTable
from pactgate.protocol.messages import Response
from pactgate.protocol.simple_result import read_simple
from tests.support.callers import call as request_of
from tests.support.callers import call_of, context
from tests.support.eventually import eventually

TOOL = Tool("files", "read", "files.read", "files__read", b"{}", b"{}", "0")
SIMPLE = b'{"content":[]}'


def made(**timeouts: Any) -> Call:
    policies = PolicyTable(Config(timeouts=Timeouts(**timeouts)), b"{}")
    return call_of(context(), request_of("x"), policies)


def test_a_result_of_the_ordinary_shape_comes_with_its_parts_until_it_is_replaced() -> None:
    call = made()
    call.take(Response(1, simple=read_simple(SIMPLE)))
    assert call.simple is not None
    assert (call.result, call.result_bytes) == (SIMPLE, len(SIMPLE))
    call.replace(b'{"content":[],"cut":true}')
    assert (call.simple, call.result_bytes) == (None, len(b'{"content":[],"cut":true}'))
    call.take(Response(1, b"no JSON"))
    assert (call.result, call.simple) == (b"no JSON", None)


def test_the_size_of_a_result_in_parts_is_never_underestimated() -> None:
    result = b'{"content":[{"type":"text","text":"x"}],"structuredContent":{"a":1},"isError":false,"_meta":{"k":1}}'
    call = made()
    call.take(Response(1, simple=read_simple(result)))
    assert call.result_bytes >= len(result)


def test_a_call_is_bound_to_the_policy_of_its_tool_and_to_a_shorter_limit_of_its_caller() -> None:
    call = made()
    call.caller_limit_ms = 5
    call.bind(TOOL, None)
    assert call.policy.tool is call.tool
    assert call.limit.ms == 5
    assert call.ctx.tool is call.tool


async def test_a_call_that_has_to_wait_does_so_under_its_limit() -> None:
    call, interrupted = made(default_timeout_ms=100), asyncio.Event()
    call.ctx.interrupt = interrupted.set
    await call.with_deadline(asyncio.sleep(0))
    assert not call.has_timed_out
    await eventually(interrupted.is_set)
    assert call.has_timed_out
    call.close()


async def test_once_the_tool_is_known_its_limit_counts_from_the_same_beginning() -> None:
    call, interrupted = made(default_timeout_ms=60_000), asyncio.Event()
    call.ctx.interrupt = interrupted.set
    await call.with_deadline(asyncio.sleep(0))
    call.caller_limit_ms = 10
    call.bind(TOOL, None)
    await call.with_deadline(asyncio.sleep(0))
    await eventually(interrupted.is_set)
    call.close()


async def test_a_call_that_has_ended_is_not_interrupted_any_more() -> None:
    call, interrupted = made(default_timeout_ms=100), asyncio.Event()
    call.ctx.interrupt = interrupted.set
    await call.with_deadline(asyncio.sleep(0))
    call.close()
    await asyncio.wait({asyncio.ensure_future(interrupted.wait())}, timeout=0.15)
    assert not interrupted.is_set()
