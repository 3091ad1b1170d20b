"""Plays checks against a gateway and keeps what passed. The harmless ones run side by side, the others after them, alone.

Every wait is bounded, and so is the whole run. A check that raises is an error of that check only. Must not: judge.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from pactgate.conformance.gateway.check import PROFILE_VERSION, Check
from pactgate.conformance.gateway.gateway_process import GatewayProcess
from pactgate.conformance.gateway.lab import Lab, NotApplicableError
from pactgate.conformance.gateway.recording import CheckRecording, RunRecording
from pactgate.conformance.gateway.server_log import ScriptedLogs
from pactgate.conformance.gateway.under_test import GatewayUnderTest

RUN_S: Final = 170.0
CHECK_S: Final = 60.0
_AT_ONCE: Final = 8


async def play(
    gateway: GatewayUnderTest,
    logs: ScriptedLogs,
    checks: Sequence[type[Check]],
    why_not: Mapping[str, str],
    tell: Callable[[str], None],
    *,
    name: str = "",
    process: GatewayProcess | None = None,
) -> RunRecording:
    """The recording of a run. The gateway lists its tools by now (`GatewayUnderTest.wait`)."""
    ends = time.monotonic() + RUN_S
    room = asyncio.Semaphore(_AT_ONCE)
    done: dict[str, CheckRecording] = {}

    async def one(check: type[Check]) -> None:
        async with room:
            done[check.code] = await play_one(
                check(), Lab(gateway, logs, why_not, process), logs, ends - time.monotonic()
            )
            tell(f"{len(done)} of {len(checks)} checks")

    await asyncio.gather(*(one(check) for check in checks if not check.runs_alone))
    for check in checks:
        if check.runs_alone:
            await one(check)
    recordings = tuple(done[check.code] for check in checks)
    return RunRecording(profile=PROFILE_VERSION, gateway=name or gateway.implementation(), checks=recordings)


async def play_one(check: Check, lab: Lab, logs: ScriptedLogs, left_s: float) -> CheckRecording:
    """One check, within its time."""
    begun, reason, error = time.time(), "", ""
    try:
        async with asyncio.timeout(max(0.0, min(CHECK_S, left_s))):
            await check.play(lab)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        error = "A request of the check was cancelled."
    except NotApplicableError as problem:
        reason = str(problem)
    except TimeoutError:
        # That a gateway is slow on this machine is no finding.
        reason = "The check did not end in its time." if left_s > 0 else f"The run took longer than {RUN_S:.0f} s."
    except Exception as problem:  # noqa: BLE001 - the fault of one check must not end the run
        error = f"{type(problem).__name__}: {problem}"
    finally:
        await lab.close()
    served = [frame for frame in logs.about(check.labels()) if frame.at >= begun]
    frames = sorted([*lab.frames, *served], key=lambda frame: frame.at)
    return CheckRecording(code=check.code, frames=tuple(frames), not_applicable=reason, error=error)
