"""The protocol side of the runner: an MCP server of either era on two descriptors, for the tools, resources and prompts of one file.

Requests run concurrently, within a bound. The output of tools goes to stderr, and their stdin is empty, because the protocol has stdin
and stdout. A file that can't be loaded answers every list with an error until it can. Must not: answer a cancelled request, or let one
call wait for another.
"""

from __future__ import annotations

import asyncio
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Raw

from pactgate import __version__
from pactgate.core.contract import CALLER_KEY, REPORT_METHOD, REQUEST_KEY, Operation, Report
from pactgate.core.display import cut
from pactgate.core.failures import ErrorCode
from pactgate.protocol import legacy, messages, modern, versions
from pactgate.protocol.era_bridge import RESPONSES, STATE
from pactgate.protocol.framing import LineDecoder, OversizedError
from pactgate.protocol.messages import Notification, Rejection, Request, encode_json
from pactgate.protocol.versions import MODERN_VERSIONS, Era
from pactgate.runner.calls import CallRunner, ContractFault, contents_of, messages_of
from pactgate.runner.load import LoadedTools
from pactgate.runner.observe import EffectWatch
from pactgate.runner.running_call import CallerFacts, OnLog, OnProgress, RunningCall, WaitingCalls
from pactgate.runner.signature import ServedTool
from pactgate.runner.uri_template import find_by_uri
from pactgate.tool_values import LogLevel

MAX_RUNNING: Final = 256
MAX_MESSAGE_BYTES: Final = 128 * 1024 * 1024
MAX_RESULT_BYTES: Final = 7 * 1024 * 1024
"""Well below the gateway's bound for one line."""
FRAME_BYTES: Final = 4096
"""More than a response has besides its result: an id and the server info."""
READ_BYTES: Final = 64 * 1024
REPORT_CHARS: Final = 3000
LOG_CHARS: Final = 64 * 1024
STUCK: Final = 3
_MEMBERS: Final = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
_RANK: Final = {level: rank for rank, level in enumerate(modern.LOG_LEVELS)}


