"""A check that raises or hangs is an error of that check only."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.lab import Lab, NotApplicableError
from pactgate.conformance.gateway.runner import play
from pactgate.conformance.gateway.server_log import ServerLogs
from pactgate.conformance.gateway.under_test import GatewayUnderTest


class Raises(Check):
    """It raises."""

    code, family = "X-1", Family.FIDELITY

    async def play(self, lab: Lab) -> None:
        raise ValueError("x")


class Refuses(Check):
    """It can't be asked."""

    code, family = "X-2", Family.FIDELITY
    runs_alone = True

    async def play(self, lab: Lab) -> None:
        raise NotApplicableError("no")


class Good(Check):
    """It plays."""

    code, family = "X-3", Family.FIDELITY

    async def play(self, lab: Lab) -> None:
        await asyncio.sleep(0)


async def test_a_fault_of_one_check_is_its_own_and_the_others_are_played(tmp_path: Path) -> None:
    gateway = GatewayUnderTest({})
    run = await play(gateway, ServerLogs(tmp_path), [Raises, Refuses, Good], {}, lambda text: None, name="g")
    await gateway.close()
    assert [(r.code, r.error, r.not_applicable) for r in run.checks] == [
        ("X-1", "ValueError: x", ""),
        ("X-2", "", "no"),
        ("X-3", "", ""),
    ]
