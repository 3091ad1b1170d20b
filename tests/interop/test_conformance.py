"""The official conformance suite holds the gateway to the specification: as a server in front of a fixture, and as its client.

`expected_failures.json` names what fails and why. It can't go stale: a scenario that fails without being listed, and one that is
listed but passes, fail the test alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.interop.processes import HERE, PYTHON, Fleet
from tests.interop.suite import EXPECTED, Found, driver, judge_client, judge_server, why_not_here

REQUIRED = {"2025-11-25": 30, "2026-07-28": 37}
FIXTURES = ("both", "handshake")
SIGN_INS = (
    *("auth/metadata-default", "auth/metadata-var1", "auth/metadata-var2", "auth/metadata-var3", "auth/basic-cimd"),
    *("auth/scope-from-www-authenticate", "auth/scope-from-scopes-supported", "auth/scope-omitted-when-undefined"),
    *("auth/scope-step-up", "auth/scope-retry-limit", "auth/pre-registration"),
    *("auth/token-endpoint-auth-basic", "auth/token-endpoint-auth-post", "auth/token-endpoint-auth-none"),
)
MODERN_SIGN_INS = (
    *("auth/resource-mismatch", "auth/metadata-issuer-mismatch", "auth/authorization-server-migration"),
    *("auth/offline-access-scope", "auth/offline-access-not-supported"),
    *("auth/iss-supported", "auth/iss-not-advertised", "auth/iss-supported-missing"),
    *("auth/iss-wrong-issuer", "auth/iss-unexpected", "auth/iss-normalized"),
)
EXTENSIONS = (
    *("auth/client-credentials-basic", "auth/client-credentials-jwt", "auth/enterprise-managed-authorization"),
    *("auth/wif-jwt-bearer", "auth/2025-03-26-oauth-metadata-backcompat"),
)
"""Of the scenarios without a score, those that pass."""
CLIENT_SCENARIOS = {
    "2025-11-25": (
        "initialize",
        "tools_call",
        "elicitation-sep1034-client-defaults",
        "sse-retry",
        "json-schema-2020-12-preservation",
        *SIGN_INS,
    ),
    "2026-07-28": (
        "tools_call",
        "request-metadata",
        "sep-2322-client-request-state",
        "http-standard-headers",
        "http-custom-headers",
        "http-invalid-tool-headers",
        "json-schema-ref-no-deref",
        "json-schema-2020-12-preservation",
        *SIGN_INS,
        *MODERN_SIGN_INS,
        *EXTENSIONS,
    ),
}
"""All that are required, and some more."""

RUNS = [(fixture, revision) for fixture in FIXTURES for revision in REQUIRED]
CLIENT_RUNS = [(revision, scenario) for revision, scenarios in CLIENT_SCENARIOS.items() for scenario in scenarios]

pytestmark = [
    pytest.mark.interop,
    pytest.mark.timeout(300),
    pytest.mark.skipif(why_not_here() is not None, reason=str(why_not_here())),
]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Fleet(tmp_path_factory.mktemp("conformance")) as fleet:
        for fixture in FIXTURES:
            fleet.add(fixture, [PYTHON, HERE / "servers" / "conformance.py", fixture], "/mcp")
        yield fleet.start_gateway("test_simple_text")[1]


@pytest.fixture(scope="module")
def judged(address: str, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Found]:
    """What the suite says of each fixture through the gateway, in each era."""
    folder = tmp_path_factory.mktemp("server-results")

    def run(job: tuple[str, str]) -> Found:
        fixture, revision = job
        return judge_server(f"{address}/mcp/{fixture}", revision, folder / fixture / revision)

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(RUNS, pool.map(run, RUNS), strict=True))


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], str | None]:
    """What the suite's servers say of the gateway as their client."""
    folder = tmp_path_factory.mktemp("client-results")
    with driver(folder) as place, ThreadPoolExecutor(3) as pool:
        outcomes = pool.map(lambda job: judge_client(job[1], job[0], folder / job[0], place), CLIENT_RUNS)
        return dict(zip(CLIENT_RUNS, outcomes, strict=True))


@pytest.mark.parametrize(("fixture", "revision"), RUNS)
def test_every_required_scenario_passes_through_the_gateway(
    fixture: str, revision: str, judged: dict[tuple[str, str], Found]
) -> None:
    found = judged[fixture, revision]
    assert len(found.required) == REQUIRED[revision]
    assert found.failed == set(EXPECTED[fixture][revision]), found.text


@pytest.mark.parametrize(("revision", "scenario"), CLIENT_RUNS)
def test_the_gateway_passes_as_a_client(
    revision: str, scenario: str, played: dict[tuple[str, str], str | None]
) -> None:
    said = played[revision, scenario]
    assert (said is not None) == (scenario in EXPECTED["client"][revision]), said


@pytest.mark.parametrize("side", ["both", "handshake", "client"])
def test_every_expected_failure_is_explained(side: str) -> None:
    for revision, listed in EXPECTED[side].items():
        known = set(CLIENT_SCENARIOS[revision]) if side == "client" else None
        for scenario, why in listed.items():
            assert known is None or scenario in known
            assert len(why.split()) >= 4, f"{scenario} needs a reason a reader can follow"
