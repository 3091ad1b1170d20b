"""Eighty lazy servers in the file cost next to nothing until they are used.

Takes a few seconds, because all of them are started once for their lists: that is what the next start remembers.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from pactgate.cli.gateway_client import GatewayClient
from tests.cli.program import Served, write_config
from tests.journeys.test_forty_servers import LIGHT_SERVER
from tests.support.eventually import eventually_blocking
from tests.support.processes import children_of

COUNT = 80
MAX_MIB = 60
REAPER = 1
"""The process that sees to it that no server outlives the gateway; it is there from the first server on."""

pytestmark = pytest.mark.timeout(120)


def listed(gateway: Served) -> int:
    """How many tools a client sees that lists once, as soon as the gateway listens."""
    return len(GatewayClient(gateway.url).ask("tools/list", {}, timeout_s=60)["result"]["tools"])


def resident_mib(pid: int) -> float:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


def test_eighty_lazy_servers_are_listed_whole_without_a_process_and_in_little_memory(tmp_path: Path) -> None:
    lazy = {"command": sys.executable, "args": ["-I", "-S", str(LIGHT_SERVER), "healthy"], "start": "lazy"}
    write_config(tmp_path, {f"s{number}": {**lazy, "idleTimeoutMs": 1000} for number in range(COUNT)})
    with Served(tmp_path) as gateway:
        assert listed(gateway) == 3 * COUNT  # the first start ever
        eventually_blocking(lambda: len(children_of(gateway.process.pid)) == REAPER)
        assert resident_mib(gateway.process.pid) < MAX_MIB
    with Served(tmp_path) as gateway:
        assert listed(gateway) == 3 * COUNT
        assert children_of(gateway.process.pid) == []
        assert resident_mib(gateway.process.pid) < MAX_MIB
        assert gateway.run("call", "s7__echo", "text=hello").stdout.strip() == "hello"
        assert len(children_of(gateway.process.pid)) == REAPER + 1
