"""Events become records of the standard logger `pactgate`, so that an embedder gets them like those of any other library.

A record's message is one sentence; `event` names the event and `facts` has its members, for structured formats. Both are bounded, free
of control characters and of the secrets of the configuration. Events that clients and servers can provoke are rate limited.
Must not: install a handler that writes; `serve` does that with `log_handler`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from logging import DEBUG, ERROR, INFO, WARNING
from typing import Any, Final, NamedTuple

from msgspec import DecodeError, Raw

from pactgate.core import events
from pactgate.core.display import cut, flat, visible
from pactgate.core.events import Event
from pactgate.core.masking import MAX_RAW_BYTES, Mask
from pactgate.protocol import messages

LOGGER: Final = logging.getLogger("pactgate")
LOGGER.addHandler(logging.NullHandler())  # else logging prints warnings of an embedder's gateway to stderr by itself
MAX_MESSAGE_CHARS: Final = 2000
_FIELD_CHARS: Final = 400
_TRACEBACK_CHARS: Final = 1500
_WORK_CHARS: Final = 16_384
"""Text beyond this is not looked at: far more than is shown, and little enough to take no time."""
_MAX_ITEMS: Final = 40
_BURST: Final = 20
_PER_SECOND: Final = 2.0
_MAX_KEYS: Final = 1024
_AUDIT_POLICIES: Final = {"refuse": "are refused until it can", "continue": "go on without a record"}
_RECORD_FACTS: Final = (
    *("request_id", "method", "subject", "client", "era", "version", "duration_ms", "server", "tool", "outcome"),
    *("failure", "is_cached", "is_truncated", "effects_level", "via", "peer"),
)
_REPEATING: Final = (events.ServerFailed, events.DiscoveryFailed)
_PARTY_LEVELS: Final = {"caller": INFO, "upstream": WARNING}


class EventLogger:
    """Listens to the events of one gateway and logs them. `mask` hides secrets."""

    def __init__(self, mask: Mask, clock: Callable[[], float] = time.monotonic) -> None:
        self._mask = mask
        self._rates = LineRateLimiter(clock)
        self._failures = RepeatedFailures()

    def emit(self, event: Event) -> None:
        if (
            isinstance(event, events.RequestFinished)
            and event.record.outcome == "ok"
            and not LOGGER.isEnabledFor(DEBUG)
        ):
            return  # nearly every event
        is_news, repeated = self._failures.take(event)
        level = level_of(event)
        if not is_news or not LOGGER.isEnabledFor(level):
            return
        suppressed = 0
        # At level DEBUG every request is logged, but no flood that a server or a stranger can start.
        if LINES[type(event)].is_provoked and not (level == DEBUG and isinstance(event, events.RequestFinished)):
            allowed, suppressed = self._rates.take(f"{type(event).__name__} {getattr(event, 'server', '')}")
            if not allowed:
                return
        LOGGER.handle(self._record(event, level, suppressed, repeated))

    def _record(self, event: Event, level: int, suppressed: int, repeated: int) -> logging.LogRecord:
        facts = {name: _fit(fact, self._mask, name) for name, fact in _facts(event).items()}
        sentence = LINES[type(event)].sentence
        message = sentence.format_map(facts) if isinstance(sentence, str) else sentence(facts)
        if suppressed:
            facts["suppressed"] = suppressed
            message += f" ({suppressed} similar lines suppressed)"
        if repeated:
            facts["repeated"] = repeated
            message += f" (the failure before came {repeated} more times)"
        extra = {"event": type(event).__name__, "facts": facts}
        record = LOGGER.makeRecord(
            LOGGER.name, level, "(unknown file)", 0, cut(message, MAX_MESSAGE_CHARS), (), None, extra=extra
        )
        record.exc_text = facts.get("traceback", "").rstrip() or None
        return record


class RepeatedFailures:
    """Tells failures of a server that say something new from those that repeat the last one, until the server is listed again."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, type[Event]], tuple[str, int]] = {}

    def take(self, event: Event) -> tuple[bool, int]:
        """Whether the event is news, and how often the failure that it follows was repeated."""
        if isinstance(event, events.ServerDiscovered):
            ended = [self._last.pop((event.server, kind), ("", 0)) for kind in _REPEATING]
            return True, sum(count for _, count in ended)
        if not isinstance(event, _REPEATING):
            return True, 0
        key = (event.server, type(event))
        reason, count = self._last.get(key, ("", 0))
        if reason == event.reason:
            self._last[key] = (reason, count + 1)
            return False, 0
        if len(self._last) >= _MAX_KEYS:
            self._last.clear()
        self._last[key] = (event.reason, 0)
        return True, count


