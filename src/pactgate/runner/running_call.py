"""One call of a tool, over as many requests of its client as it takes: the function goes on while the person at the client is asked.

A question ends the request with `input_required`; the answers come with the next request, which names the call by its state. A call that
nobody comes back to is cancelled. Must not: read or write the wire; the server does.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Final, Literal

import msgspec
from msgspec import Raw, Struct

from pactgate.protocol.era_bridge import ELICIT, INPUT_REQUIRED, MAX_IN_A_ROUND, STATE
from pactgate.protocol.messages import encode_json
from pactgate.runner.calls import THREADS, CallResult
from pactgate.runner.json_types import convert, schema_of
from pactgate.runner.signature import ServedTool
from pactgate.tool_values import Call, LogLevel, NotAnswered, ToolCaller

MAX_WAITING: Final = 256
MAX_WAITING_THREADS: Final = THREADS // 2
"""A tool that is not `async` keeps its thread while it waits for an answer; the others are for calls that need no person."""
MAX_UNTOLD: Final = 1000
"""Messages of one call that wait to be written."""
_ANSWER: Final = "answer"
_PRIMITIVES: Final = frozenset({"string", "integer", "number", "boolean"})

OnLog = Callable[[LogLevel, str], None]
OnProgress = Callable[[float, float | None, str | None], None]


class CallerFacts(ToolCaller, frozen=True, rename="camel"):
    """What the gateway says of whose call it is."""

    can_be_asked: bool = False
    answer_ms: int = 300_000
    """How long the client may take to answer."""


class _Answer(Struct):
    action: Literal["accept", "decline", "cancel"] = "cancel"
    content: Any = None


class _Question(Struct, eq=False):
    kind: Any
    params: dict[str, Any]
    is_wrapped: bool
    answer: Future[Any]


class RunningCall:
    """The host of one `Call`, and the task that runs its function. Who is told progress and log messages changes with each request."""

    def __init__(self, tool: ServedTool, facts: CallerFacts) -> None:
        self.tool = tool.name
        self.holds_thread = not tool.is_async
        self.answer_s = facts.answer_ms / 1000
        self.call = Call(self, facts)
        self.on_progress: OnProgress | None = None
        self.on_log: OnLog | None = None
        self._can_ask = facts.can_be_asked
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._room = threading.Semaphore(MAX_UNTOLD)
        self._questions: dict[str, _Question] = {}
        self._asked = asyncio.Event()
        self._task: asyncio.Task[CallResult] | None = None

    def begin(self, work: Coroutine[Any, Any, CallResult]) -> None:
        self._task = self._loop.create_task(work)

    async def step(self) -> CallResult | None:
        """The result, or None when the client has to be asked first. Cancelling ends the call."""
        assert self._task is not None, "the call has begun"
        asked = self._loop.create_task(self._asked.wait())
        try:
            await asyncio.wait({self._task, asked}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self.end()
            raise
        finally:
            asked.cancel()
        return self._task.result() if self._task.done() else None

    def input_required(self, state: str) -> bytes:
        """The open questions as a result."""
        self._asked.clear()
        asked = {key: {"method": ELICIT, "params": one.params} for key, one in self._questions.items()}
        return encode_json({"resultType": INPUT_REQUIRED, "inputRequests": asked, STATE: state})

    def answer(self, responses: Raw | None) -> None:
        """Take the answers of the client; what it left out is asked again."""
        try:
            given = msgspec.json.decode(responses or b"{}", type=dict[str, _Answer])
        except msgspec.DecodeError:
            given = {}
        for key, one in given.items():
            question = self._questions.pop(key, None)
            if question is not None and not question.answer.cancelled():  # an async tool may have given up
                _settle(question, one)
        if self._questions:
            self._asked.set()

    async def end(self) -> None:
        """Cancel the call, and wait for the end of its task."""
        self.call.cancel()
        for question in self._questions.values():
            if not question.answer.cancelled():
                question.answer.set_exception(NotAnswered("cancelled"))
        self._questions.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    # What the tool can do (`CallHost`), from any thread.

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        on_progress = self.on_progress
        if on_progress is not None:
            self._tell(on_progress, done, total, message)

    def log(self, level: LogLevel, message: str) -> None:
        on_log = self.on_log
        if on_log is not None:
            self._tell(on_log, level, message)

    def _tell(self, tell: Callable[..., None], *said: Any) -> None:
        """Tell the client. A thread that tells faster than the client reads waits for it, as the loop does."""
        if threading.get_ident() == self._loop_thread:
            tell(*said)
            return
        self._room.acquire()
        self._loop.call_soon_threadsafe(self._told, tell, said)

    def _told(self, tell: Callable[..., None], said: tuple[Any, ...]) -> None:
        self._room.release()
        tell(*said)

    def ask(self, question: str, kind: Any) -> Future[Any]:
        params, is_wrapped = _elicitation(question, kind)
        answer: Future[Any] = Future()
        if self._can_ask:
            self._loop.call_soon_threadsafe(self._put, _Question(kind, params, is_wrapped, answer))
        else:
            answer.set_exception(NotAnswered("unavailable"))
        return answer

    def _put(self, question: _Question) -> None:
        if self.call.is_cancelled or len(self._questions) >= MAX_IN_A_ROUND:
            question.answer.set_exception(NotAnswered("cancelled"))
            return
        self._questions[secrets.token_hex(4)] = question
        self._asked.set()


class WaitingCalls:
    """The calls whose clients are being asked, by their state. Each waits as long as its client may take."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[RunningCall, asyncio.TimerHandle]] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def hold(self, running: RunningCall) -> str | None:
        """The state that finds the call again; None where too many wait already."""
        threads = sum(held.holds_thread for held, _ in self._held.values())
        if len(self._held) >= MAX_WAITING or (running.holds_thread and threads >= MAX_WAITING_THREADS):
            return None
        state = secrets.token_urlsafe(16)
        self._held[state] = running, asyncio.get_running_loop().call_later(running.answer_s, self._give_up, state)
        return state

    def take(self, state: object) -> RunningCall | None:
        if not isinstance(state, str) or state not in self._held:
            return None
        running, timer = self._held.pop(state)
        timer.cancel()
        return running

    async def close(self) -> None:
        for state in tuple(self._held):
            self._give_up(state)
        if self._ending:
            await asyncio.wait(self._ending)

    def _give_up(self, state: str) -> None:
        running = self.take(state)
        if running is not None:
            task = asyncio.get_running_loop().create_task(running.end())
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)


