"""A whole run: the servers, the gateway, the checks, and the end of all that was started, also when the run is interrupted.

Must not: write to the terminal, or judge.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urljoin

from msgspec import Struct

from pactgate.conformance.gateway.check import Check
from pactgate.conformance.gateway.dialects import DIALECTS, GatewayDialect
from pactgate.conformance.gateway.fleet import SERVERS, Fleet
from pactgate.conformance.gateway.gateway_process import GatewayProcess, StartError, free_port
from pactgate.conformance.gateway.recording import RunRecording
from pactgate.conformance.gateway.registration import register
from pactgate.conformance.gateway.runner import play
from pactgate.conformance.gateway.under_test import GatewayUnderTest

_POLL_S: Final = 0.3


class RunPlan(Struct, frozen=True):
    """What the command line said. Without `start` the operator starts the gateway, with the configuration that `announce` gets."""

    checks: Sequence[type[Check]]
    dialect: str = "common"
    url: str = ""
    start: str = ""
    name: str = ""
    identity: Mapping[str, str] = {}
    wait_s: float = 60.0
    era: str = ""
    """Clients of this era only; empty: of both."""
    servers: Sequence[str] = ()
    """The ids of the servers to start; empty: all that the gateway can carry."""


async def run(
    plan: RunPlan, folder: Path, tell: Callable[[str], None], announce: Callable[[Path, str], None]
) -> RunRecording:
    """What it writes goes into `folder`. Raises FleetError, StartError or UnreachableError when nothing could be played."""
    dialect = DIALECTS[plan.dialect]
    left_out = {tag: why for tag in SERVERS if (why := _why_not(plan, dialect, tag))}
    tags = [tag for tag in SERVERS if tag not in left_out]
    fleet, process = Fleet(folder, plan.checks, tags), GatewayProcess(folder / "gateway.log")
    gateway: GatewayUnderTest | None = None
    try:
        tell("starting the scripted servers")
        await fleet.start()
        url = await _start(plan, dialect, fleet, process, announce)
        urls = {tag: url.replace("{server}", SERVERS[tag].id) or fleet.urls[tag] for tag in tags}
        identity = {**dialect.headers, **plan.identity}
        gateway = GatewayUnderTest(urls, identity, is_direct=dialect.is_transparent, era=plan.era)
        if dialect.register:
            tell("registering the scripted servers")
            bodies = [json.dumps(body).encode() for body in json.loads(dialect.write(fleet.entries()))]
            await register(urljoin(url, dialect.register), bodies, identity, plan.wait_s)
        await _wait(gateway, process, plan.wait_s, tell)
        return await play(
            gateway,
            fleet.logs,
            plan.checks,
            left_out,
            tell,
            name=plan.name,
            process=process if plan.start else None,
        )
    finally:
        if gateway is not None:
            await gateway.close()
        await process.close()
        await fleet.close()


def _why_not(plan: RunPlan, dialect: GatewayDialect, tag: str) -> str:
    """Why a server is not behind the gateway; empty where it is."""
    if dialect.carries is not None and tag not in dialect.carries:
        return dialect.why
    return f"{SERVERS[tag].id} is not among --servers" if plan.servers and SERVERS[tag].id not in plan.servers else ""


async def _start(
    plan: RunPlan, dialect: GatewayDialect, fleet: Fleet, process: GatewayProcess, announce: Callable[[Path, str], None]
) -> str:
    """Write the configuration, start the gateway where that is asked for; its address."""
    if dialect.name == "direct":
        return ""
    port = str(free_port())
    config = fleet.folder / f"gateway{dialect.suffix}"
    written = dialect.write(fleet.entries()).replace("{port}", port).replace("{config}", str(config))
    config.write_text(written)
    if not plan.start:
        announce(config, written)
        return plan.url
    await process.start(plan.start, {"config": str(config), "port": port, "command": written})
    return plan.url.replace("{port}", port) or f"http://127.0.0.1:{port}{dialect.path}"


async def _wait(
    gateway: GatewayUnderTest, process: GatewayProcess, limit_s: float, tell: Callable[[str], None]
) -> None:
    """Wait for the tools, and see at once when the gateway ends instead."""
    waiting = asyncio.create_task(gateway.wait(limit_s, tell))
    try:
        while not waiting.done():
            process.require_running()
            await asyncio.wait([waiting], timeout=_POLL_S)
        await waiting
    except StartError:
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        raise
