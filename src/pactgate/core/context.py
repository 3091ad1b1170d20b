"""The execution context: opened from the request alone, noted on while it runs, sealed on every return.

Sealing gives the `ExecutionRecord`, the one truth that logs, audit, captures and the envelope read. Enforces S4/R4.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct, field

from pactgate.core.contract import Operation, OutputError, ToolFault
from pactgate.core.failures import GatewayFailure
from pactgate.core.frozen import freeze
from pactgate.core.principal import Principal
from pactgate.core.trace_context import CallTrace
from pactgate.core.values import Caller, Tool


class ContextError(Exception):
    """An invariant of the execution context was broken: a bug of ours, never of a caller."""


QUEUE: Final = "queue"
CONNECTION: Final = "connection"
CLIENT: Final = "client"
"""What a request waits for, beside its server and its gates: a free slot, a connection to the server, answers of its client."""


class AppliedRule(Struct, frozen=True, gc=False):
    """The rule of `permissions` that decided about a request. `number` counts from 1; None: no rule allows it."""

    number: int | None = None
    place: str = ""
    """Where it stands in the file of the operator."""
    revision: str = ""
    """Of callers, permissions and categories."""


class ExecutionRecord(Struct, frozen=True):
    """What happened to one request. Final, all the way down."""

    request_id: str
    method: str
    subject: str
    client: str
    era: str
    version: str
    duration_ms: float
    server: str | None
    tool: str | None
    outcome: str
    failure: dict[str, Any] | None
    is_cached: bool = False
    is_truncated: bool = False
    opened_at: float = 0.0
    """Of the monotonic clock: when it began is worked out by whoever tells it."""
    session: str | None = None
    requested: str | None = None
    category: str | None = None
    gate: str | None = None
    """The last gate a tool call reached; where it failed, the one that stopped it."""
    message: str | None = None
    """What the caller was told of the failure."""
    upstream_revision: str | None = None
    is_validated: bool = False
    operations: tuple[Operation, ...] = ()
    violations: tuple[Operation, ...] = ()
    """Those of the operations that the contract of the tool does not allow."""
    effects_level: str | None = None
    """How far the declared effects of the tool are more than words (D12); None where nothing is declared."""
    via: str | None = None
    """The tool that was called to name this one in its arguments."""
    peer: str = ""
    """The address the caller called from, where it is known."""
    tool_code: str | None = None
    """The code a contract tool failed with, where the failure was its own."""
    output_errors: tuple[OutputError, ...] = ()
    """Where a result did not fit what its tool declares, and was passed on."""
    principal: Principal | None = None
    sent_at: float = 0.0
    """When it left for its server, of the monotonic clock; 0 where it never did."""
    received_at: float = 0.0
    """When the response was there, or nobody waited for it any more."""
    waits: tuple[tuple[str, float], ...] = ()
    """What else it waited for, in milliseconds: QUEUE, CONNECTION, CLIENT, or a gate by its name. Most requests wait for nothing."""
    error_code: int | None = None
    """The number of the JSON-RPC error that the client was answered; None where it was answered a result, or nothing."""
    trace: CallTrace | None = None
    rule: AppliedRule | None = None
    """What decided whether it was permitted; None where nothing is configured."""

    def waited_ms(self, what: str) -> float:
        return sum(waited_ms for name, waited_ms in self.waits if name == what)

    @property
    def server_ms(self) -> float:
        """The time at the server, without the time in which the client was asked something."""
        if not self.sent_at:
            return 0.0
        at_ms = (self.received_at - self.sent_at) * 1000
        return max(0.0, at_ms - self.waited_ms(CLIENT)) if self.waits else at_ms

    @property
    def overhead_ms(self) -> float:
        """What the gateway itself added."""
        rest_ms = self.duration_ms - self.server_ms
        return max(0.0, rest_ms - sum(waited_ms for _, waited_ms in self.waits) if self.waits else rest_ms)


def _nothing() -> None:
    return


_IDS_AT_ONCE: Final = 256
_VERSION: Final = bytes(0x40 | value & 0x0F for value in range(256))
_VARIANT: Final = bytes(0x80 | value & 0x3F for value in range(256))
_BLANK: Final = b"........-....-....-....-............"
_DIGITS: Final = 32
_PLACES: Final = tuple(place for place, mark in enumerate(_BLANK) if mark == ord("."))
_unused_ids: list[str] = []


def _new_id() -> str:
    """A random UUID of version 4, as the envelope asks. Made many at a time: asking the system for chance costs more than the rest."""
    if not _unused_ids:
        chance = bytearray(secrets.token_bytes(16 * _IDS_AT_ONCE))
        chance[6::16] = chance[6::16].translate(_VERSION)
        chance[8::16] = chance[8::16].translate(_VARIANT)
        digits, text = chance.hex().encode(), bytearray(_BLANK * _IDS_AT_ONCE)
        for digit, place in enumerate(_PLACES):
            text[place :: len(_BLANK)] = digits[digit::_DIGITS]
        ids = text.decode()
        _unused_ids.extend(ids[start : start + len(_BLANK)] for start in range(0, len(ids), len(_BLANK)))
    return _unused_ids.pop()


class ExecutionContext(Struct, eq=False):
    """One request on its way through. Binds one tool once; refuses every change after the seal."""

    method: str
    caller: Caller
    opened_at: float
    request_id: str = field(default_factory=_new_id)
    tool: Tool | None = None
    failure: GatewayFailure | None = None
    is_error: bool = False
    requested: str | None = None
    """The name or URI that was asked for, whether or not there is one."""
    server: str | None = None
    """The server of a request that is not a tool call."""
    is_cached: bool = False
    is_empty: bool = False
    """Whether the tool answered with an empty list of content: allowed, and said."""
    is_truncated: bool = False
    is_validated: bool = False
    original_size_bytes: int | None = None
    upstream_revision: str | None = None
    gate: str | None = None
    effects_level: str | None = None
    operations: tuple[Operation, ...] = ()
    violations: tuple[Operation, ...] = ()
    output_errors: tuple[OutputError, ...] = ()
    observed: bytes = b""
    """Further members of the envelope, encoded once: operations and violations, or how often the call was sent."""
    tool_fault: ToolFault | None = None
    via: str | None = None
    error_code: int | None = None
    sent_at: float = 0.0
    received_at: float = 0.0
    trace: CallTrace | None = None
    """The trace it belongs to, where it is traced or its trace context has to be replaced."""
    waits: tuple[tuple[str, float], ...] = ()
    rule: AppliedRule | None = None
    record: ExecutionRecord | None = None
    interrupt: Callable[[], None] = _nothing
    """Ends what works on the request, from outside; set by whoever runs it."""

    def bind(self, tool: Tool) -> None:
        if self.record is not None:
            raise self._sealed()
        if self.tool is not None:
            raise ContextError(f"request {self.request_id} already calls {self.tool.full_name}")
        self.tool = tool

    def fail(self, failure: GatewayFailure) -> None:
        self._require_open()
        self.failure = failure

    def note_tool_error(self) -> None:
        self._require_open()
        self.is_error = True

    def note_wait(self, what: str, waited_s: float) -> None:
        """It has waited: for QUEUE, CONNECTION or CLIENT, or in a gate, which is named then."""
        self.waits = (*self.waits, (what, waited_s * 1000))

    def seal(self, now: float) -> ExecutionRecord:
        if self.record is not None:
            raise self._sealed()
        caller, tool, failure = self.caller, self.tool, self.failure
        principal = caller.principal
        # By position, in the order of the fields: for more than 15 keywords CPython builds a dictionary, which takes 3 us.
        self.record = record = ExecutionRecord(
            self.request_id,
            self.method,
            principal.shown if principal.issuer else principal.key,
            caller.client,
            caller.era._value_,
            caller.version,
            (now - self.opened_at) * 1000 if now > self.opened_at else 0.0,
            tool.server if tool else self.server or (failure.server if failure else caller.scope),
            tool.full_name if tool else None,
            failure.mode if failure else "tool_error" if self.is_error else "ok",
            freeze(failure.record()) if failure else None,
            self.is_cached,
            self.is_truncated,
            self.opened_at,
            caller.session,
            self.requested,
            tool.traits.category if tool else None,
            self.gate,
            failure.message if failure else None,
            self.upstream_revision,
            self.is_validated,
            self.operations,
            self.violations,
            self.effects_level,
            self.via,
            caller.peer,
            self.tool_fault.code if self.tool_fault else None,
            self.output_errors,
            principal,
            self.sent_at,
            self.received_at,
            self.waits,
            self.error_code,
            self.trace,
            self.rule,
        )
        return record

    def _require_open(self) -> None:
        if self.record is not None:
            raise self._sealed()

    def _sealed(self) -> ContextError:
        return ContextError(f"request {self.request_id} is sealed")
