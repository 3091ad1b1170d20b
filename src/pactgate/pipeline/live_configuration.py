"""The configuration in force, and the one way to change it while running: planned, compared, applied, written, or taken back.

Changes and reloads of the file wait for each other, so each sees what the one before left. A change that was begun is brought to an end
even when whoever asked for it goes away: it holds, or everything is as it was. It is taken back when applying it fails, when it costs a
server its connection, and when it should be written to the file and can't be. What was not written to the file lasts until the file is
read again. Must not: know what applying means. Enforces D13.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple, Protocol

from msgspec.structs import replace

from pactgate.catalog.connections import ServerChanges
from pactgate.config import change
from pactgate.config.model import Config
from pactgate.config.problems import Path, spell
from pactgate.core.events import ConfigurationChanged, ConfigurationReloaded, ConfigurationRestored, Emit
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.protocol.messages import encode_json

HEALTH_WINDOW_S: Final = 2.0
_LOOK_EVERY_S: Final = 0.02
_MAX_EVENT_CHARS: Final = 2000


class Keeper(Protocol):
    """Writes a setting into the operator's file. Raises `GatewayFailure` and leaves the file as it was, or has written it."""

    def __call__(self, running: Config, path: Path, value: Any) -> None: ...


class Wish(NamedTuple):
    """What somebody wants changed. `expected` is the revision the wish is based on, if that matters to them."""

    path: Path
    value: Any
    who: str
    expected: str | None = None
    persist: bool = False


class Changed(NamedTuple):
    old: Any
    new: Any
    revision: str
    is_persisted: bool
    needs_restart: tuple[str, ...]


class LiveConfiguration:
    """`apply` makes a configuration the running one and says what that did to servers; `connected` are those in use now."""

    def __init__(
        self,
        current: Callable[[], Config],
        *,
        apply: Callable[[Config], Awaitable[ServerChanges]],
        connected: Callable[[], set[str]],
        keep: Keeper,
        emit: Emit,
        health_window_s: float = HEALTH_WINDOW_S,
    ) -> None:
        self._current = current
        self._apply = apply
        self._connected = connected
        self._keep = keep
        self._emit = emit
        self._health_window_s = health_window_s
        self._turn = asyncio.Lock()
        self._under_way: set[asyncio.Task[Changed]] = set()
        self._unwritten: dict[str, Path] = {}
        self._written = current()

    @property
    def current(self) -> Config:
        return self._current()

    @property
    def written(self) -> Config:
        """As the file was last read."""
        return self._written

    @property
    def unwritten(self) -> tuple[str, ...]:
        """The settings that were changed while running and are not in the file."""
        return tuple(self._unwritten)

    async def change(self, wish: Wish) -> Changed:
        """Raises what is wrong with the wish, or why it was taken back; nothing is changed then."""
        task = asyncio.create_task(self._change(wish), name=f"changing {spell(wish.path)}")
        self._under_way.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    def plan(self, wish: Wish) -> Changed:
        """What a change would do, if it can be made; nothing is changed. Raises what is wrong with the wish."""
        before, after = self._plan(wish)
        needs_restart = change.needs_restart(before, after)
        return Changed(
            _value(before, wish.path), _value(after, wish.path), change.revision(before), False, needs_restart
        )

    async def replace(self, config: Config, *, only_if_news: bool) -> None:
        """Take over the file as it was just read. Changes that were not written to it are dropped, and that is said.

        With `only_if_news` a file that says what it said before, as one that we wrote ourselves does, drops nothing.
        """
        async with self._turn:
            if only_if_news and _said(config) == _said(self._written):
                return
            before = self._current()
            done = await self._apply(config)
            undone, self._unwritten, self._written = self.unwritten, {}, config
            stuck = change.needs_restart(before, config)
            self._emit(ConfigurationReloaded(done.added, done.removed, done.changed, stuck, undone))

    async def close(self) -> None:
        """Wait for changes under way; each is bounded."""
        if self._under_way:
            await asyncio.wait(self._under_way)

    def _ended(self, task: asyncio.Task[Changed]) -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            task.exception()  # whoever asked may be gone; the outcome was told as an event

    async def _change(self, wish: Wish) -> Changed:
        async with self._turn:
            before, after = self._plan(wish)
            if wish.persist:
                after = replace(after, origins=_origins(after, wish))
            await self._make_it_so(wish, before, after)
            return self._done(wish, before, after)

    def _plan(self, wish: Wish) -> tuple[Config, Config]:
        """The configuration before and after."""
        before = self._current()
        held = change.revision(before)
        if wish.expected is not None and wish.expected != held:
            raise _conflict(wish, held)
        after = change.plan(before, wish.path, wish.value)
        if not wish.persist and (stuck := change.needs_restart(before, after)):
            raise _pointless(wish, stuck)
        return before, after

    async def _make_it_so(self, wish: Wish, before: Config, after: Config) -> None:
        in_use = self._connected()
        try:
            done = await self._apply(after)
            if done.changed:
                await self._require_health(in_use, after)
            if wish.persist:
                await asyncio.to_thread(self._keep, self._written, wish.path, wish.value)
        except (GatewayFailure, OSError) as failure:
            reason = failure.message if isinstance(failure, GatewayFailure) else str(failure)
            await self._apply(before)
            self._emit(ConfigurationRestored(wish.who, spell(wish.path), reason))
            if isinstance(failure, GatewayFailure) and failure.kind is Kind.CONFLICT:
                raise
            raise _undone(wish, reason, failure) from failure

    async def _require_health(self, in_use: set[str], after: Config) -> None:
        """Servers that were connected, and are to be, still are or are again within the window."""
        loop = asyncio.get_running_loop()
        needed = {id_ for id_ in in_use if id_ in after.servers and after.servers[id_].enabled}
        until = loop.time() + self._health_window_s
        while lost := needed - self._connected():
            if loop.time() >= until:
                raise GatewayFailure(Kind.CHANGE_UNDONE, f"with it {', '.join(sorted(lost))} lost its connection")
            await asyncio.sleep(_LOOK_EVERY_S)

    def _done(self, wish: Wish, before: Config, after: Config) -> Changed:
        name = spell(wish.path)
        if wish.persist:
            self._written = change.plan(self._written, wish.path, wish.value)
        old, new = _value(before, wish.path), _value(after, wish.path)
        if new == _value(self._written, wish.path):
            self._unwritten.pop(name, None)
        else:
            self._unwritten[name] = wish.path
        revision = change.revision(after)
        self._emit(ConfigurationChanged(wish.who, name, _brief(old), _brief(new), revision, wish.persist))
        return Changed(old, new, revision, wish.persist, change.needs_restart(before, after))


