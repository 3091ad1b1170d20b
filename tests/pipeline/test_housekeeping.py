"""What is done now and then."""

from __future__ import annotations

import pytest

from pactgate.config.sections.cache import Cache
from pactgate.core.events import CompositionHazard
from pactgate.pipeline import housekeeping
from tests.pipeline.conftest import Inside, open_gateway
from tests.support.eventually import eventually
from tests.support.servers import scripted


def hazards(inside: Inside) -> list[CompositionHazard]:
    return [event for event in inside.events if isinstance(event, CompositionHazard)]


async def test_hazards_among_the_servers_are_told_at_the_start_and_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeping, "HAZARDS_AFTER_S", 0.05)
    async with open_gateway(scripted("a"), scripted("b", options={"tools": ["extra"]})) as inside:
        await eventually(lambda: hazards(inside))
        first = len(hazards(inside))
        await inside.call("a.change", {"name": "another"})
        await eventually(
            lambda: "another" in {tool.name for tool in inside.gateway.connections.unfiltered.tools.entries()}
        )
        assert {hazard.subject for hazard in hazards(inside)} >= {"echo", "wire"}
        assert len(hazards(inside)) == first


async def test_what_has_expired_is_let_go_without_anybody_asking() -> None:
    async with open_gateway(cache=Cache(cleanup_interval_ms=100)) as inside:
        cache = inside.gateway._cache
        cache.put(b"key", b"value", ttl_ms=1, tag="files")
        await eventually(lambda: not cache.statistics().entries)