class RunnerServer:
    """Reads and writes JSON-RPC lines. `reports`: the client wants notifications about what no response can carry."""

    def __init__(
        self,
        path: Path,
        write: Callable[[bytes], None],
        *,
        refuses: bool = False,
        reports: bool = False,
        max_result_bytes: int = MAX_RESULT_BYTES,
        on_stuck: Callable[[], None],
    ) -> None:
        self._info = {"name": path.stem, "version": __version__}
        self._write = write
        self._reports = reports
        self._phase = legacy.Phase.NEW
        self._version = versions.LATEST_LEGACY
        self._box: LoadedTools | None = None
        self._problem: str | None = None
        self._loop = asyncio.get_running_loop()
        self.is_loaded = asyncio.Event()
        self.calls = CallRunner(
            refuses=refuses, max_result_bytes=max_result_bytes - FRAME_BYTES, on_late=self.tell_late, on_stuck=on_stuck
        )
        self._running: dict[str | int, asyncio.Task[None]] = {}
        self._waiting = WaitingCalls()
        self._log_level = "info"

    def offer(self, box: LoadedTools) -> None:
        """Serve these tools from now on."""
        is_new, self._box, self._problem = self.is_loaded.is_set(), box, None
        self.is_loaded.set()
        if is_new:
            for entries in ("tools", "prompts", "resources"):
                self._notify(f"notifications/{entries}/list_changed")
            self._report(Report("reloaded", text=f"{len(box.tools)} tools"))

    def refuse(self, problem: str) -> None:
        """The file can't be loaded as it is now. Tools that were loaded before stay."""
        self._problem = problem
        was_loaded = self.is_loaded.is_set()
        self.is_loaded.set()
        if was_loaded and self._box is not None:
            self._report(Report("not_reloaded", text=cut(problem, REPORT_CHARS)))

    def tell_late(self, watch: EffectWatch, done: Operation) -> None:
        """Report an undeclared operation after the response of its call. Callable from any thread."""
        report = Report("late_operations", watch.tool, operations=(done,))
        self._loop.call_soon_threadsafe(self._report, report)

    def take(self, line: bytes) -> None:
        message = messages.decode(line)
        if isinstance(message, Rejection):
            self._write(messages.encode_rejection(message))
        elif isinstance(message, Request):
            self._take_request(message)
        elif isinstance(message, Notification):
            self._take_notice(message)

    def _take_request(self, request: Request) -> None:
        era = Era.MODERN if modern.has_envelope(request) else Era.LEGACY
        refused = self._admit(request, era)
        if refused is not None:
            self._write(messages.encode_rejection(refused))
            return
        task = self._loop.create_task(self._answer(request, era))
        self._running[request.key] = task
        task.add_done_callback(lambda done: self._answered(request, done))

    def _answered(self, request: Request, task: asyncio.Task[None]) -> None:
        """Answer the request also after an internal error."""
        self._running.pop(request.key, None)
        mistake = None if task.cancelled() else task.exception()
        if mistake is not None and not isinstance(mistake, BrokenPipeError):
            traceback.print_exception(mistake)
            self._write(messages.encode_error(request.id, messages.INTERNAL_ERROR, "Internal error."))

    def _admit(self, request: Request, era: Era) -> Rejection | None:
        if request.key in self._running:
            return Rejection(messages.INVALID_REQUEST, "A request with this id is still running.", request.id)
        if len(self._running) >= MAX_RUNNING:
            return Rejection(messages.INTERNAL_ERROR, f"{MAX_RUNNING} requests are running already.", request.id)
        if era is Era.MODERN:
            route = modern.classify(request, None)
            return route if isinstance(route, Rejection) else None
        if request.method == "server/discover":
            return Rejection(
                messages.INVALID_PARAMS,
                f"The _meta needs {modern.PROTOCOL_VERSION_KEY} and {modern.CAPABILITIES_KEY}.",
                request.id,
            )
        outcome = legacy.step(self._phase, request)
        if outcome.rejection is not None:
            return outcome.rejection
        if request.method == legacy.INITIALIZE:
            asked = legacy.read_initialize(request)
            if isinstance(asked, Rejection):
                return asked
            self._version = versions.negotiate(asked.version)
        self._phase = outcome.phase
        return None

    def _take_notice(self, notice: Notification) -> None:
        if notice.method == "notifications/cancelled":
            key = _cancelled(notice.params)
            task = self._running.get(key) if key is not None else None
            if task is not None:
                task.cancel()
        elif self._phase is not legacy.Phase.NEW:
            self._phase = legacy.step(self._phase, notice).phase

    async def _answer(self, request: Request, era: Era) -> None:
        try:
            result = await self._result(request)
        except _RequestError as refused:
            self._write(messages.encode_error(request.id, refused.code, refused.message))
            return
        if era is Era.MODERN:
            is_cacheable = request.method in versions.CACHEABLE
            members = modern.complete(messages.members(result), encode_json(self._info), cacheable=is_cacheable)
            result = encode_json(members)
        self._write(messages.encode_result(request.id, result))

    async def _result(self, request: Request) -> bytes:
        method, params = request.method, messages.members(request.params or b"{}")
        if method == "tools/call":
            return await self._call(request, params)
        if method in _MEMBERS:
            if "cursor" in params:
                raise _RequestError(messages.INVALID_PARAMS, "There is no such cursor; the list has one page.")
            box = await self._loaded()
            offers = {
                "tools/list": box.tools,
                "prompts/list": box.prompts,
                "resources/list": box.resources,
                "resources/templates/list": box.templates,
            }[method]
            return encode_json({_MEMBERS[method]: [Raw(one.definition) for one in offers.values()]})
        if method == "resources/read":
            return await self._read(params)
        if method == "prompts/get":
            return await self._get_prompt(params)
        if method == "logging/setLevel":
            return self._set_level(params)
        if method in ("initialize", "server/discover"):
            return encode_json(self._about(method))
        if method == "ping":
            return b"{}"
        raise _RequestError(messages.METHOD_NOT_FOUND, f"There is no method {method[:100]!r} here.")

    def _about(self, method: str) -> dict[str, Any]:
        changes = {"listChanged": True}
        about: dict[str, Any] = {
            "capabilities": {"tools": changes, "prompts": changes, "resources": changes, "logging": {}}
        }
        if self._box is not None and self._box.about:
            about["instructions"] = self._box.about
        if method == "server/discover":
            return {**about, "supportedVersions": list(MODERN_VERSIONS)}
        return {**about, "protocolVersion": self._version, "serverInfo": self._info}

    async def _loaded(self) -> LoadedTools:
        await self.is_loaded.wait()
        if self._box is None:
            raise _RequestError(messages.INTERNAL_ERROR, f"The file can't be served: {self._problem}")
        return self._box

    async def _call(self, request: Request, params: dict[str, Raw]) -> bytes:
        box = await self._loaded()
        meta = _object(params.get("_meta"))
        if STATE in params:
            running = self._waiting.take(messages.value(params[STATE]))
            if running is None:
                raise _RequestError(messages.INVALID_PARAMS, "No call waits for these answers.")
        else:
            tool = _named(box.tools, "tool", params)
            running = RunningCall(tool, _caller(meta))
            running.begin(self.calls.run(tool, bytes(params.get("arguments", Raw(b"{}"))), running.call))
        running.on_progress, running.on_log = self._teller(meta), self._logger(running.tool, request)
        running.answer(params.get(RESPONSES))
        ending = await running.step()
        if ending is None:
            state = self._waiting.hold(running)
            if state is not None:
                return running.input_required(state)
            await running.end()
            raise _RequestError(messages.INTERNAL_ERROR, "Too many calls wait for answers of their clients.")
        if ending.crash is not None:
            self._report(Report("crashed", running.tool, ending.crash[-REPORT_CHARS:]))
        return ending.result

    async def _read(self, params: dict[str, Raw]) -> bytes:
        box = await self._loaded()
        uri = messages.value(params["uri"]) if "uri" in params else None
        found = find_by_uri(uri, box.resources, box.templates) if isinstance(uri, str) else None
        if found is None:
            raise _RequestError(messages.RESOURCE_NOT_FOUND, f"There is no resource {str(uri)[:200]!r}.")
        offer, arguments = found
        return await self._value(offer, encode_json(arguments), lambda value: contents_of(offer, str(uri), value))

    async def _get_prompt(self, params: dict[str, Raw]) -> bytes:
        box = await self._loaded()
        return await self._value(
            _named(box.prompts, "prompt", params), bytes(params.get("arguments", Raw(b"{}"))), messages_of
        )

    async def _value(self, offer: ServedTool, arguments: bytes, to_result: Callable[[Any], dict[str, Any]]) -> bytes:
        try:
            return encode_json(to_result(await self.calls.read(offer, arguments)))
        except ContractFault as fault:
            code = messages.INVALID_PARAMS if fault.error.code == ErrorCode.INVALID_INPUT else messages.INTERNAL_ERROR
            raise _RequestError(code, fault.error.message) from None
        except (TypeError, ValueError, RecursionError) as problem:
            message = f"The {offer.kind} {offer.name} returned something that can't be sent: {problem}."
            raise _RequestError(messages.INTERNAL_ERROR, message) from None

    def _set_level(self, params: dict[str, Raw]) -> bytes:
        level = messages.value(params["level"]) if "level" in params else None
        if level not in _RANK:
            raise _RequestError(messages.INVALID_PARAMS, f"The level must be one of {', '.join(_RANK)}.")
        self._log_level = level
        return b"{}"

    def _logger(self, tool: str, request: Request) -> OnLog:
        def log(level: LogLevel, message: str) -> None:
            if _RANK[level] >= _RANK[self._log_level]:
                told = {"level": level, "logger": tool, "data": cut(message, LOG_CHARS)}
                own = {"_meta": {REQUEST_KEY: request.key}} if self._reports else {}
                self._notify("notifications/message", {**told, **own})

        return log

    def _teller(self, meta: dict[str, Any]) -> OnProgress | None:
        token = meta.get("progressToken")
        if isinstance(token, bool) or not isinstance(token, str | int):
            return None

        def tell(done: float, total: float | None, message: str | None) -> None:
            told = {"progressToken": token, "progress": done, "total": total, "message": message}
            self._notify("notifications/progress", {key: value for key, value in told.items() if value is not None})

        return tell

    def _report(self, report: Report) -> None:
        if self._reports:
            self._notify(REPORT_METHOD, report)
        elif report.operations:
            print(
                f"{report.tool or 'the file'} went on after its answer: {report.operations}",
                file=sys.stderr,
                flush=True,
            )

    def _notify(self, method: str, params: Any = None) -> None:
        if self._phase is not legacy.Phase.NEW or method == "notifications/progress":
            self._write(messages.encode_notification(method, None if params is None else encode_json(params)))

    async def stop(self) -> None:
        """Cancel the running requests without responses."""
        running = [*self._running.values()]
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)
        await self._waiting.close()
        self.calls.close()


