"""Relays progress and log messages of a server to the client whose request they belong to.

A legacy client sets the lowest log level once per session, a modern client with each request. A modern server gets the level with the
request. A legacy server gets it by `logging/setLevel`, which the gateway lowers when a client wants more and never raises while the
connection lasts; messages below the level of a client are dropped here. A legacy client that set no level gets messages of legacy servers
from `info` on. Must not: relay a log message that may belong to another request (see `upstreams/peer.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from pactgate.core.context import ExecutionContext
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.values import Caller, CallerChannel
from pactgate.protocol import messages, modern
from pactgate.protocol.messages import Notification, Request, encode_json
from pactgate.protocol.versions import LEGACY, MODERN
from pactgate.upstreams.dialer import Session
from pactgate.upstreams.notification_router import OnNotice, OnProgress
from pactgate.upstreams.pending import in_task

PROGRESS: Final = "notifications/progress"
MESSAGE: Final = "notifications/message"
MAX_SESSIONS: Final = 100_000
_SET_LEVEL_S: Final = 2.0
_RANK: Final = {level: rank for rank, level in enumerate(modern.LOG_LEVELS)}
_UNASKED: Final = "info"


class _LevelParams(Struct):
    level: str


class _Message(Struct):
    level: str


_level_params: Final = msgspec.json.Decoder(_LevelParams)
_message: Final = msgspec.json.Decoder(_Message)


class NotificationRelay:
    """The log levels of legacy sessions, and the relays of single requests."""

    def __init__(self) -> None:
        self._levels: dict[str, str] = {}

    async def set_level(self, ctx: ExecutionContext, request: Request) -> bytes:
        try:
            level = _level_params.decode(request.params or b"{}").level
        except msgspec.DecodeError:
            level = ""
        if level not in _RANK:
            raise GatewayFailure(Kind.INVALID_PARAMS, f"The level must be one of {', '.join(modern.LOG_LEVELS)}.")
        session = ctx.caller.session
        if session is None or len(self._levels) >= MAX_SESSIONS:
            raise GatewayFailure(Kind.OVERLOADED, "There are as many sessions with a log level as there may be.")
        self._levels[session] = level
        return b"{}"

    def left(self, session: str) -> None:
        """A legacy session has ended."""
        self._levels.pop(session, None)

    def level_of(self, caller: Caller) -> str | None:
        """From which level on this request wants log messages; None where nothing was said."""
        if caller.log_level is not None:
            return caller.log_level
        return self._levels.get(caller.session) if self._levels and caller.session is not None else None

    def is_silent(self, caller: Caller, session: Session) -> bool:
        """Whether nobody has said anything about log messages, and none would be passed on unasked."""
        if self._levels or caller.log_level is not None:
            return False
        return caller.era is MODERN or session.identity.era is MODERN

    def on_log(self, caller: Caller, session: Session) -> OnNotice | None:
        """The relay for log messages of a request, or None."""
        level = self.level_of(caller)
        if level is None:
            if caller.era is MODERN or session.identity.era is MODERN:
                return None
            level = _UNASKED
        return _relay_log(caller.channel, _RANK[level])

    def stamp(self, caller: Caller, session: Session, meta: Mapping[str, Raw]) -> Mapping[str, Raw]:
        """The `_meta` of the request, with the level where a modern server is to be told one."""
        level = self.level_of(caller)
        if level is None or session.identity.era is LEGACY:
            return meta
        return {**meta, modern.LOG_LEVEL_KEY: Raw(encode_json(level))}

    def prepare(self, caller: Caller, session: Session) -> Awaitable[None] | None:
        """Lower the level of a legacy server to that of this caller. Returns an awaitable if a request is needed for it."""
        level = self.level_of(caller)
        if level is None or not _has_levels(session):
            return None
        if session.log_level is not None and _RANK[session.log_level] <= _RANK[level]:
            return None
        session.log_level = level
        return self._set(session, level)

    async def _set(self, session: Session, level: str) -> None:
        """Set the level of a legacy server. If it refuses, it sends what it likes."""
        await in_task()
        try:
            async with asyncio.timeout(_SET_LEVEL_S):
                await session.peer.request("logging/setLevel", {"level": Raw(encode_json(level))})
        except (GatewayFailure, TimeoutError):
            return


def relay_progress(channel: CallerChannel, token: Raw | None) -> OnProgress | None:
    """Progress for the caller, under the token the caller chose; None where it chose none."""
    if token is None:
        return None

    def relay(members: dict[str, Raw]) -> None:
        told: dict[str, Any] = {"progressToken": token, **members}
        channel.notify(PROGRESS, encode_json(told))

    return relay


def _relay_log(channel: CallerChannel, lowest: int) -> OnNotice:
    def relay(notification: Notification) -> None:
        if notification.params is not None and _rank_of(notification.params) >= lowest:
            channel.notify(MESSAGE, notification.params)

    return relay


def _rank_of(params: bytes) -> int:
    """The rank of the level of a message; -1, below all levels, if it has none."""
    try:
        return _RANK.get(_message.decode(params).level, -1)
    except msgspec.DecodeError:
        return -1


def _has_levels(session: Session) -> bool:
    return session.identity.era is LEGACY and "logging" in session.identity.capabilities


def token_of(meta: Mapping[str, Raw], method: str) -> Raw | None:
    """The progress token of a request's `_meta`. Raises for a value that can't be a token."""
    token = meta.get("progressToken")
    if token is not None and messages.id_key(bytes(token)) is None:
        raise GatewayFailure(
            Kind.INVALID_PARAMS, f"The params of {method} can't be used: progressToken must be a string or an integer."
        )
    return token
