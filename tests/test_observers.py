"""Who hears of what happens in a gateway: all see the same events, and nobody sees a secret."""

from __future__ import annotations

import pytest

from pactgate.config.model import Config
from pactgate.core.events import Event, ServerFailed
from pactgate.observers import Observers
from pactgate.upstreams.http.client import HttpClient


def failed(why: str) -> ServerFailed:
    return ServerFailed("crm", 1, why, "MCP_ECO_CONNECTION_FAILED")


async def test_what_becomes_known_as_a_secret_is_in_no_log_line_from_then_on(caplog: pytest.LogCaptureFixture) -> None:
    told, client = list[Event](), HttpClient()
    observers = Observers(Config(), client, servers=dict, gates=list, embedder=told.append)
    observers.know(name for name in ["a-secret-of-some-length"])
    observers.know_tokens(["a-token-of-some-length"])
    for secret in ("a-secret-of-some-length", "a-token-of-some-length"):
        observers.emit(failed(f"401 for {secret}"))
        assert "401 for ***" in caplog.records[-1].getMessage()
    assert len(told) == 2
    await observers.close()
    await client.close()
