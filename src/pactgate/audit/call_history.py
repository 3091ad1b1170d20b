"""The history of the last calls, and the trace of one call: who called what, which gate ended it, and what to do next.

A trace is made from a sealed record, of which a bounded number is kept here, or from a line of the audit log. For anybody but an
administrator a trace is requested with the caller's `subject`. Secrets in names are masked. Must not: keep arguments or results.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import structs, to_builtins

from pactgate.audit.record import code_of, stamp, times_of, verdict_of
from pactgate.core.context import ExecutionRecord
from pactgate.core.display import cut
from pactgate.core.events import Event, RequestFinished
from pactgate.core.failures import Party, Verdict
from pactgate.core.masking import Mask
from pactgate.policy.response_size import fit_facts

MAX_CALLS: Final = 1000
MAX_FAILURE_BYTES: Final = 4096
MAX_MESSAGE_CHARS: Final = 1000
MAX_LISTED: Final = 200
_METHOD: Final = "tools/call"
_WRITTEN_BY_OTHERS: Final = ("subject", "client", "peer", "tool", "server", "outcome", "code")
_DISPATCH: Final = "dispatch"
_RECALL: Final = "cache_lookup"
_FINISH: Final = "limit_size"
"""The first gate that a cached result passes: those between the lookup and this one check fresh results."""


class CallHistory:
    """The last calls, at most `MAX_CALLS` of a few KiB each. `gates` gives the names of all gates in their order."""

    def __init__(
        self,
        gates: Callable[[], Sequence[str]],
        *,
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
        mask: Mask | None = None,
    ) -> None:
        self._gates = gates
        self._mask = mask or Mask()
        self._wall = wall
        self._clock = clock
        self._records: deque[ExecutionRecord] = deque(maxlen=MAX_CALLS)

    def emit(self, event: Event) -> None:
        """Keep the record of every sealed tool call for a while."""
        if isinstance(event, RequestFinished) and event.record.method == _METHOD:
            record = event.record
            self._records.append(record if record.failure is None and not record.operations else _fitted(record))

    def get(self, request_id: str, subject: str | None = None) -> dict[str, Any] | None:
        """The trace of one call, by its request id or the id of its trace.

        None if it is unknown, no longer kept, or of another subject than `subject`.
        """
        for record in reversed(self._records):
            if request_id in (record.request_id, _trace_id(record)) and subject in (None, record.subject):
                trace: dict[str, Any] = self._mask.value(self._trace(record, is_own=subject is not None))
                return trace
        return None

    def latest(
        self, count: int, subject: str | None = None, keeps: Callable[[Mapping[str, Any]], bool] | None = None
    ) -> list[dict[str, Any]]:
        """One short row per call that is kept, the newest first."""
        rows: list[dict[str, Any]] = []
        for record in reversed(self._records):
            if len(rows) >= min(count, MAX_LISTED):
                break
            if subject in (None, record.subject):
                row = self._row(record)
                if keeps is None or keeps(row):
                    rows.append(row)
        masked: list[dict[str, Any]] = self._mask.value(rows)
        return masked

    def rows(self, records: Sequence[ExecutionRecord]) -> list[dict[str, Any]]:
        """The same rows for calls that have just finished. Their texts repeat, so each is masked once."""
        mask, masked = self._mask, dict[Any, Any]()
        rows = [self._row(record) for record in records]
        for row in rows:
            for name in _WRITTEN_BY_OTHERS:
                text = row[name]
                if text not in masked:
                    masked[text] = mask.value(text)
                row[name] = masked[text]
        return rows

    def _row(self, record: ExecutionRecord) -> dict[str, Any]:
        return {
            "requestId": record.request_id,
            "time": stamp(self._wall() - (self._clock() - record.opened_at)),
            "subject": record.subject,
            "client": record.client,
            "peer": record.peer,
            "tool": record.tool or record.requested,
            "server": record.server,
            "outcome": record.outcome,
            "code": code_of(record),
            "verdict": verdict_of(record),
            "durationMs": round(record.duration_ms, 3),
            "cached": record.is_cached,
        }

    def _trace(self, record: ExecutionRecord, *, is_own: bool) -> dict[str, Any]:
        """The trace of a call. Whoever made it is not told by which rule a name is denied that does not exist for it."""
        failure, rule = record.failure or {}, record.rule
        if is_own and record.tool is None:
            rule = None
        facts = {
            **self._row(record),
            "tool": record.tool,
            "era": record.era,
            "version": record.version,
            "session": record.session,
            "requested": record.requested,
            "via": record.via,
            "category": record.category,
            "gate": record.gate,
            "rule": rule.number if rule else None,
            "ruleAt": rule.place if rule else None,
            "policyRevision": rule.revision if rule else None,
            "revision": record.upstream_revision,
            "truncated": record.is_truncated,
            "validated": record.is_validated,
            "outputErrors": [to_builtins(one) for one in record.output_errors],
            "effects": record.effects_level,
            "operations": [to_builtins(one) for one in record.operations],
            "violations": [str(one) for one in record.violations],
            "message": record.message,
            "party": failure.get("party"),
            "times": times_of(record),
            "traceId": _trace_id(record),
            "retryAfterMs": failure.get("retryAfterMs"),
            "failure": record.failure,
        }
        return call_trace(facts, self._gates(), source="gateway")


def call_trace(facts: Mapping[str, Any], gates: Sequence[str], *, source: str) -> dict[str, Any]:
    """A trace from the facts of a record or of an audit line: the state of each gate, and what to do next."""
    return {
        **facts,
        "source": source,
        "gates": _walk(facts, gates),
        "next": advice(facts),
    }


def _trace_id(record: ExecutionRecord) -> str | None:
    return record.trace.trace_id if record.trace is not None and record.trace.is_sampled else None


def _walk(facts: Mapping[str, Any], gates: Sequence[str]) -> list[dict[str, str]]:
    """Each gate is `passed`, `stopped` (it ended the call), `skipped` (a cached result needs no check) or `not reached`."""
    reached = facts.get("gate")
    if reached not in gates:
        return []
    has_failed = facts.get("outcome") not in ("ok", "tool_error")
    at, walk = gates.index(reached), []
    for number, gate in enumerate(gates):
        state = "passed" if number < at or (number == at and not has_failed) else "not reached"
        if number == at and has_failed:
            state = "stopped"
        elif facts.get("cached") and _between(gate, gates):
            state = "skipped"
        walk.append({"gate": gate, "state": state})
    return walk


def _between(gate: str, gates: Sequence[str]) -> bool:
    """Whether a cached result skips this gate."""
    names = list(gates)
    if _RECALL not in names or _FINISH not in names:
        return gate == _DISPATCH
    return names.index(_RECALL) < names.index(gate) < names.index(_FINISH)


_NEXT: Final = {
    Party.CALLER.value: "Correct the call as the message says, and send it again.",
    Party.UPSTREAM.value: "`pactgate servers` shows the state of its server, `pactgate doctor` finds the cause.",
    Party.GATEWAY.value: "Try again in a moment; the gateway's log has more under this request.",
    Party.OPERATOR.value: "The operator of the gateway has to act; its log says on what.",
}
_EFFECT: Final = {
    Verdict.DID_NOT_RUN.value: "Nothing was done.",
    Verdict.MAY_HAVE_RUN.value: "It may have been done: look before you call again. The gateway never sends a call twice.",
    Verdict.RAN.value: "It was done: calling again does it twice.",
}


def advice(facts: Mapping[str, Any]) -> str:
    """A sentence that says what to do next."""
    outcome = facts.get("outcome")
    if outcome == "ok":
        return "Nothing: the call was answered."
    if outcome == "tool_error":
        return "The tool itself reported a failure; its result says why."
    effect = _EFFECT.get(str(facts.get("verdict")), "")
    wait_ms = facts.get("retryAfterMs")
    if isinstance(wait_ms, int) and facts.get("verdict") == Verdict.DID_NOT_RUN.value:
        return f"{effect} Wait {max(1, -(-wait_ms // 1000))} s, then send it again."
    if outcome == "cancelled":
        return f"{effect} The client gave up before the answer came."
    return " ".join(part for part in (effect, _NEXT.get(str(facts.get("party")), "")) if part)


def _fitted(record: ExecutionRecord) -> ExecutionRecord:
    """The record of a failure cut to a bound: its details may repeat a server's text of any length."""
    return structs.replace(
        record,
        failure=None if record.failure is None else fit_facts(record.failure, MAX_FAILURE_BYTES),
        message=None if record.message is None else cut(record.message, MAX_MESSAGE_CHARS),
        operations=record.operations[:20],
        violations=record.violations[:20],
    )
