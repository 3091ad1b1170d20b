"""Events become log lines and counters. One line an event, as text for people or as JSON for programs.

A line never blocks the gateway: where the reader does not keep up it is dropped and counted. Lines are bounded in length, free of
control characters and of the secrets of the configuration; what outsiders can provoke is bounded in rate. Must not: decide anything.
"""

from __future__ import annotations

import os
import select
import time
from collections import Counter
from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import Any, Final

import msgspec

from pactgate.core import events
from pactgate.core.display import Mask, cut, flat, visible
from pactgate.core.events import Event

MAX_LINE_BYTES: Final = 4096
"""One page: what a pipe that is ready takes whole."""
_FIELD_CHARS: Final = 400
_TRACEBACK_CHARS: Final = 1500
_WORK_CHARS: Final = 16_384
"""Far more than is shown, far less than takes time: no text longer than this is looked at."""
_MAX_ITEMS: Final = 40
_BURST: Final = 20
_PER_SECOND: Final = 2.0
_MAX_KEYS: Final = 1024
_AUDIT_POLICIES: Final = {"refuse": "are refused until it can", "continue": "go on without a record"}
_RECORD_FACTS: Final = (
    *(
        "request_id",
        "method",
        "subject",
        "client",
        "era",
        "version",
        "duration_ms",
        "server",
        "tool",
        "outcome",
        "failure",
    ),
    *("is_cached", "is_truncated", "effects_level", "via"),
)
_GOOD_REQUEST: Final = "RequestFinished.ok"


class Level(IntEnum):
    DEBUG = 10
    INFO = 20
    WARNING = 30
    ERROR = 40


LEVELS: Final[dict[type[Event], Level]] = {
    events.GatewayStarted: Level.INFO,
    events.GatewayStopped: Level.INFO,
    events.ServerConnecting: Level.DEBUG,
    events.ServerConnected: Level.INFO,
    events.ServerDiscovered: Level.INFO,
    events.ServerDisconnected: Level.WARNING,
    events.ServerFailed: Level.ERROR,
    events.DiscoveryFailed: Level.WARNING,
    events.ConfigurationReloaded: Level.INFO,
    events.ConfigurationRefused: Level.ERROR,
    events.ConfigurationChanged: Level.INFO,
    events.ConfigurationRestored: Level.WARNING,
    events.EffectsExceeded: Level.WARNING,
    events.CodeReplaced: Level.WARNING,
    events.ToolReported: Level.WARNING,
    events.CacheFailed: Level.WARNING,
    events.CaptureEnded: Level.DEBUG,
    events.CaptureFailed: Level.WARNING,
    events.AuditFailed: Level.ERROR,
    events.AuditRecovered: Level.WARNING,
    events.UpstreamNoise: Level.WARNING,
    events.CompositionHazard: Level.WARNING,
    events.RequestRefused: Level.WARNING,
    events.InternalFailure: Level.ERROR,
}
_PARTY_LEVELS: Final = {"caller": Level.INFO, "upstream": Level.WARNING}
_PROVOKED: Final = (
    events.EffectsExceeded,
    events.CodeReplaced,
    events.ToolReported,
    events.CacheFailed,
    events.CaptureFailed,
    events.UpstreamNoise,
    events.CompositionHazard,
    events.RequestRefused,
    events.RequestFinished,
    events.InternalFailure,
)
"""What a caller or an upstream can make happen as often as it likes."""


