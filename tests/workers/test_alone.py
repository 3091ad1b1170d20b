"""A gateway by itself: every place is there, and nothing is done differently."""

from __future__ import annotations

from typing import Any

from pactgate.config.model import Config
from pactgate.config.sections.cache import Cache
from pactgate.core.events import GatewayStarted
from pactgate.pipeline.live_configuration import NOBODY
from pactgate.policy.result_cache import Recall
from pactgate.state.guarded import GuardedStore
from pactgate.state.memory_cache import MemoryCache
from pactgate.workers.alone import ALONE
from tests.support.facing import NoStories


async def test_whatever_is_given_is_what_is_used() -> None:
    async def handle(exchange: Any) -> None:
        return

    config, stories = Config(), NoStories()
    assert ALONE.bounds(config) is config
    assert ALONE.handle(handle) is handle
    assert ALONE.stories(stories) is stories
    assert ALONE.own_file("/var/log/audit.jsonl") == "/var/log/audit.jsonl"
    assert ALONE.lend is None
    assert ALONE.colleagues is NOBODY
    assert await ALONE.tell_elsewhere("any") is None
    assert type(ALONE.recall(GuardedStore(MemoryCache(Cache())))) is Recall
    assert isinstance(ALONE.started("http://127.0.0.1:1", 2), GatewayStarted)
    assert len(ALONE.token()) >= 32
    assert ALONE.token() != ALONE.token()
