"""The gateway profile on gateways: nginx passes all that a reverse proxy can, ours everything but what is decided otherwise."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from pactgate.conformance.gateway.checks import CHECKS
from pactgate.conformance.gateway.fleet import Fleet
from pactgate.conformance.gateway.results import judge
from pactgate.conformance.gateway.run import RunPlan, run
from pactgate.conformance.gateway.runner import play
from pactgate.conformance.gateway.under_test import GatewayUnderTest
from pactgate.conformance.report import ComplianceReport
from pactgate.conformance.rule import CheckStatus
from tests.conformance.gateway import strict_gateway
from tests.interop.processes import GATEWAY, Program, free_port, listens
from tests.replicas.cluster import NGINX, needs_nginx

pytestmark = [pytest.mark.interop, pytest.mark.timeout(200)]
HTTP = ("lh", "mh", "dh", "pg")
DECIDED_OTHERWISE = {
    "GWP-015": "an error of a server for tools/call is a result with isError, so that the model sees it (D5)",
    "GWP-014": "half a surrogate pair in a result is refused as unreadable",
}
NOT_ASKED = {
    "GWP-116": "clients share a program unless `isolation` says otherwise",
    "GWP-126": "without tokens everybody on this machine may call",
    "GWP-127": "without an issuer there is no OAuth",
    "GWP-128": "without tokens everybody on this machine may call",
}
"""What its default settings are not asked."""
_NGINX = """
daemon off; master_process off; pid {folder}/nginx.pid; error_log stderr error;
events {{ worker_connections 512; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{ listen 127.0.0.1:{port}; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; {places} }}
}}
"""


def statuses(report: ComplianceReport) -> dict[str, CheckStatus]:
    return {result.code: result.status for session in report.sessions for result in session.results}


def quiet(*_: object) -> None:
    return


async def test_our_gateway_passes_every_check_but_those_decided_otherwise() -> None:
    start = f"{shlex.join(GATEWAY)} serve --config {{config}} --port {{port}}"
    report = judge(await run(RunPlan(checks=CHECKS, dialect="pactgate", start=start), quiet, quiet))
    found = statuses(report)
    not_asked = {code for code, status in found.items() if status is CheckStatus.NOT_APPLICABLE}
    assert not_asked == NOT_ASKED.keys()
    assert {code for code in found if found[code] is not CheckStatus.PASS} - not_asked == DECIDED_OTHERWISE.keys()


async def test_our_gateway_with_everything_optional_passes_what_its_defaults_are_not_asked() -> None:
    plan = RunPlan(checks=CHECKS, dialect="pactgate", start=strict_gateway.COMMAND, identity=strict_gateway.IDENTITY)
    found = statuses(judge(await run(plan, quiet, quiet)))
    assert {code for code in found if found[code] is not CheckStatus.PASS} == DECIDED_OTHERWISE.keys()


@needs_nginx
async def test_nginx_passes_everything_that_a_reverse_proxy_can(tmp_path: Path) -> None:
    fleet, port = Fleet(tmp_path, CHECKS, HTTP), free_port()
    await fleet.start()
    places = "".join(f"location /{tag} {{ proxy_pass {fleet.urls[tag]}; }} " for tag in HTTP)
    config = tmp_path / "nginx.conf"
    config.write_text(_NGINX.format(folder=tmp_path, port=port, places=places))
    nginx = Program([NGINX or shutil.which("nginx") or "nginx", "-c", config], tmp_path / "nginx.log")
    gateway = GatewayUnderTest({tag: f"http://127.0.0.1:{port}/{tag}" for tag in HTTP}, is_direct=True)
    try:
        nginx.wait_until(lambda: listens(port), "it listens")
        await gateway.wait(10, quiet)
        report = judge(await play(gateway, fleet.logs, CHECKS, {}, quiet, name="nginx"))
        assert set(statuses(report).values()) <= {CheckStatus.PASS, CheckStatus.NOT_APPLICABLE}
    finally:
        await gateway.close()
        nginx.stop()
        await fleet.close()
