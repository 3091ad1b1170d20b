"""A whole run: without a gateway everything that can be asked passes; a gateway that does not start ends the run."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from pactgate.conformance.gateway.checks import CHECKS
from pactgate.conformance.gateway.gateway_process import StartError
from pactgate.conformance.gateway.results import judge
from pactgate.conformance.gateway.run import RunPlan, run
from pactgate.conformance.rule import CheckStatus


async def test_without_a_gateway_every_check_passes_that_can_be_asked(tmp_path: Path) -> None:
    begun = time.monotonic()
    plan = RunPlan(checks=CHECKS, dialect="direct")
    report = judge(await run(plan, tmp_path, lambda text: None, lambda path, text: None))
    results = [result for session in report.sessions for result in session.results]
    wrong = [result for result in results if result.status not in (CheckStatus.PASS, CheckStatus.NOT_APPLICABLE)]
    assert wrong == []
    asked = {check.code for check in CHECKS if not check.needs_gateway}
    assert {result.code for result in results if result.status is CheckStatus.PASS} == asked
    assert time.monotonic() - begun < 30


async def test_a_gateway_that_ends_instead_of_listening_ends_the_run(tmp_path: Path) -> None:
    plan = RunPlan(checks=CHECKS[:1], start=f"{sys.executable} -c 1")
    with pytest.raises(StartError):
        await run(plan, tmp_path, lambda text: None, lambda path, text: None)


async def test_servers_that_are_left_out_are_a_reason_and_no_failure(tmp_path: Path) -> None:
    checks = [check for check in CHECKS if check.code in ("GWP-001", "GWP-031")]
    plan = RunPlan(checks=checks, dialect="direct", servers=("legacyhttp",))
    recordings = (await run(plan, tmp_path, lambda text: None, lambda path, text: None)).checks
    assert [recording.not_applicable == "" for recording in recordings] == [True, False]
