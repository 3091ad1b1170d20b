"""The configuration in force: changes and reloads one after the other, and each holds or leaves everything as it was."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from pactgate.catalog.connections import ServerChanges
from pactgate.config import change
from pactgate.config.model import Config
from pactgate.config.problems import Path
from pactgate.config.sections.limits import Limits
from pactgate.config.server_settings import ServerConfig
from pactgate.core.events import ConfigurationChanged, ConfigurationReloaded, ConfigurationRestored, Event
from pactgate.core.failures import ErrorCode, GatewayFailure, Kind
from pactgate.pipeline.live_configuration import LiveConfiguration, Wish

SIZE = ("limits", "maxArraySize")
CONFIG = Config(servers={"a": ServerConfig(id="a", command="a"), "b": ServerConfig(id="b", command="b", enabled=False)})


class Stage:
    """A gateway reduced to what a change can do to it."""

    def __init__(self, config: Config = CONFIG) -> None:
        self.config = config
        self.applied: list[Config] = []
        self.events: list[Event] = []
        self.kept: list[tuple[Path, Any]] = []
        self.connected = {"a"}
        self.cost: set[str] = set()
        self.refusal: Exception | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        self.live = LiveConfiguration(
            lambda: self.config,
            apply=self._apply,
            connected=lambda: set(self.connected),
            keep=self._keep,
            emit=self.events.append,
            health_window_s=0.05,
        )

    async def _apply(self, config: Config) -> ServerChanges:
        await self.gate.wait()
        touched = tuple(id_ for id_ in config.servers if config.servers[id_] != self.config.servers[id_])
        self.connected = {"a"} - self.cost if touched and not self.applied else {"a"}
        self.config = config
        self.applied.append(config)
        return ServerChanges(changed=touched)

    def _keep(self, running: Config, path: Path, value: Any) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.kept.append((path, value))

    async def set(self, path: Path, value: Any, **more: Any) -> Any:
        return await self.live.change(Wish(path, value, "ops", **more))

    async def refused(self, path: Path, value: Any, **more: Any) -> GatewayFailure:
        before = self.config
        with pytest.raises(GatewayFailure) as raised:
            await self.set(path, value, **more)
        assert change.shown(self.config) == change.shown(before)
        return raised.value


async def test_a_change_is_applied_told_and_named() -> None:
    stage = Stage()
    done = await stage.set(SIZE, 5)
    assert (done.old, done.new, done.is_persisted, done.needs_restart) == (100, 5, False, ())
    assert done.revision == change.revision(stage.config)
    assert stage.config.limits.max_array_size == 5
    assert stage.live.unwritten == ("limits.maxArraySize",)
    assert stage.events == [ConfigurationChanged("ops", "limits.maxArraySize", "100", "5", done.revision, False)]
    assert stage.kept == []


async def test_of_two_changes_of_the_same_revision_one_wins_and_the_other_is_told_which_is_in_force() -> None:
    stage = Stage()
    seen = change.revision(stage.config)
    outcomes = await asyncio.gather(
        stage.set(SIZE, 5, expected=seen), stage.set(SIZE, 6, expected=seen), return_exceptions=True
    )
    lost = [outcome for outcome in outcomes if isinstance(outcome, GatewayFailure)]
    assert len(lost) == 1
    assert (lost[0].kind, lost[0].code) == (Kind.CONFLICT, ErrorCode.CONFLICT)
    assert lost[0].details["currentRevision"] == change.revision(stage.config)
    assert len(stage.applied) == 1


async def test_changes_without_a_revision_follow_each_other_and_none_is_lost() -> None:
    stage = Stage()
    await asyncio.gather(*(stage.set(("limits", "toolArrayLimits", f"a.t{n}"), n) for n in range(20)))
    assert stage.config.limits.tool_array_limits == {f"a.t{n}": n for n in range(20)}


async def test_a_bad_change_applies_nothing_and_says_nothing() -> None:
    stage = Stage()
    assert (await stage.refused(SIZE, -1)).code is ErrorCode.INVALID_INPUT
    assert (stage.applied, stage.events) == ([], [])


async def test_what_only_a_start_takes_over_has_to_be_written() -> None:
    stage = Stage()
    failure = await stage.refused(("limits", "maxInFlight"), 5)
    assert "persist" in failure.message
    done = await stage.set(("limits", "maxInFlight"), 5, persist=True)
    assert done.needs_restart == ("limits",)


async def test_a_change_that_costs_a_server_its_connection_is_taken_back() -> None:
    stage = Stage()
    stage.cost = {"a"}
    failure = await stage.refused(("mcpServers", "b", "enabled"), True, persist=True)
    assert (failure.kind, failure.code) == (Kind.CHANGE_UNDONE, ErrorCode.OPERATION_FAILED)
    assert "with it a lost its connection. Everything is as it was." in failure.message
    assert [type(event) for event in stage.events] == [ConfigurationRestored]
    assert stage.kept == []
    assert stage.live.unwritten == ()


async def test_a_server_that_is_switched_off_is_not_missed() -> None:
    stage = Stage()
    stage.cost = {"a"}
    done = await stage.set(("mcpServers", "a", "enabled"), False)
    assert (done.old, done.new) == (True, False)


@pytest.mark.parametrize("refusal", [OSError(28, "No space left on device"), GatewayFailure(Kind.CHANGE_UNDONE, "no")])
async def test_a_change_that_can_not_be_written_is_taken_back(refusal: Exception) -> None:
    stage = Stage()
    stage.refusal = refusal
    failure = await stage.refused(SIZE, 5, persist=True)
    assert failure.kind is Kind.CHANGE_UNDONE
    assert [config.limits.max_array_size for config in stage.applied] == [5, 100]


async def test_a_file_that_somebody_else_changed_is_a_conflict() -> None:
    stage = Stage()
    stage.refusal = GatewayFailure(Kind.CONFLICT, "the file says something else")
    assert (await stage.refused(SIZE, 5, persist=True)).kind is Kind.CONFLICT


async def test_a_change_is_brought_to_its_end_when_whoever_asked_has_gone() -> None:
    stage = Stage()
    stage.gate.clear()
    asking = asyncio.create_task(stage.set(SIZE, 5))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    stage.gate.set()
    await stage.live.close()
    assert stage.config.limits.max_array_size == 5
    assert [type(event) for event in stage.events] == [ConfigurationChanged]


async def test_a_change_that_fails_after_whoever_asked_has_gone_disturbs_nobody() -> None:
    stage = Stage()
    stage.gate.clear()
    stage.refusal = OSError("gone")
    asking = asyncio.create_task(stage.set(SIZE, 5, persist=True))
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.wait({asking})
    stage.gate.set()
    await stage.live.close()
    assert stage.config.limits.max_array_size == 100


async def test_reading_the_file_again_drops_what_was_not_written_and_says_so() -> None:
    stage = Stage()
    await stage.set(SIZE, 5)
    await stage.set(("limits", "maxObjectDepth"), 5, persist=True)
    assert stage.live.unwritten == ("limits.maxArraySize",)
    await stage.live.replace(stage.live.written, only_if_news=False)
    assert (stage.config.limits.max_array_size, stage.config.limits.max_object_depth) == (100, 5)
    told = stage.events[-1]
    assert isinstance(told, ConfigurationReloaded)
    assert told.undone == ("limits.maxArraySize",)
    assert stage.live.unwritten == ()


async def test_a_file_that_we_wrote_ourselves_is_no_news_and_drops_nothing() -> None:
    stage = Stage()
    await stage.set(SIZE, 5)
    await stage.set(("limits", "maxObjectDepth"), 5, persist=True)
    await stage.live.replace(stage.live.written, only_if_news=True)
    assert stage.config.limits.max_array_size == 5
    await stage.live.replace(Config(servers=CONFIG.servers, limits=Limits(max_array_size=9)), only_if_news=True)
    assert stage.config.limits.max_array_size == 9


async def test_a_value_that_is_again_what_the_file_says_is_not_unwritten() -> None:
    stage = Stage()
    await stage.set(SIZE, 5)
    await stage.set(SIZE, 100)
    assert stage.live.unwritten == ()


async def test_an_entry_that_was_not_there_has_no_old_value() -> None:
    stage = Stage()
    path = ("rateLimits", "tools", "a.*")
    done = await stage.set(path, {"rpm": 5, "burst": 1})
    assert (done.old, done.new) == (None, {"rpm": 5, "burst": 1})
    gone = await stage.set(path, None)
    assert gone.new is None


async def test_a_planned_change_changes_nothing_and_says_what_it_would_do() -> None:
    stage = Stage()
    before = stage.config
    planned = stage.live.plan(Wish(SIZE, 5, "ops"))
    assert (planned.old, planned.new, planned.is_persisted, planned.needs_restart) == (100, 5, False, ())
    with pytest.raises(GatewayFailure, match="maxArraySize"):
        stage.live.plan(Wish(SIZE, "many", "ops"))
    assert (stage.config, stage.applied, stage.events, stage.live.unwritten) == (before, [], [], ())


async def test_a_setting_that_was_written_to_the_file_comes_from_there() -> None:
    stage = Stage(msgspec.structs.replace(CONFIG, file="/etc/pactgate.json", origins={"log.level": "pactgate.json:3"}))
    await stage.set(SIZE, 5, persist=True)
    assert stage.config.origins == {"log.level": "pactgate.json:3", "limits.maxArraySize": "pactgate.json"}
    await stage.set(SIZE, None, persist=True)
    assert stage.config.origins == {"log.level": "pactgate.json:3"}
