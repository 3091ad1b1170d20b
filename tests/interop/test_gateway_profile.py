"""The gateway profile on gateways: nginx passes all that a reverse proxy can, ours everything but what is decided otherwise."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

import pytest

from pactgate.conformance.gateway.check import Check, Family
from pactgate.conformance.gateway.checks import CHECKS
from pactgate.conformance.gateway.results import judge, judge_one
from pactgate.conformance.gateway.run import RunPlan, run
from pactgate.conformance.rule import CheckStatus
from tests.conformance.gateway import strict_gateway
from tests.conformance.gateway.playing import OURS, play_started
from tests.interop.processes import GATEWAY
from tests.replicas.cluster import NGINX, needs_nginx

pytestmark = [pytest.mark.interop, pytest.mark.timeout(200)]
DECIDED_OTHERWISE = {
    "GWP-015": "an error of a server for tools/call is a result with isError, so that the model sees it (D5)",
}
NOT_ASKED = {
    "GWP-116": "clients share a program unless `isolation` says otherwise",
    "GWP-126": "without tokens everybody on this machine may call",
    "GWP-127": "without an issuer there is no OAuth",
    "GWP-128": "without tokens everybody on this machine may call",
}
"""What its default settings are not asked."""


async def found(dialect: str, start: str, identity: Mapping[str, str] | None = None) -> dict[CheckStatus, set[str]]:
    """The codes of the checks by what became of them. What is not passed is printed: a test that fails so says why."""
    plan = RunPlan(checks=CHECKS, dialect=dialect, start=start, identity=identity or {})
    report = judge(await run(plan, lambda text: None, lambda *_: None))
    codes: dict[CheckStatus, set[str]] = {}
    for session in report.sessions:
        for result in session.results:
            codes.setdefault(result.status, set()).add(result.code)
            if result.status is not CheckStatus.PASS:
                print(result.code, result.status, result.message, *result.evidence)
    return codes


async def test_our_gateway_passes_every_check_but_those_decided_otherwise() -> None:
    codes = await found("pactgate", f"{shlex.join(GATEWAY)} serve --config {{config}} --port {{port}}")
    del codes[CheckStatus.PASS]
    assert codes == {CheckStatus.FAIL: DECIDED_OTHERWISE.keys(), CheckStatus.NOT_APPLICABLE: NOT_ASKED.keys()}


async def test_our_gateway_with_everything_optional_passes_what_its_defaults_are_not_asked() -> None:
    codes = await found("pactgate", strict_gateway.COMMAND, strict_gateway.IDENTITY)
    del codes[CheckStatus.PASS]
    assert codes == {CheckStatus.FAIL: DECIDED_OTHERWISE.keys()}


@pytest.mark.parametrize("check", [check for check in CHECKS if check.family is Family.OWNERSHIP])
async def test_a_gateway_that_leaves_its_servers_is_found_out(check: type[Check]) -> None:
    assert judge_one(check, await play_started(check, leaves=True)).status is CheckStatus.FAIL


async def test_clients_open_new_sessions_at_a_gateway_that_was_started_again() -> None:
    checks = [check for check in CHECKS if check.family is Family.OWNERSHIP][:2]
    played = (await run(RunPlan(checks=checks, dialect="pactgate", start=OURS, era="legacy"), print, print)).checks
    assert [recording.error or recording.not_applicable for recording in played] == ["", ""]


@needs_nginx
async def test_nginx_passes_everything_that_a_reverse_proxy_can() -> None:
    codes = await found("nginx", f"{NGINX} -c {{config}}")
    assert codes.keys() <= {CheckStatus.PASS, CheckStatus.NOT_APPLICABLE}