def _settle(question: _Question, given: _Answer) -> None:
    if given.action != "accept":
        question.answer.set_exception(NotAnswered("declined" if given.action == "decline" else "cancelled"))
        return
    content = given.content
    if question.is_wrapped:
        content = content.get(_ANSWER) if isinstance(content, dict) else None
    try:
        question.answer.set_result(convert(content, question.kind))
    except Exception as problem:  # noqa: BLE001 - code of the tool's author reads the answer, and the tool waits for it
        question.answer.set_exception(problem)


def _elicitation(question: str, kind: Any) -> tuple[dict[str, Any], bool]:
    """The params of `elicitation/create`, and whether the answer is the only field of an object. Raises TypeError."""
    schema = schema_of(kind)
    is_wrapped = schema.get("type") != "object"
    if is_wrapped:
        schema = {"type": "object", "properties": {_ANSWER: schema}, "required": [_ANSWER]}
    fields = {name: _field(name, about, schema) for name, about in schema.get("properties", {}).items()}
    form = {"type": "object", "properties": fields, "required": schema.get("required", [])}
    return {"mode": "form", "message": question, "requestedSchema": form}, is_wrapped


def _field(name: str, about: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """A field as clients can show it: no objects, no lists."""
    found = {**schema.get("$defs", {}).get(about.get("$ref", "").rpartition("/")[2], {}), **about}
    found.pop("$ref", None)
    found.pop("$defs", None)
    if "enum" in found:
        found.setdefault("type", "string")
    if found.get("type") not in _PRIMITIVES:
        raise TypeError(
            f"A person can't be asked for {name!r}: only texts, numbers, yes or no, and choices can be asked for."
        )
    return found
