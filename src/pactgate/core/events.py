"""Everything that can be noticed, as frozen values in the past tense, and `Emit`, the way they leave a layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from pactgate.core.context import ExecutionRecord


class Event(Struct, frozen=True):
    """Base of all events; the class name is the event's name."""


class GatewayStarted(Event, frozen=True):
    address: str
    servers: int


class GatewayStopped(Event, frozen=True):
    reason: str


class ServerConnecting(Event, frozen=True):
    server: str
    attempt: int


class ServerConnected(Event, frozen=True):
    server: str
    era: str
    version: str
    attempts: int
    duration_ms: float


class ServerDisconnected(Event, frozen=True):
    server: str
    reason: str
    code: str


class ServerHung(Event, frozen=True):
    """A server left a request and then a probe unanswered: its connection is ended, and its process where it has one."""

    server: str
    silent_ms: float


class ServerFailed(Event, frozen=True):
    server: str
    attempts: int
    reason: str
    code: str


class ServerDiscovered(Event, frozen=True):
    server: str
    tools: int
    duration_ms: float


class DiscoveryFailed(Event, frozen=True):
    server: str
    reason: str


class UpstreamNoise(Event, frozen=True):
    """Something an upstream sent that is not a message we waited for: counted, never fatal by itself."""

    server: str
    what: str
    sample: str


class ConfigurationReloaded(Event, frozen=True):
    """`needs_restart` names sections that changed in the file but can't change while running.

    `undone` names settings that were changed while running and not written to the file: the file counts again.
    """

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]
    needs_restart: tuple[str, ...]
    undone: tuple[str, ...] = ()


class ConfigurationChanged(Event, frozen=True):
    """Somebody changed a setting of the running gateway. `old` and `new` are JSON."""

    who: str
    path: str
    old: str
    new: str
    revision: str
    is_persisted: bool


class ConfigurationRestored(Event, frozen=True):
    """A change was taken back, because with it the gateway was worse off or it could not be written down."""

    who: str
    path: str
    reason: str


class ConfigurationRefused(Event, frozen=True):
    """The file on disk has problems; what runs goes on as it was."""

    problems: tuple[str, ...]


class CompositionHazard(Event, frozen=True):
    """Something servers do to each other only by standing together. `severity` is hazard or note."""

    kind: str
    subject: str
    servers: tuple[str, ...]
    message: str
    severity: str


class ToolChanged(Event, frozen=True):
    """A server changed the definition of a tool it had listed before.

    `ignored` names hints that would loosen the category of the tool. They are not believed until the operator confirms them with
    `categories` or restarts the gateway.
    """

    server: str
    tool: str
    members: tuple[str, ...]
    old_digest: str
    new_digest: str
    ignored: tuple[str, ...] = ()


class EntriesChanged(Event, frozen=True):
    """A server lists other entries than before. `entries` is tools, prompts, resources, resource templates or instructions."""

    server: str
    entries: str
    added: int
    removed: int
    changed: int
    names: tuple[str, ...]


class DefinitionsDiffered(Event, frozen=True):
    """What a server offers is not what the lock file says. `names` are of its tools, prompts and others; `mode` is `lock.mode`."""

    server: str
    mode: str
    count: int
    names: tuple[str, ...]


class EffectsExceeded(Event, frozen=True):
    """A contract tool did something its contract does not allow. `request_id` is empty where it came after the answer."""

    server: str
    tool: str
    request_id: str
    operations: tuple[str, ...]


class OutputMismatched(Event, frozen=True):
    """A result that does not fit what its tool declares was passed on (`outputValidation: warn`)."""

    server: str
    tool: str
    request_id: str
    errors: tuple[str, ...]


class CodeReplaced(Event, frozen=True):
    """A contract tool failed with a code it does not declare; callers see a standard one in its place."""

    server: str
    tool: str
    request_id: str
    code: str


class ToolReported(Event, frozen=True):
    """What the runner of Python tools says outside of an answer. `what` is crashed, reloaded or not_reloaded."""

    server: str
    tool: str
    what: str
    text: str


class PermissionUndecided(Event, frozen=True):
    """The condition of a rule could not be decided for the arguments of a request, for example because of their types: it was denied."""

    request_id: str
    server: str
    name: str
    rule: int
    place: str
    reason: str


class CacheFailed(Event, frozen=True):
    """A store could not be asked or told; the call went on without it."""

    operation: str
    reason: str


class StoreFailed(Event, frozen=True):
    """The store that replicas share does not answer; what happens meanwhile, `state.onFailure` says."""

    reason: str


class StoreRestored(Event, frozen=True):
    """The store that replicas share answers."""


class ReplicaJoined(Event, frozen=True):
    """Another gateway shares the store. `address` is where it takes requests it owns."""

    replica: str
    address: str


class ReplicaVanished(Event, frozen=True):
    """Another gateway has stopped, or has not been heard of for some seconds. What it owned is gone."""

    replica: str


class CaptureEnded(Event, frozen=True):
    """A recorded session is in its file. `missing` messages came after the bound or faster than they could be written."""

    path: str
    exchanges: int
    missing: int


class CaptureFailed(Event, frozen=True):
    """A session can't be recorded any more; calls go on as before."""

    reason: str


class AuditFailed(Event, frozen=True):
    """The audit log can't be written. `policy` says what becomes of calls meanwhile: refuse or continue."""

    file: str
    reason: str
    policy: str


class AuditRecovered(Event, frozen=True):
    """The audit log is written again. `late` records were kept in memory and are in it now, `lost` ones are only counted there."""

    file: str
    late: int
    lost: int


class RequestFinished(Event, frozen=True):
    record: ExecutionRecord


class ListenOpened(Event, frozen=True):
    """A client has opened a `subscriptions/listen`, which may stay open for days. `watched` are kinds of lists and URIs of resources."""

    request_id: str
    subject: str
    client: str
    server: str | None
    watched: tuple[str, ...]


class ExportFailed(Event, frozen=True):
    """Traces can't be delivered; told once until they can be again."""

    reason: str


class RequestRefused(Event, frozen=True):
    """Refused before it became a request: Host, Origin, credentials, size, JSON. `peer` is the address of the client, `target` the
    method and the path over HTTP, as far as they are known."""

    status: int
    code: int | None
    reason: str
    peer: str = ""
    target: str = ""


class HandshakeFailed(Event, frozen=True):
    """A client connected and no TLS connection came of it."""

    peer: str
    reason: str


class CertificateReplaced(Event, frozen=True):
    """The files of `listen.tls` have changed; new connections get the new certificate."""

    file: str


class CredentialsRefused(Event, frozen=True):
    """Somebody sent credentials that are not known here. Told at the 1st, 10th, 100th ... attempt of an address, and at most once a minute.

    `attempts` are those of this address since it was last told of, `elsewhere` those of addresses that were not told of.
    """

    peer: str
    attempts: int
    elsewhere: int


class ConsoleOpened(Event, frozen=True):
    """Somebody has signed in to the console. A code that was used for it is no longer valid."""

    subject: str
    peer: str


class ConnectionsClosed(Event, frozen=True):
    """Connections without a request under way were closed to make room for one more from this address."""

    address: str
    count: int


class InternalFailure(Event, frozen=True):
    """An exception nobody expected. The text stays here; the wire only has the request id."""

    request_id: str
    where: str
    error: str
    traceback: str


Emit = Callable[[Event], None]


def describe(event: Event) -> dict[str, Any]:
    """The event as a flat mapping for logs."""
    return {"event": type(event).__name__, **{name: getattr(event, name) for name in event.__struct_fields__}}
