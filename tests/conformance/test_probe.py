"""The connections of a probe."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from pactgate.conformance.probe import ProbeTarget, connected
from pactgate.core.failures import GatewayFailure
from pactgate.protocol.versions import Era

SERVER = Path(__file__).parent.parent / "support" / "stdio_upstream.py"


def target(**options: Any) -> ProbeTarget:
    return ProbeTarget(command=(sys.executable, str(SERVER), json.dumps(options)))


async def test_a_server_that_does_not_answer_is_given_up() -> None:
    with pytest.raises(GatewayFailure, match=r"within 0\.5 s"):
        async with connected(target(hang="handshake", era="legacy"), Era.LEGACY, 0.5):
            pass


async def test_a_program_that_is_not_there_is_said() -> None:
    with pytest.raises(GatewayFailure, match="not found on PATH"):
        async with connected(ProbeTarget(command=("no-such-program",)), None, 5):
            pass
