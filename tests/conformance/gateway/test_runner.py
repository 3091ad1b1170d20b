"""A check that raises or hangs is an error of that check only."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.lab import Lab, NotApplicableError
from pactgate.conformance.gateway.runner import play, play_one
from pactgate.conformance.gateway.server_log import ScriptedLogs
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


class Cancelled(Check):
    """A request of it is cancelled by nobody that it knows."""

    code, family = "X-4", Family.FIDELITY

    async def play(self, lab: Lab) -> None:
        request = asyncio.get_running_loop().create_future()
        request.cancel()
        await request


class Hangs(Check):
    """It begins two things, one of which has no turn yet, and never ends."""

    code, family = "X-5", Family.FIDELITY
    ended = 0

    async def play(self, lab: Lab) -> None:
        lab.start(self._wait())
        await lab.in_turn([self._wait(), self._wait(), self._wait()])

    async def _wait(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            type(self).ended += 1


async def test_what_a_check_has_begun_ends_with_it(tmp_path: Path) -> None:
    gateway, logs = GatewayUnderTest({}), ScriptedLogs(tmp_path)
    recording = await play_one(Hangs(), Lab(gateway, logs, {}), logs, 0.05)
    await gateway.close()
    assert (recording.not_applicable != "", Hangs.ended) == (True, 3)


async def test_a_request_that_is_cancelled_is_an_error_of_its_check(tmp_path: Path) -> None:
    gateway = GatewayUnderTest({})
    run = await play(gateway, ScriptedLogs(tmp_path), [Cancelled, Good], {}, lambda text: None, name="g")
    await gateway.close()
    assert [record.error != "" for record in run.checks] == [True, False]


async def test_a_fault_of_one_check_is_its_own_and_the_others_are_played(tmp_path: Path) -> None:
    gateway = GatewayUnderTest({})
    run = await play(gateway, ScriptedLogs(tmp_path), [Raises, Refuses, Good], {}, lambda text: None, name="g")
    await gateway.close()
    assert [(r.code, r.error, r.not_applicable) for r in run.checks] == [
        ("X-1", "ValueError: x", ""),
        ("X-2", "", "no"),
        ("X-3", "", ""),
    ]
