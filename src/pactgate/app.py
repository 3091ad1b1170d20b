"""The composition root: from a configuration to a running gateway. The only module that names concrete classes of every layer.

Owns what has to be ended, and ends it in reverse order: endpoints, servers, outgoing connections, the child reaper.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from pactgate import __version__
from pactgate.catalog.connections import Connections, ServerChanges
from pactgate.catalog.definition_pins import Pinning
from pactgate.catalog.discovery_report import DiscoveryReport
from pactgate.catalog.name_resolution import NameResolution
from pactgate.catalog.own_catalogs import OwnCatalogs
from pactgate.catalog.surfaces import Surfaces, ViewSettings
from pactgate.catalog.views import View
from pactgate.config.load import load
from pactgate.config.model import Config
from pactgate.config.problems import Path as SettingPath
from pactgate.config.server_settings import ServerConfig
from pactgate.config.value_checks import OWN_SERVER_ID
from pactgate.core.events import CacheFailed, Emit, Event, GatewayStarted, GatewayStopped
from pactgate.core.fault_barrier import FaultBarrier
from pactgate.core.values import Caller
from pactgate.endpoint import HttpEndpoint
from pactgate.library import Library
from pactgate.observers import Observers
from pactgate.outgoing import Outgoing, shared_client
from pactgate.pipeline import gates, status
from pactgate.pipeline.capabilities import relayable_of
from pactgate.pipeline.change_notifications import ChangeNotifications
from pactgate.pipeline.deadline import TimeoutQueue
from pactgate.pipeline.dispatch import Dispatch
from pactgate.pipeline.forward import Forward
from pactgate.pipeline.handlers import Handlers
from pactgate.pipeline.housekeeping import Housekeeping
from pactgate.pipeline.kernel import Kernel
from pactgate.pipeline.live_configuration import LiveConfiguration
from pactgate.pipeline.management import Management
from pactgate.pipeline.notification_relay import NotificationRelay
from pactgate.pipeline.server_requests import ServerRequestBridge
from pactgate.pipeline.subscriptions import Subscriptions
from pactgate.pipeline.task_owners import TaskOwners
from pactgate.pipeline.tool_policy import PolicyTable
from pactgate.policy.overload import Overload
from pactgate.policy.permissions.rules import Permissions, permission_settings
from pactgate.policy.rate_limits import RatePolicy
from pactgate.policy.result_cache import ResultCache
from pactgate.policy.result_pages import PagedResultStore
from pactgate.protocol.messages import encode_json
from pactgate.protocol.versions import Era
from pactgate.replicas import Replicas, replicas_of
from pactgate.sign_ins import SignIns
from pactgate.state.known_lists import KnownLists
from pactgate.state.memory_cache import MemoryCache
from pactgate.telemetry.snapshot import GatewaySnapshot, Gauge

NAME: Final = "pactgate"
GRACE_S: Final = 5.0
_PAGE_BYTES: Final = 262_144
_PAGE_FRAME_BYTES: Final = 512
_OWN: Final = ServerConfig(id=OWN_SERVER_ID, name="Pactgate itself")


def server_info() -> dict[str, Any]:
    return {"name": NAME, "title": "Pactgate", "version": __version__}


def _views(config: Config) -> ViewSettings:
    return ViewSettings({name: View(name, one) for name, one in config.views.items()}, config.callers)


def _keep(running: Config, path: SettingPath, value: Any) -> None:
    from pactgate.config.persist import keep  # the editors of files, for the few changes that are kept

    keep(running, path, value)


def _ignore(event: Event) -> None:
    return


def _nothing() -> None:
    return


def build(config: Config, emit: Emit, *, owns_process: bool = False) -> Gateway:
    """Everything wired, nothing started: no process, socket or task yet."""
    return Gateway(config, emit, owns_process=owns_process)


class Gateway:
    """A configured gateway. `start` begins connecting and returns at once; an endpoint is opened by `serve_http` or `serve_stdio`."""

    def __init__(self, config: Config, emit: Emit, *, owns_process: bool = False) -> None:
        """`owns_process`: nothing else runs in this process, so orphans of the servers may be adopted and ended."""
        self.config = config
        info = server_info()
        self._encoded_info = encode_json(info)
        client = shared_client(config)
        self.observers = observers = Observers(
            config,
            client,
            servers=lambda: self.config.servers,
            gates=lambda: [gate.name for gate in self.tool_call.gates],
            embedder=None if emit is _ignore else emit,
        )
        self._emit = observers.emit
        self.policies = PolicyTable(config, self._encoded_info)
        self.on_look_again: Callable[[], None] = _nothing
        """Called when another replica has taken rights away: the configuration may have changed."""
        self._replicas = self._shared(config)
        self._permissions = Permissions(config) if config.permissions else None
        self._views = _views(config)
        self._cache = MemoryCache(config.cache)
        self._pages = PagedResultStore(
            page_bytes=min(_PAGE_BYTES, config.response.max_response_bytes - _PAGE_FRAME_BYTES),
            new_id=self._replicas.new_id,
        )
        self._overload = Overload(
            max_in_flight=config.limits.max_in_flight,
            max_per_server=config.limits.max_in_flight_per_server,
            max_queued=config.limits.max_queued_per_server,
            is_shared=config.has_several_principals,
        )
        self.results = ResultCache(self._replicas.cache(self._cache, self._cache_stale), self._cache_failed)
        self._rates = RatePolicy(config.rate_limits, self._replicas.rates())
        self._waits_for_client = False
        self.sign_ins = SignIns(
            lambda: self.config,
            client,
            self._replicas.handoffs(),
            know=observers.know_tokens,
            address=lambda: self.http.address,
        )
        self._outgoing = Outgoing(
            lambda: self.config,
            client,
            self.sign_ins,
            observers,
            client_info=info,
            owns_process=owns_process,
        )
        self.configuration = LiveConfiguration(
            lambda: self.config,
            apply=self._apply,
            connected=lambda: {id_ for id_ in self.connections.servers if self.connections.connected(id_)},
            keep=_keep,
            emit=self._emit,
        )
        self._management = Management(
            info=info,
            configuration=self.configuration,
            connections=lambda: self.connections,
            rates=self._rates,
            book=lambda: self.policies,
            tell=observers.stories.get,
        )
        self.connections = Connections(
            config.servers.values(),
            lambda server: self._outgoing.dialer(server, self._management if server is _OWN else None),
            naming=config.naming.exposed,
            categories=config.categories,
            server_info=self._encoded_info,
            own_resources=(status.DEFINITION,),
            emit=self._emit,
            mask=observers.mask,
            max_age_s=config.discovery.discovery_interval_ms / 1000,
            first_list_wait_s=config.discovery.first_list_wait_ms / 1000,
            built_in=(_OWN,),
            permissions=self._permissions,
            views=self._views,
            pinning=Pinning(config.lock.mode, config.pins),
            known_lists=KnownLists(os.environ, config.file),
        )
        self.connections.on_catalog_changed = self._catalog_changed
        own_catalogs = OwnCatalogs(self.connections, self._emit, observers.mask)
        names = NameResolution(self.connections, own_catalogs)
        self._housekeeping = Housekeeping(self._cache, self._pages, self.connections, self._emit)
        self.relay = NotificationRelay()
        subscriptions = Subscriptions(
            self.connections, lambda server: self.policies.server_limit_ms(server), self._overload
        )
        self.changes = ChangeNotifications(
            self.connections, subscriptions, self._encoded_info, emit=self._emit, on_left=self.relay.left
        )
        self.connections.on_lists_changed = self.changes.on_lists_changed
        self.connections.on_surfaces_changed = self._surfaces_changed
        self.connections.on_updated = self.changes.on_updated
        self.facts = GatewaySnapshot(
            connections=self.connections,
            metrics=observers.metrics,
            cache=self._cache,
            results=self.results,
            overload=self._overload,
            rates=self._rates,
            timeout_of=lambda tool: self.policies.of(tool).limit,
            config=lambda: self.config,
            gauges=self._gauges,
            counters=self._counters,
        )
        self._status = status.Status(self.connections, self.facts.limits)
        self.bridge = ServerRequestBridge(
            self.connections,
            self.relay,
            signer=self._replicas.signer("request state"),
            input_s=lambda: self.policies.input_timeout_ms / 1000,
            replica=self._replicas.id,
            use_once=self._replicas.use_once,
            sign_ins=self.sign_ins.bridge,
        )
        self._tasks = tasks = TaskOwners(owned_id=self._replicas.owned_id)
        self._timeouts = TimeoutQueue(FaultBarrier(self._emit))
        self.tool_call = gates.tool_call(
            connections=self.connections,
            names=names,
            bridge=self.bridge,
            dispatch=Dispatch(self.connections, self._overload, self.results, self.bridge, self._replicas.on_write),
            rates=self._rates,
            results=self.results,
            pages=self._pages,
            tasks=tasks,
            policies=lambda: self.policies,
            timeouts=self._timeouts,
            server_info=self._encoded_info,
            emit=self._emit,
            mask=observers.mask,
        )
        forward = Forward(
            self.connections,
            names,
            self.results,
            lambda: self.policies,
            self.bridge,
            self._timeouts,
            tasks,
            self._overload,
            read_own=self._read_own,
            server_info=self._encoded_info,
            cursors=self._replicas.signer("cursor"),
            emit=self._emit,
        )
        handlers = Handlers(self.connections, own_catalogs, self.tool_call, forward, self.changes, self.relay, info)
        self.kernel = Kernel(
            handlers.table(),
            policies=lambda: self.policies,
            hearing=self.changes,
            emit=self._emit,
            mask=observers.mask,
            audit=observers.audit,
            rates=self._rates,
            tracer=None if observers.traces is None else observers.traces.tracer,
            on_notice=self.bridge.notice,
        )

        self._library = Library(self.kernel, client=f"{NAME}/{__version__}")
        self.http = HttpEndpoint(
            config,
            kernel=self.kernel,
            connections=self.connections,
            facts=self.facts,
            snapshot=self.snapshot,
            observers=observers,
            replicas=self._replicas,
            sign_ins=self.sign_ins,
            client=client,
            on_keys=partial(self._overload.share, True),
            on_token=lambda token: observers.know([token]),
            on_gone=self._forget,
        )

    async def start(self, *, connects: bool = True) -> None:
        """Without `connects`, the servers are started for the client of `serve_stdio`, when it has said what it offers."""
        await self.open_audit()
        self._waits_for_client = not connects
        if (
            connects
        ):  # before anything is waited for: the endpoint may be open, and the first list has to know whom to wait for
            self.connections.start()
        self.observers.start_traces()
        await self.sign_ins.start(self.connections)
        self._housekeeping.start(self.config.cache.cleanup_interval_ms)
        await self._replicas.start()

    async def serve_http(self) -> str:
        """Open the HTTP endpoint on the configured address and socket, and return its URL, or `unix:PATH` of a socket alone."""
        await self.open_audit()
        address = await self.http.open()
        self._emit(GatewayStarted(address, len(self.connections.servers)))
        return address

    async def open_audit(self) -> None:
        """Take hold of the audit log, where there is one; nothing is served before. Raises GatewayFailure."""
        await self.observers.open_audit()

    async def serve_stdio(
        self, scope: str | None = None, *, view: str | None = None, roles: frozenset[str] = frozenset()
    ) -> None:
        """Serve one caller on standard input and output until it goes away; with a `scope`, that server alone, or one view."""
        from pactgate.inbound.stdio_frontend import serve_stdio  # gateways over HTTP never need it

        await serve_stdio(
            self.kernel,
            emit=self._emit,
            scope=scope,
            view=view,
            roles=roles,
            max_message_bytes=self.config.limits.max_request_bytes,
            tap=self.observers.recorders.stdio_caller(),
            on_client=self._on_only_client,
        )

    def drain(self) -> float:
        """Say to load balancers that nothing new is to come, and return for how many seconds to go on serving."""
        self.http.drain()
        return self.config.listen.drain_ms / 1000

    def _on_only_client(self, caller: Caller) -> None:
        """The only client of the gateway: its capabilities are those of every session with a server."""
        if self._waits_for_client:
            self._waits_for_client = False
            self._outgoing.capabilities = offered = relayable_of(caller, Era.LEGACY)
            self.connections.start(offered)

    async def stop(self, grace_s: float = GRACE_S, *, reason: str = "asked to") -> None:
        """End everything, in reverse order, within the grace period and the shutdown steps of the child processes."""
        self.changes.close()
        leaving = asyncio.ensure_future(self._replicas.leave(grace_s))
        await self.http.end_connections(grace_s)
        await leaving
        await self._replicas.close()
        await self.http.close()
        await self.configuration.close()
        await self.bridge.close()
        await self.sign_ins.end_watch()
        await self.connections.stop()
        await self.sign_ins.close()
        self._timeouts.close()
        await self._housekeeping.stop()
        self._pages.clear()
        await self.observers.end_traces()
        await self._outgoing.close()
        await self.observers.close()
        self._emit(GatewayStopped(reason))

    @classmethod
    @asynccontextmanager
    async def open(cls, source: str | Path | Config, emit: Emit = _ignore) -> AsyncIterator[Gateway]:
        """A running gateway for a program of yours: `async with Gateway.open("pactgate.json") as gateway`."""
        config = source if isinstance(source, Config) else load(Path(source), environ=os.environ, overrides={})
        gateway = cls(config, emit)
        await gateway.start()
        try:
            yield gateway
        finally:
            await gateway.stop()

    async def invoke(
        self, tool_name: str, arguments: Mapping[str, Any] | None = None, *, timeout_ms: int | None = None
    ) -> dict[str, Any]:
        """Call one tool. The answer is always an envelope (success and data, or error; metadata), never an exception."""
        return await self._library.invoke(tool_name, arguments, timeout_ms=timeout_ms)

    async def reload(self, config: Config, *, only_if_news: bool = False) -> None:
        """Take over a valid configuration while running; servers it does not touch keep their processes and calls."""
        await self.configuration.replace(config, only_if_news=only_if_news)

    async def _apply(self, config: Config) -> ServerChanges:
        before, self.config = self.config, config
        self.observers.know(config.secrets)
        self.http.apply(config)
        if self.http.is_open and config.auth != before.auth:
            await self._replicas.rights_removed()
        self.policies = PolicyTable(config, self._encoded_info)
        if permission_settings(config) != permission_settings(before):
            self._permissions = Permissions(config) if config.permissions else None
        if (config.views, config.callers) != (before.views, before.callers):
            self._views = _views(config)
        self._rates.reconfigure(config.rate_limits)
        self._overload.share(config.has_several_principals)
        done = await self.connections.apply(
            config.servers.values(),
            naming=config.naming.exposed,
            categories=config.categories,
            permissions=self._permissions,
            views=self._views,
            pinning=Pinning(config.lock.mode, config.pins),
        )
        self.sign_ins.keep_only(config.servers)
        self.observers.server_logs.keep_only(config.servers)
        if config.cache != before.cache:
            for server in self.connections.servers:
                self.results.drop_server(server)  # what was kept was kept by other rules
        return done

    async def discover(
        self,
        *,
        force_refresh: bool = False,
        include_disabled: bool = False,
        server_ids: Collection[str] | None = None,
    ) -> DiscoveryReport:
        """What every server offers, one row each; never an exception."""
        return await self.connections.discover(only=server_ids, force=force_refresh, include_disabled=include_disabled)

    def snapshot(self) -> dict[str, Any]:
        """The state of the gateway as the admin API and the command line show it. No secrets, no command lines."""
        log = self.observers.audit
        audit = None if log is None else {"trouble": log.trouble}
        about = {"name": NAME, "version": __version__, "address": self.http.address, "audit": audit}
        return {**about, "state": self._replicas.facts(), **self.facts.snapshot()}

    def report(self, event: Event) -> None:
        """Count, log and pass on an event of the process around the gateway."""
        self._emit(event)

    def _counters(self) -> list[Gauge]:
        return [*self._replicas.counters(), *self.observers.counters()]

    def _gauges(self) -> list[Gauge]:
        return [
            *self.observers.gauges(),
            *self._replicas.gauges(),
            ("pactgate_children", "Processes of servers.", self._outgoing.child_count),
            ("pactgate_sessions", "Sessions of legacy clients over HTTP.", self.http.session_count),
            ("pactgate_suspended_calls", "Calls that wait until their client was asked.", self.bridge.suspended_count),
            (
                "pactgate_sign_ins_wanted",
                "Servers that wait until somebody signs in.",
                self.sign_ins.wanted_count,
            ),
        ]

    def _shared(self, config: Config) -> Replicas:
        """What this gateway shares with others."""
        if config.state.url is None:
            return replicas_of(config)
        from pactgate.stored_replicas import StoredReplicas  # one gateway alone does not pay for it

        return StoredReplicas(config, self._emit, self._look_again)

    def _catalog_changed(self, server: str) -> None:
        """What was kept of a server is about what it offered before."""
        self.results.drop_server(server)
        self._housekeeping.on_offer_changed()

    def _surfaces_changed(self, before: Surfaces) -> None:
        self.changes.on_surfaces_changed(before)
        self.bridge.recheck()

    def _cache_failed(self, operation: str, reason: str) -> None:
        self._emit(CacheFailed(operation, reason))

    def _cache_stale(self, server: str | None) -> None:
        """Another replica has changed something at this server, or it is not known at which one."""
        for one in self.connections.servers if server is None else (server,):
            self.results.drop_server(one)

    def _look_again(self) -> None:
        """Another replica has taken rights away."""
        self.http.check_again()
        self.on_look_again()

    def _read_own(self, uri: str, caller: Caller) -> bytes | None:
        access = self.connections.catalog_for(caller).access
        may_use = None if access is None else access.may_use
        return self._status.read(uri, caller) or self._pages.read_resource(caller.owner, uri, may_use)

    def _forget(self, subject: str) -> None:
        """Drop everything that is kept for a subject that may no longer call."""
        self.bridge.forget(subject)
        self._pages.forget(subject)
        self._tasks.forget(subject)
        self.connections.forget(subject)
        self.sign_ins.subject_tokens.forget(subject)
        self._cache_stale(None)