class Telemetry:
    """The listener of all events. `hidden` are types that something else shows already: counted here, not logged."""

    def __init__(
        self,
        fd: int,
        *,
        level: Level = Level.INFO,
        as_json: bool = True,
        secrets: Iterable[str] = (),
        hidden: frozenset[type[Event]] = frozenset(),
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._lines = LineWriter(fd)
        self._level = level
        self._is_brief = level > Level.DEBUG
        self._as_json = as_json
        self._mask = Mask(secrets)
        self._hidden = hidden
        self._wall = wall
        self._rates = LineRateLimiter(clock)

    def hide(self, secrets: Iterable[str]) -> None:
        """Mask these from now on."""
        self._mask = Mask(secrets)

    def emit(self, event: Event) -> None:
        if self._is_brief and isinstance(event, events.RequestFinished) and event.record.outcome == "ok":
            self.counts[_GOOD_REQUEST] += 1  # nearly every event there is: counted, and nothing more
            return
        self.counts[_count_name(event)] += 1
        level = level_of(event)
        if level < self._level or type(event) in self._hidden:
            return
        suppressed = 0
        # Whoever asks for every detail gets every request, but no flood that an upstream or a stranger can start.
        if isinstance(event, _PROVOKED) and not (level is Level.DEBUG and isinstance(event, events.RequestFinished)):
            key = f"{type(event).__name__} {getattr(event, 'server', '')}"
            allowed, suppressed = self._rates.take(key)
            if not allowed:
                return
        self._log(event, level, suppressed)

    def _log(self, event: Event, level: Level, suppressed: int) -> None:
        facts = _facts(event)
        notes = {"suppressed": suppressed, "dropped": self._lines.dropped}
        facts.update((name, count) for name, count in notes.items() if count)
        facts = {name: _fit(fact, self._mask, name) for name, fact in facts.items()}
        write = _as_json if self._as_json else _as_text
        self._lines.write(write(type(event), facts, level, self._wall()))


class LineRateLimiter:
    """Token buckets by key: a burst, then a trickle; says how many were kept back since the last one let through."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._buckets: dict[str, tuple[float, float, int]] = {}

    def take(self, key: str) -> tuple[bool, int]:
        if key not in self._buckets and len(self._buckets) >= _MAX_KEYS:
            key = ""
        now = self._clock()
        tokens, seen_at, held_back = self._buckets.get(key, (float(_BURST), now, 0))
        tokens = min(float(_BURST), tokens + (now - seen_at) * _PER_SECOND)
        allowed = tokens >= 1
        self._buckets[key] = (tokens - 1, now, 0) if allowed else (tokens, now, held_back + 1)
        return allowed, held_back if allowed else 0


class LineWriter:
    """Writes whole lines to a descriptor that may be a terminal, a file or a pipe nobody reads. Never waits."""

    def __init__(self, fd: int) -> None:
        self.dropped = 0
        self._fd = fd
        self._poll = select.poll()
        self._poll.register(fd, select.POLLOUT)

    def write(self, line: bytes) -> None:
        ready = self._poll.poll(0)
        if not ready or ready[0][1] != select.POLLOUT:
            self.dropped += 1
            return
        try:
            os.write(self._fd, line)
        except OSError:
            self.dropped += 1  # the reader went away between the two calls, or the disk is full
        else:
            self.dropped = 0


def level_of(event: Event) -> Level:
    if isinstance(event, events.CompositionHazard) and event.severity == "note":
        return Level.INFO
    if not isinstance(event, events.RequestFinished):
        return LEVELS.get(type(event), Level.INFO)
    record = event.record
    if record.outcome == "ok":
        return Level.DEBUG
    if record.failure is None:
        return Level.INFO  # the tool itself said that it failed
    return _PARTY_LEVELS.get(record.failure["party"], Level.ERROR)


def _count_name(event: Event) -> str:
    name = type(event).__name__
    return f"{name}.{event.record.outcome}" if isinstance(event, events.RequestFinished) else name


def _facts(event: Event) -> dict[str, Any]:
    if isinstance(event, events.RequestFinished):
        return {name: fact for name in _RECORD_FACTS if (fact := getattr(event.record, name)) not in (None, ())}
    return {name: getattr(event, name) for name in event.__struct_fields__}


def _fit(value: Any, mask: Mask, name: str = "") -> Any:
    """The value without secrets, without control characters and short enough for a line. Masked first: a cut must not bare a secret."""
    if name == "traceback":
        return visible(mask.end(value, _WORK_CHARS))[-_TRACEBACK_CHARS:]
    if isinstance(value, str):
        return flat(mask.start(value, _WORK_CHARS), _FIELD_CHARS)
    if isinstance(value, float):
        return round(value, 3)
    if isinstance(value, dict):
        return {_fit(str(key), mask): _fit(item, mask) for key, item in list(value.items())[:_MAX_ITEMS]}
    if isinstance(value, list | tuple):
        return [_fit(item, mask) for item in value[:_MAX_ITEMS]]
    return value if value is None or isinstance(value, int) else flat(mask.start(str(value), _WORK_CHARS), _FIELD_CHARS)


def _as_json(kind: type[Event], facts: dict[str, Any], level: Level, now: float) -> bytes:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03}Z"
    head = {"time": stamp, "level": level.name.lower(), "event": kind.__name__}
    line = msgspec.json.encode({**head, **facts}) + b"\n"
    if len(line) > MAX_LINE_BYTES:
        # A character is at most six bytes as JSON, so this always fits.
        text = cut(msgspec.json.encode(facts).decode(), MAX_LINE_BYTES // 8)
        line = msgspec.json.encode({**head, "cut": text}) + b"\n"
    return line


def _as_text(kind: type[Event], facts: dict[str, Any], level: Level, now: float) -> bytes:
    stamp = time.strftime("%H:%M:%S", time.localtime(now))
    words = SENTENCES[kind](facts) if kind in SENTENCES else kind.__name__
    for name, phrase in (("suppressed", "similar lines left out"), ("dropped", "lines lost: nobody read them")):
        if name in facts:
            words += f" ({facts[name]} {phrase})"
    text = f"{stamp} {level.name:<7} {words}"
    if "traceback" in facts:
        text += "\n" + facts["traceback"].rstrip()
    encoded = text.encode()
    return (encoded if len(encoded) < MAX_LINE_BYTES else encoded[: MAX_LINE_BYTES - 4] + b"...") + b"\n"


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
    text = f"configuration taken over: {'; '.join(done) or 'no server touched'}"
    if stuck := facts["needs_restart"]:
        text += f"; {', '.join(stuck)} will take effect at the next start"
    undone = facts["undone"]
    return f"{text}; changes that were not written to the file are gone: {', '.join(undone)}" if undone else text


def _changed(facts: dict[str, Any]) -> str:
    lasts = "written to the file" if facts["is_persisted"] else "until the file is read again"
    what = f"{facts['path']} from {flat(facts['old'], 200)} to {flat(facts['new'], 200)}"
    return f"{facts['who']} changed {what}, {lasts}; revision {facts['revision']}"


SENTENCES: Final[dict[type[Event], Callable[[dict[str, Any]], str]]] = {
    events.GatewayStarted: lambda f: f"listening at {f['address']}, {f['servers']} servers configured",
    events.GatewayStopped: lambda f: f"stopped: {f['reason']}",
    events.ServerConnecting: lambda f: f"{f['server']}: connecting, attempt {f['attempt']}",
    events.ServerConnected: lambda f: f"{f['server']}: connected, {f['era']} {f['version']}, {f['duration_ms']:.0f} ms",
    events.ServerDiscovered: lambda f: f"{f['server']}: {f['tools']} tools",
    events.ServerDisconnected: lambda f: f"{f['server']}: connection lost: {f['reason']}",
    events.ServerFailed: lambda f: f"{f['server']}: no connection after {f['attempts']} attempts: {f['reason']}",
    events.DiscoveryFailed: lambda f: f"{f['server']}: its tools can't be listed: {f['reason']}",
    events.ConfigurationReloaded: _reloaded,
    events.ConfigurationRefused: lambda f: "the configuration was not taken over: " + "; ".join(f["problems"]),
    events.EffectsExceeded: lambda f: (
        f"{f['tool']} did what its contract does not allow: {', '.join(f['operations'])}"
        + (f", request {f['request_id']}" if f["request_id"] else ", after its answer")
    ),
    events.CodeReplaced: lambda f: (
        f"{f['tool']} failed with a code it does not declare: {f['code']}, request {f['request_id']}"
    ),
    events.ToolReported: lambda f: (
        f"{f['server']}: {f['tool'] or 'the file'} {f['what'].replace('_', ' ')}: {f['text']}"
    ),
    events.CacheFailed: lambda f: f"the cache could not {f['operation']}: {f['reason']}",
    events.CaptureEnded: lambda f: f"capture {f['path']}: {f['exchanges']} exchanges, {f['missing']} messages missing",
    events.CaptureFailed: lambda f: f"a session can't be recorded: {f['reason']}",
    events.ConfigurationChanged: _changed,
    events.ConfigurationRestored: lambda f: f"{f['who']}'s change of {f['path']} was taken back: {f['reason']}",
    events.AuditFailed: lambda f: (
        f"the audit log {f['file']} can't be written: {f['reason']}; calls {_AUDIT_POLICIES[f['policy']]}"
    ),
    events.AuditRecovered: lambda f: (
        f"the audit log {f['file']} is written again: {f['late']} records came late, {f['lost']} are lost and counted there"
    ),
    events.UpstreamNoise: lambda f: f"{f['server']}: {f['what']}" + (f": {f['sample']}" if f["sample"] else ""),
    events.CompositionHazard: lambda f: f"{f['severity']}: {f['message']} ({f['kind']})",
    events.RequestFinished: _request,
    events.RequestRefused: lambda f: f"request refused with {f['status']}: {f['reason']}",
    events.InternalFailure: lambda f: f"internal failure in {f['where']}, request {f['request_id']}: {f['error']}",
}
