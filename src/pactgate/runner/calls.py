"""Runs one call of one tool, with its own copy of the arguments and its own effect watch. Every call ends in a result.

Functions that are not `async` run in a bounded pool of threads. A cancelled one is abandoned, and when abandoned calls hold every thread
the runner exits, to be started again. An exception of a tool becomes INTERNAL_ERROR without its text.
Enforces S2/MCP-001 and S2/MCP-003 on the tool's side, and S2/MCP-005: no two calls share an object.
"""

from __future__ import annotations

import asyncio
import base64
import sys
import traceback
from collections.abc import Callable
from concurrent.futures import Future as Job
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, Final

import msgspec
from msgspec import Struct

from pactgate.core.contract import ERROR_KEY, OPERATIONS_KEY, ContractError, Operation
from pactgate.core.display import cut
from pactgate.core.failures import ErrorCode
from pactgate.runner.json_types import encode
from pactgate.runner.observe import EffectWatch, UndeclaredEffectError, current
from pactgate.runner.signature import ServedTool
from pactgate.tool_values import Call, Image, Message, NotAnswered
from pactgate.tools import ToolError

THREADS: Final = 32
_STANDARD: Final = frozenset(code.value for code in ErrorCode)
_MESSAGE_CHARS: Final = 2000
_DETAILS_BYTES: Final = 16_384
_DONE: Final = "Done."


class CallResult(Struct, frozen=True):
    """The result of a call. `crash` is the traceback of an undeclared exception."""

    result: bytes
    crash: str | None = None


class CallRunner:
    """Runs the calls of one runner. `on_stuck` is called when abandoned calls hold every thread."""

    def __init__(
        self,
        *,
        refuses: bool,
        max_result_bytes: int,
        on_late: Callable[[EffectWatch, Operation], None],
        on_stuck: Callable[[], None],
        threads: int = THREADS,
    ) -> None:
        self._refuses = refuses
        self._max_result_bytes = max_result_bytes
        self._on_late = on_late
        self._on_stuck = on_stuck
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="tool")
        self.abandoned = 0
        """How many threads are held by what nobody waits for any more."""

    async def run(self, tool: ServedTool, arguments: bytes, call: Call) -> CallResult:
        """Run one call. Raises nothing but CancelledError, which ends the call."""
        watch = self._watch(tool)
        outcome = await self._observed(tool, arguments, call, watch)
        return self._to_result(tool, outcome, watch.operations())

    async def read(self, offer: ServedTool, arguments: bytes) -> Any:
        """The value of a resource or a prompt. Raises ContractFault. What it must not do is reported like what comes too late."""
        watch = self._watch(offer)
        outcome = await self._observed(offer, arguments, Call(), watch)
        watch.tell_unanswered()
        if isinstance(outcome, _Returned):
            return outcome.value
        raise ContractFault(_error_of(offer, outcome))

    def _watch(self, offer: ServedTool) -> EffectWatch:
        return EffectWatch(offer.name, offer.contract.effects, refuses=self._refuses, on_late=self._on_late)

    async def _observed(self, tool: ServedTool, arguments: bytes, call: Call, watch: EffectWatch) -> Any:
        """What the function returned, or its exception."""
        try:
            given = tool.arguments.decode(arguments)
        except msgspec.DecodeError as problem:
            return ContractFault(ContractError(ErrorCode.INVALID_INPUT, f"Invalid arguments: {problem}."))
        named = {name: getattr(given, name) for name in tool.names}
        if tool.call_parameter is not None:
            named[tool.call_parameter] = call
        try:
            return await self._outcome(tool, named, call, watch)
        except asyncio.CancelledError:
            watch.tell_unanswered()
            raise
        finally:
            watch.has_ended = True

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _outcome(self, tool: ServedTool, named: dict[str, Any], call: Call, watch: EffectWatch) -> Any:
        """The value that the function returned, or its exception."""
        context = copy_context()
        context.run(current.set, watch)
        job: Job[Any] | None = None
        if tool.is_async:
            work: asyncio.Future[Any] = asyncio.get_running_loop().create_task(_awaited(tool, named), context=context)
        else:
            job = context.run(self._pool.submit, tool.function, **named)
            work = asyncio.wrap_future(job)
        try:
            await asyncio.wait({work})
        except asyncio.CancelledError:
            call.cancel()
            work.cancel()
            if job is not None and not job.cancel() and not job.done():
                self._abandon(job)
            raise
        if work.cancelled():
            return RuntimeError("the tool cancelled itself")
        return work.exception() or _Returned(work.result())

    def _abandon(self, job: Job[Any]) -> None:
        """Abandon a call: a thread can't be stopped from outside, so it is counted."""
        loop = asyncio.get_running_loop()
        self.abandoned += 1
        job.add_done_callback(lambda _: loop.call_soon_threadsafe(self._thread_returned))
        if self.abandoned >= self._threads:
            self._on_stuck()

    def _thread_returned(self) -> None:
        self.abandoned -= 1

    def _to_result(self, tool: ServedTool, outcome: Any, seen: list[Operation]) -> CallResult:
        if isinstance(outcome, _Returned):
            return self._returned(tool, outcome.value, seen)
        crash = None
        if not isinstance(outcome, ToolError | UndeclaredEffectError | NotAnswered | ContractFault):
            crash = "".join(traceback.format_exception(outcome))
        return CallResult(_failed(_error_of(tool, outcome), seen), crash)

    def _returned(self, tool: ServedTool, value: Any, seen: list[Operation]) -> CallResult:
        if tool.result is None and not tool.has_images:
            return CallResult(_succeeded([_block(_DONE)], None, seen))
        try:
            if tool.result is None:
                result = _succeeded([_block(one) for one in _as_list(value)], None, seen)
            else:
                structured = encode({"result": value} if tool.is_wrapped else value)
                tool.result.decode(structured)
                result = _succeeded(
                    [_block(value if isinstance(value, str) else structured.decode())], structured, seen
                )
        except (TypeError, ValueError, RecursionError) as problem:
            message = f"The tool {tool.name} returned something that does not fit what it declares: {problem}."
            return CallResult(_failed(ContractError(ErrorCode.INVALID_OUTPUT, message), seen))
        if len(result) > self._max_result_bytes:
            message = f"The result of {tool.name} takes {len(result)} bytes; {self._max_result_bytes} can be sent."
            return CallResult(_failed(ContractError(ErrorCode.OPERATION_FAILED, message), seen))
        return CallResult(result)


