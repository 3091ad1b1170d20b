"""For people who write tools: hold your own tools to their contract, in pytest or anywhere else.

The file is served as in production, by a gateway and a runner in a process of its own, and called through both. What a check finds is one
`ContractBroken` that names every breach. Must not: need pytest, or a port.

    async with serving("notes.py") as notes:
        await notes.check_contract("add_note", {"text": "milk"})
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct

from pactgate.app import Gateway
from pactgate.config.model import Config
from pactgate.config.sections.rate_limits import RateLimits
from pactgate.config.server_settings import ServerConfig
from pactgate.config.value_checks import legal_id
from pactgate.core.contract import Contract, Operation
from pactgate.core.events import CodeReplaced, EffectsExceeded, Event, RequestFinished, ToolReported
from pactgate.core.values import Tool

_MAX_REMEMBERED: Final = 10_000
_KEPT_REASONS: Final = 20


class ContractBroken(AssertionError):  # noqa: N818 - what a test says
    """A tool does not do what it declares. The text names every breach."""


class Outcome(Struct, frozen=True):
    """What one call came to. `code` is None where it succeeded; `value` is what the tool returned, as JSON knows it."""

    value: Any
    text: str
    code: str | None
    message: str
    operations: tuple[Operation, ...]
    violations: tuple[Operation, ...]


class ServedTools:
    """A file that is being served. Made by `serving`."""

    def __init__(self, gateway: Gateway, server: str, heard: _Heard) -> None:
        self._gateway = gateway
        self._server = server
        self._heard = heard

    @property
    def tools(self) -> dict[str, Contract]:
        """The contract of each tool, by name."""
        return {tool.name: _contract(tool) for tool in self._gateway.connections.unfiltered.tools.entries(self._server)}

    async def call(self, tool: str, /, arguments: Mapping[str, Any] | None = None, **more: Any) -> Outcome:
        """Call one tool, with arguments as a mapping or by name. A failure is an outcome too."""
        envelope = await self._gateway.invoke(f"{self._server}.{tool}", {**(arguments or {}), **more})
        record = self._heard.records.pop(envelope["metadata"]["requestId"]).record
        data, error = envelope.get("data") or {}, envelope.get("error") or {}
        texts = [item["text"] for item in data.get("content", []) if item.get("type") == "text"]
        return Outcome(
            _value(data.get("structuredContent")),
            "\n".join(texts),
            error.get("code"),
            error.get("message", ""),
            record.operations,
            record.violations,
        )

    async def check_contract(
        self,
        tool: str,
        /,
        arguments: Mapping[str, Any] | None = None,
        *,
        fails_with: str | None = None,
        repeats: bool = True,
    ) -> Outcome:
        """Call a tool and hold it to everything it declares; the outcome of the first call, or ContractBroken.

        Its arguments and its result fit their schemas; it did nothing it does not declare; it fails only with the code you
        expect, and one it may use; what you gave it is unchanged; and an idempotent tool says the same when called again
        (`repeats=False` where the second answer may differ).
        """
        given = dict(arguments or {})
        before = copy.deepcopy(given)
        reasons_before = len(self._heard.reasons)
        outcome = await self.call(tool, given)
        breaches = [*_breaches(tool, outcome, fails_with)]
        if given != before:
            breaches.append(f"the arguments were changed: {before!r} became {given!r}")
        contract = self.tools.get(tool)
        if contract is not None and contract.idempotent and repeats and not breaches:
            again = await self.call(tool, given)
            if (again.value, again.code) != (outcome.value, outcome.code):
                told = f"{again.value!r} {again.code or ''} instead of {outcome.value!r} {outcome.code or ''}"
                breaches.append(f"it declares to be idempotent, and said {told} when called again")
        breaches += self._heard.reasons[reasons_before:]
        if breaches:
            raise ContractBroken(f"{tool} breaks its contract:\n" + "\n".join(f"- {one}" for one in breaches))
        return outcome


@asynccontextmanager
async def serving(
    file: str | Path, *, undeclared: Literal["report", "refuse"] = "report", env: Mapping[str, str] | None = None
) -> AsyncIterator[ServedTools]:
    """Serve a file of tools to this program alone. Raises ContractBroken with every problem where it can't be served."""
    server = _server(Path(file), undeclared, dict(env or {}))
    heard = _Heard()
    config = Config(servers={server.id: server}, rate_limits=RateLimits(enabled=False))
    async with Gateway.open(config, heard.take) as gateway:
        (row,) = (await gateway.discover(force_refresh=True)).server_results
        if row.status != "success":
            raise ContractBroken(f"{server.tools} can't be served: {row.error}")
        yield ServedTools(gateway, server.id, heard)


def assert_contract(
    file: str | Path,
    tool: str,
    arguments: Mapping[str, Any] | None = None,
    *,
    fails_with: str | None = None,
    repeats: bool = True,
) -> Outcome:
    """The same as one plain call, for tests that are not `async`: serve the file, check one tool, stop."""

    async def check() -> Outcome:
        async with serving(file) as served:
            return await served.check_contract(tool, arguments, fails_with=fails_with, repeats=repeats)

    return asyncio.run(check())


class _Heard:
    """What the gateway said of the calls, kept until it is asked for, within bounds."""

    def __init__(self) -> None:
        self.records: dict[str, RequestFinished] = {}
        self.reasons: list[str] = []

    def take(self, event: Event) -> None:
        if isinstance(event, RequestFinished) and len(self.records) < _MAX_REMEMBERED:
            self.records[event.record.request_id] = event
        elif len(self.reasons) < _KEPT_REASONS:
            self.reasons += _reasons(event)


def _reasons(event: Event) -> Iterator[str]:
    if isinstance(event, EffectsExceeded) and not event.request_id:
        yield f"it went on after its answer and did what it does not declare: {', '.join(event.operations)}"
    elif isinstance(event, CodeReplaced):
        yield f"it failed with {event.code}, which is neither a standard code nor declared"
    elif isinstance(event, ToolReported) and event.what == "crashed":
        yield f"it raised an exception it does not declare:\n{event.text}"


def _breaches(tool: str, outcome: Outcome, fails_with: str | None) -> Iterator[str]:
    if outcome.violations:
        yield f"it did what it does not declare: {', '.join(map(str, outcome.violations))}"
    if outcome.code != fails_with:
        if outcome.code is None:
            yield f"it was to fail with {fails_with}, and succeeded"
        else:
            wanted = "it was to succeed" if fails_with is None else f"it was to fail with {fails_with}"
            yield f"{wanted}, and failed with {outcome.code}: {outcome.message}"


def _server(file: Path, undeclared: Literal["report", "refuse"], env: dict[str, str]) -> ServerConfig:
    path, id_ = str(file.absolute()), legal_id(file.stem)
    return ServerConfig(id=id_, tools=path, undeclared_effects=undeclared, env=env, max_retries=0)


def _contract(tool: Tool) -> Contract:
    assert tool.contract is not None, "every tool of a file has one"
    return tool.contract


def _value(structured: Any) -> Any:
    """What the function returned: a result that is no object travels as the one member of one."""
    if isinstance(structured, dict) and structured.keys() == {"result"}:
        return structured["result"]
    return structured