class LineRateLimiter:
    """Token buckets by key. `take` says whether a line may pass, and how many were suppressed since the last one that did."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._buckets: dict[str, tuple[float, float, int]] = {}

    def take(self, key: str) -> tuple[bool, int]:
        if key not in self._buckets and len(self._buckets) >= _MAX_KEYS:
            key = ""
        now = self._clock()
        tokens, seen_at, suppressed = self._buckets.get(key, (float(_BURST), now, 0))
        tokens = min(float(_BURST), tokens + (now - seen_at) * _PER_SECOND)
        allowed = tokens >= 1
        self._buckets[key] = (tokens - 1, now, 0) if allowed else (tokens, now, suppressed + 1)
        return allowed, suppressed if allowed else 0


def level_of(event: Event) -> int:
    if isinstance(event, events.RequestFinished):
        record = event.record
        if record.outcome == "ok":
            return DEBUG
        if record.failure is None:
            return INFO  # the tool itself reported a failure
        return _PARTY_LEVELS.get(record.failure["party"], ERROR)
    if isinstance(event, events.CompositionHazard) and event.severity == "note":
        return INFO
    return LINES[type(event)].level


def _facts(event: Event) -> dict[str, Any]:
    if isinstance(event, events.RequestFinished):
        return {name: fact for name in _RECORD_FACTS if (fact := getattr(event.record, name)) not in (None, (), "")}
    return {name: getattr(event, name) for name in event.__struct_fields__}


def _fit(value: Any, mask: Mask, name: str = "") -> Any:
    """The value without secrets and control characters, short enough for a line. Masked before it is cut, so no half secret stays."""
    if name == "traceback":
        return visible(mask.end(value, _WORK_CHARS))[-_TRACEBACK_CHARS:]
    if isinstance(value, str):
        return flat(mask.start(value, _WORK_CHARS), _FIELD_CHARS)
    if isinstance(value, float):
        return round(value, 3)
    if isinstance(value, Raw):
        return _fit(_decoded(value), mask)
    if isinstance(value, dict):
        return {_fit(str(key), mask): _fit(item, mask) for key, item in list(value.items())[:_MAX_ITEMS]}
    if isinstance(value, list | tuple):
        return [_fit(item, mask) for item in value[:_MAX_ITEMS]]
    return value if value is None or isinstance(value, int) else flat(mask.start(str(value), _WORK_CHARS), _FIELD_CHARS)


def _decoded(raw: Raw) -> Any:
    """What JSON of a server says, for a line."""
    try:
        return messages.value(raw) if len(raw) <= MAX_RAW_BYTES else f"JSON of {len(raw)} bytes"
    except (ValueError, RecursionError, DecodeError):
        return f"{len(raw)} bytes that are not JSON"


def _request(facts: dict[str, Any]) -> str:
    what = facts.get("tool") or facts.get("server") or ""
    failure = facts.get("failure")
    how = facts["outcome"] if failure is None else f"{failure['code']} ({facts['outcome']}, {failure['verdict']})"
    who = facts.get("client") or facts["subject"]
    return " ".join(
        f"{facts['method']} {what} {how} in {facts['duration_ms']:.0f} ms, for {who}, request {facts['request_id']}".split()
    )


def _reloaded(facts: dict[str, Any]) -> str:
    done = [f"{word} {', '.join(facts[word])}" for word in ("added", "removed", "changed") if facts[word]]
    text = f"configuration reloaded: {'; '.join(done) or 'no server changed'}"
    if stuck := facts["needs_restart"]:
        text += f"; {', '.join(stuck)} will take effect at the next start"
    undone = facts["undone"]
    return f"{text}; changes that were not written to the file are lost: {', '.join(undone)}" if undone else text


def _changed(facts: dict[str, Any]) -> str:
    lasts = "written to the file" if facts["is_persisted"] else "until the file is read again"
    what = f"{facts['path']} from {flat(facts['old'], 200)} to {flat(facts['new'], 200)}"
    return f"{facts['who']} changed {what}, {lasts}; revision {facts['revision']}"


def _exceeded(facts: dict[str, Any]) -> str:
    when = f"request {facts['request_id']}" if facts["request_id"] else "after its answer"
    return f"{facts['tool']} did what its contract does not allow: {', '.join(facts['operations'])}, {when}"


def _mismatched(facts: dict[str, Any]) -> str:
    places = "; ".join(facts["errors"])
    return f"{facts['tool']}: passed on a result that does not fit: {places}, request {facts['request_id']}"


def _reported(facts: dict[str, Any]) -> str:
    return f"{facts['server']}: {facts['tool'] or 'the file'} {facts['what'].replace('_', ' ')}: {facts['text']}"


def _audit_failed(facts: dict[str, Any]) -> str:
    consequence = _AUDIT_POLICIES[facts["policy"]]
    return f"the audit log {facts['file']} can't be written: {facts['reason']}; calls {consequence}"


def _refused(facts: dict[str, Any]) -> str:
    if not facts["status"]:
        return f"a message on stdin was refused: {facts['reason']}"
    what = f"{facts['target']} " if facts["target"] else ""
    return f"{what}refused with {facts['status']}: {facts['reason']}, from {facts['peer'] or 'an unknown address'}"


def _guessed(facts: dict[str, Any]) -> str:
    others = f", and {facts['elsewhere']} from other addresses" if facts["elsewhere"] else ""
    return f"unknown credentials from {facts['peer'] or 'an unknown address'}: {facts['attempts']} attempts{others}"


def _tool_changed(facts: dict[str, Any]) -> str:
    text = f"{facts['server']}: the definition of {facts['tool']} changed: {', '.join(facts['members'])}"
    text += f" ({facts['old_digest']} to {facts['new_digest']})"
    ignored = ", ".join(facts["ignored"])
    confirm = "until it is confirmed with `categories` or by a restart"
    return f"{text}; {ignored} would loosen its category and is not believed {confirm}" if ignored else text


def _noise(facts: dict[str, Any]) -> str:
    return f"{facts['server']}: {facts['what']}" + (f": {facts['sample']}" if facts["sample"] else "")


class LogLine(NamedTuple):
    """How an event is logged. `sentence` is a template or makes one of the facts.

    `is_provoked`: a client or a server can cause the event as often as it likes.
    """

    level: int
    sentence: str | Callable[[dict[str, Any]], str]
    is_provoked: bool = False


LINES: Final[dict[type[Event], LogLine]] = {
    events.GatewayStarted: LogLine(INFO, "listening at {address}, {servers} servers configured"),
    events.GatewayStopped: LogLine(INFO, "stopped: {reason}"),
    events.ServerConnecting: LogLine(DEBUG, "{server}: connecting, attempt {attempt}"),
    events.ServerConnected: LogLine(INFO, "{server}: connected, protocol version {version}, {duration_ms:.0f} ms"),
    events.ServerDiscovered: LogLine(INFO, "{server}: {tools} tools"),
    events.ServerDisconnected: LogLine(WARNING, "{server}: connection lost: {reason} ({code})"),
    events.ServerHung: LogLine(
        WARNING, "{server}: hangs, no answer to a request or a probe for {silent_ms:.0f} ms; ended"
    ),
    events.ServerFailed: LogLine(ERROR, "{server}: no connection after {attempts} attempts: {reason} ({code})"),
    events.DiscoveryFailed: LogLine(WARNING, "{server}: listing failed: {reason}"),
    events.ConfigurationReloaded: LogLine(INFO, _reloaded),
    events.ConfigurationRefused: LogLine(
        ERROR, lambda facts: "the configuration was not applied: " + "; ".join(facts["problems"])
    ),
    events.ConfigurationChanged: LogLine(INFO, _changed),
    events.ConfigurationRestored: LogLine(WARNING, "{who}'s change of {path} was reverted: {reason}"),
    events.EffectsExceeded: LogLine(WARNING, _exceeded, is_provoked=True),
    events.OutputMismatched: LogLine(WARNING, _mismatched, is_provoked=True),
    events.CodeReplaced: LogLine(
        WARNING, "{tool} failed with a code it does not declare: {code}, request {request_id}", is_provoked=True
    ),
    events.ToolReported: LogLine(WARNING, _reported, is_provoked=True),
    events.PermissionUndecided: LogLine(
        WARNING, "{name} was denied, because rule {rule} ({place}) can't be decided: {reason}", is_provoked=True
    ),
    events.CacheFailed: LogLine(WARNING, "the cache could not {operation}: {reason}", is_provoked=True),
    events.StoreFailed: LogLine(ERROR, "the shared store does not answer: {reason}", is_provoked=True),
    events.StoreRestored: LogLine(INFO, "the shared store answers"),
    events.ReplicaJoined: LogLine(INFO, "replica {replica} joined at {address}"),
    events.ReplicaVanished: LogLine(WARNING, "replica {replica} has gone"),
    events.CaptureEnded: LogLine(DEBUG, "capture {path}: {exchanges} messages, {missing} missing"),
    events.CaptureFailed: LogLine(WARNING, "a session can't be recorded: {reason}", is_provoked=True),
    events.AuditFailed: LogLine(ERROR, _audit_failed),
    events.AuditRecovered: LogLine(
        WARNING, "the audit log {file} is written again: {late} records came late, {lost} are lost and counted there"
    ),
    events.ToolChanged: LogLine(WARNING, _tool_changed, is_provoked=True),
    events.EntriesChanged: LogLine(
        INFO, "{server}: its {entries} changed: {added} added, {removed} removed, {changed} changed", is_provoked=True
    ),
    events.DefinitionsDiffered: LogLine(
        WARNING,
        "{server}: {count} definitions differ from the lock file (lock.mode {mode}): {names}; see `pactgate lock diff {server}`",
        is_provoked=True,
    ),
    events.UpstreamNoise: LogLine(WARNING, _noise, is_provoked=True),
    events.CompositionHazard: LogLine(WARNING, "{severity}: {message} ({kind})", is_provoked=True),
    events.RequestFinished: LogLine(DEBUG, _request, is_provoked=True),
    events.ListenOpened: LogLine(DEBUG, "{subject} listens to {watched}, request {request_id}", is_provoked=True),
    events.ExportFailed: LogLine(WARNING, "traces can't be exported and are dropped: {reason}"),
    events.RequestRefused: LogLine(WARNING, _refused, is_provoked=True),
    events.HandshakeFailed: LogLine(WARNING, "no TLS connection with {peer}: {reason}", is_provoked=True),
    events.CertificateReplaced: LogLine(INFO, "new connections get the certificate that is now in {file}"),
    events.CredentialsRefused: LogLine(WARNING, _guessed, is_provoked=True),
    events.ConsoleOpened: LogLine(INFO, "{subject} has signed in to the console from {peer}", is_provoked=True),
    events.ConnectionsClosed: LogLine(
        WARNING, "closed {count} connections without a request to make room for one from {address}", is_provoked=True
    ),
    events.InternalFailure: LogLine(
        ERROR, "internal failure in {where}, request {request_id}: {error}", is_provoked=True
    ),
}
"""Every event has a line here."""