class ContractFault(Exception):  # noqa: N818 - it carries a ContractError
    """A call that failed in words of its contract."""

    def __init__(self, error: ContractError) -> None:
        super().__init__(error.message)
        self.error = error


class _Returned:
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


async def _awaited(tool: ServedTool, named: dict[str, Any]) -> Any:
    try:
        return await tool.function(**named)
    except (SystemExit, KeyboardInterrupt) as ending:  # these would end the loop, and with it every other call
        raise RuntimeError(f"the tool tried to end the process: {ending!r}") from ending


def _error_of(tool: ServedTool, outcome: BaseException) -> ContractError:
    """The failure in words of the contract; the traceback of an exception that nobody declared is printed."""
    if isinstance(outcome, ContractFault):
        return outcome.error
    if isinstance(outcome, ToolError):
        return _as_error(tool, outcome)
    if isinstance(outcome, UndeclaredEffectError):
        return ContractError(ErrorCode.PERMISSION_DENIED, str(outcome))
    if isinstance(outcome, NotAnswered):
        return ContractError(ErrorCode.OPERATION_FAILED, str(outcome), {"reason": outcome.reason})
    traceback.print_exception(outcome)
    sys.stderr.flush()
    message = (
        f"The {tool.kind} {tool.name} failed unexpectedly. Its author finds the reason on the server's standard error."
    )
    return ContractError(ErrorCode.INTERNAL_ERROR, message)


def _as_error(tool: ServedTool, error: ToolError) -> ContractError:
    """A declared or standard code as it is; any other is mapped, and named for whoever looks into it."""
    message = cut(error.message.strip() or f"{tool.name} failed: {error.code}", _MESSAGE_CHARS)
    details = _fit(error.details)
    if error.code in _STANDARD or tool.contract.declared(error.code) is not None:
        return ContractError(error.code, message, details)
    print(f"{tool.name}: the code {error.code!r} is neither standard nor declared", file=sys.stderr, flush=True)
    return ContractError(ErrorCode.OPERATION_FAILED, message, details, cut(error.code, 64) or "(empty)")


def _fit(details: dict[str, Any]) -> dict[str, Any]:
    try:
        text = encode(details)
    except (TypeError, ValueError, RecursionError) as problem:
        return {"detailsLost": f"They can't be written as JSON: {cut(str(problem), 200)}."}
    return (
        msgspec.json.decode(text) if len(text) <= _DETAILS_BYTES else {"detailsLost": f"They have {len(text)} bytes."}
    )


def _as_list(value: Any) -> list[Any]:
    return [*value] if isinstance(value, list | tuple) else [value]


def _block(value: Any) -> dict[str, Any]:
    """A block of content: an image, or text."""
    if isinstance(value, Image):
        return {"type": "image", "data": base64.b64encode(value.data).decode(), "mimeType": value.mime_type}
    return {"type": "text", "text": value if isinstance(value, str) else encode(value).decode()}


def contents_of(offer: ServedTool, uri: str, value: Any) -> dict[str, Any]:
    """What a resource returned, as the result of `resources/read`. Raises TypeError or ValueError for what can't be sent."""
    about = {"uri": uri, **({"mimeType": offer.mime_type} if offer.mime_type else {})}
    if isinstance(value, Image):
        about, value = {"mimeType": value.mime_type, **about}, value.data
    if isinstance(value, bytes):
        return {"contents": [{**about, "blob": base64.b64encode(value).decode()}]}
    if not isinstance(value, str):
        about, value = {"mimeType": "application/json", **about}, encode(value).decode()
    return {"contents": [{**about, "text": value}]}


def messages_of(value: Any) -> dict[str, Any]:
    """What a prompt returned, as the result of `prompts/get`. Raises TypeError or ValueError for what can't be sent."""
    found = [one if isinstance(one, Message) else Message(one) for one in _as_list(value)]
    return {"messages": [{"role": one.role, "content": _block(one.text)} for one in found]}


def _succeeded(content: list[dict[str, Any]], structured: bytes | None, seen: list[Operation]) -> bytes:
    result: dict[str, Any] = {"content": content}
    if structured is not None:
        result["structuredContent"] = msgspec.Raw(structured)
    return encode({**result, "isError": False, "_meta": {OPERATIONS_KEY: seen}})


def _failed(error: ContractError, seen: list[Operation]) -> bytes:
    meta = {ERROR_KEY: error, OPERATIONS_KEY: seen}
    return encode({"content": [{"type": "text", "text": error.message}], "isError": True, "_meta": meta})