def _said(config: Config) -> Config:
    """What a file says, wherever in it."""
    return replace(config, warnings=(), rule_places=(), origins={})


def _origins(config: Config, wish: Wish) -> dict[str, str]:
    """Where settings come from after one was written to the file, or taken out of it. The lines are read with the file."""
    others = {name: place for name, place in config.origins.items() if name != spell(wish.path[:2])}
    is_default = wish.value is None and len(wish.path) <= 2
    return (
        others if is_default or config.file is None else {**others, spell(wish.path[:2]): os.path.basename(config.file)}
    )


def _value(config: Config, path: Path) -> Any:
    """None for an entry that is not there, such as a rule for a tool before there was one."""
    try:
        return change.value_at(config, path)
    except GatewayFailure:
        return None


def _brief(value: Any) -> str:
    text = encode_json(value).decode()
    return text if len(text) <= _MAX_EVENT_CHARS else f"{text[:_MAX_EVENT_CHARS]}..."


def _conflict(wish: Wish, held: str) -> GatewayFailure:
    return GatewayFailure(
        Kind.CONFLICT,
        f"{spell(wish.path)} was not changed: the configuration is at revision {held}, not {wish.expected}. "
        "Look at it again, then decide.",
        details={"currentRevision": held, "expectedRevision": wish.expected},
    )


def _pointless(wish: Wish, stuck: tuple[str, ...]) -> GatewayFailure:
    return GatewayFailure(
        Kind.INVALID_ARGUMENTS,
        f"{spell(wish.path)} takes effect at the next start only, so it would be lost. Set it with persist, then restart.",
        details={"needsRestart": list(stuck)},
    )


def _undone(wish: Wish, reason: str, cause: Exception) -> GatewayFailure:
    return GatewayFailure(
        Kind.CHANGE_UNDONE,
        f"The change of {spell(wish.path)} was taken back: {reason.rstrip('.')}. Everything is as it was.",
        details={**(cause.details if isinstance(cause, GatewayFailure) else {}), "path": spell(wish.path)},
    )