class _RequestError(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def _object(raw: Raw | None) -> dict[str, Any]:
    value = None if raw is None else messages.value(raw)
    return value if isinstance(value, dict) else {}


def _caller(meta: dict[str, Any]) -> CallerFacts:
    try:
        return msgspec.convert(meta.get(CALLER_KEY, {}), CallerFacts)
    except msgspec.ValidationError:
        return CallerFacts()


def _named(offers: dict[str, ServedTool], kind: str, params: dict[str, Raw]) -> ServedTool:
    name = messages.value(params["name"]) if "name" in params else None
    found = offers.get(name) if isinstance(name, str) else None
    if found is None:
        known = cut(", ".join(offers), 500)
        raise _RequestError(messages.INVALID_PARAMS, f"There is no {kind} {str(name)[:64]!r}; there are: {known}.")
    return found


def _cancelled(params: bytes | None) -> str | int | None:
    try:
        raw = messages.members(params or b"{}").get("requestId")
    except msgspec.DecodeError:
        return None
    return None if raw is None else messages.id_key(bytes(raw))


def write_line(descriptor: int, line: bytes) -> None:
    """Write a whole line. Blocks while the reader does not read, which is the back-pressure."""
    rest = memoryview(messages.one_line(line) + b"\n")
    while rest:
        rest = rest[os.write(descriptor, rest) :]


async def read_lines(descriptor: int, take: Callable[[bytes], None]) -> None:
    """Call `take` with each line until the other side closes. Raises Oversized."""
    loop = asyncio.get_running_loop()
    decoder = LineDecoder(MAX_MESSAGE_BYTES)
    ended: asyncio.Future[None] = loop.create_future()

    def on_readable() -> None:
        data = os.read(descriptor, READ_BYTES)
        if not data:
            loop.remove_reader(descriptor)
            ended.set_result(None)
            return
        try:
            lines = decoder.feed(data)
        except OversizedError as problem:
            loop.remove_reader(descriptor)
            ended.set_exception(problem)
            return
        for line in lines:
            take(line)

    loop.add_reader(descriptor, on_readable)
    try:
        await ended
    finally:
        loop.remove_reader(descriptor)
