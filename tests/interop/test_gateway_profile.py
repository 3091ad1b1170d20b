"""The gateway profile on gateways: nginx passes all that a reverse proxy can, ours everything but what is decided otherwise."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pactgate.conformance.gateway.checks import CHECKS
from pactgate.conformance.gateway.dialects import DIALECTS
from pactgate.conformance.gateway.results import judge
from pactgate.conformance.gateway.run import RunPlan, run
from pactgate.conformance.rule import CheckStatus
from tests.interop.processes import GATEWAY
from tests.replicas.cluster import NGINX, needs_nginx

pytestmark = [pytest.mark.interop, pytest.mark.timeout(200)]
DECIDED_OTHERWISE = {
    "GWP-015": "an error of a server for tools/call is a result with isError, so that the model sees it (D5)",
    "GWP-014": "half a surrogate pair in a result is refused as unreadable",
}
_MOST = {"rpm": 10_000, "burst": 1_000}


async def found(dialect: str, start: str) -> dict[CheckStatus, set[str]]:
    """The codes of the checks by what became of them."""
    report = judge(await run(RunPlan(checks=CHECKS, dialect=dialect, start=start), lambda text: None, lambda *_: None))
    codes: dict[CheckStatus, set[str]] = {}
    for session in report.sessions:
        for result in session.results:
            codes.setdefault(result.status, set()).add(result.code)
    return codes


async def test_our_gateway_with_every_optional_gate_passes_all_but_what_is_decided_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(servers: Mapping[str, Mapping[str, Any]]) -> str:
        """Rates that count and never refuse; rules, an audit log, captures and cached results of the first checks."""
        return json.dumps(
            {
                "mcpServers": servers,
                "rateLimits": {"execution": _MOST, "mutation": _MOST, "read": _MOST, "requests": _MOST},
                "permissions": [{"allow": ["*"], "to": "*"}],
                "categories": {"*.gwp00*": "query"},
                "cache": {"tools": {"*.gwp00*": {"ttlMs": 60_000}}},
                "audit": {"file": str(tmp_path / "audit.jsonl")},
                "capture": {"dir": str(tmp_path / "captures")},
            }
        )

    monkeypatch.setitem(DIALECTS, "pactgate", replace(DIALECTS["pactgate"], write=write))  # type: ignore[misc] - read only elsewhere
    codes = await found("pactgate", f"{shlex.join(GATEWAY)} serve --config {{config}} --port {{port}}")
    assert codes.keys() == {CheckStatus.PASS, CheckStatus.FAIL}
    assert codes[CheckStatus.FAIL] == DECIDED_OTHERWISE.keys()


@needs_nginx
async def test_nginx_passes_everything_that_a_reverse_proxy_can() -> None:
    codes = await found("nginx", f"{NGINX} -c {{config}}")
    assert codes.keys() <= {CheckStatus.PASS, CheckStatus.NOT_APPLICABLE}
