"""Who hears of what happens in a gateway: all see the same events, nobody sees a secret, and nothing is loaded for nobody."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pactgate.config.model import Config
from pactgate.core.events import Event, ServerFailed
from pactgate.observers import Observers
from pactgate.upstreams.http.client import HttpClient

OPTIONAL = (
    "pactgate.audit.audit_log",
    "pactgate.telemetry.trace_export",
    "pactgate.capture.recorder",
)


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


def test_what_the_configuration_does_not_ask_for_is_not_imported() -> None:
    code = (
        "import sys; from pactgate.app import build; from pactgate.config.model import Config;"
        "build(Config(), lambda event: None);"
        f"print([name for name in {OPTIONAL!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == "[]\n"
