"""The kept scores of other gateways, and the page that is made from them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from bench.gateways import score as module
from bench.gateways.kinds import GATEWAYS, ScoredGateway
from bench.gateways.pages import page, picture, results
from bench.gateways.score import RESULTS, score
from pactgate.conformance.gateway.check import PROFILE_VERSION
from tests.support.eventually import eventually_blocking

MAX_BYTES = 100 * 1024


def test_at_least_six_foreign_gateways_are_scored_and_nginx_and_ours() -> None:
    packages = {gateway.package for gateway, _ in results()}
    assert {"ours:pactgate", "system:nginx"} < packages
    assert len(packages) >= 8


@pytest.mark.parametrize("gateway", GATEWAYS, ids=lambda gateway: gateway.name)
def test_a_kept_result_is_small_of_this_profile_and_its_scores_are_those_of_its_checks(gateway: ScoredGateway) -> None:
    assert (RESULTS / f"{gateway.name}.json").stat().st_size <= MAX_BYTES
    found = next(found for scored, found in results() if scored is gateway)
    assert found["profile"] == f"gateway profile {PROFILE_VERSION}"
    statuses = [result["status"] for result in found["results"]]
    asked = len(statuses) - statuses.count("not_applicable")
    assert found["scores"][-1] == {
        "label": "all",
        "passed": statuses.count("pass"),
        "asked": asked,
        "percent": found["scores"][-1]["percent"],
    }


def test_each_gateway_in_the_table_leads_to_its_section_and_stands_in_the_picture() -> None:
    text = page()
    sections = {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in re.findall("^## (.*)$", text, re.M)}
    assert set(re.findall(r"\(#([^)]*)\)", text)) == sections
    assert all(gateway.title in picture() for gateway in GATEWAYS)


def test_a_run_that_takes_too_long_is_ended_with_all_that_it_has_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LIMIT_S", 0.3)
    monkeypatch.setattr(module, "RECORDINGS", tmp_path)
    told = tmp_path / "pid"
    command = f"sleep 60 & echo $! > {told}; wait; echo"
    with pytest.raises(subprocess.TimeoutExpired):
        score(ScoredGateway(name="slow", title="Slow", package="system:none", command=command))
    process = Path("/proc") / told.read_text().strip()
    eventually_blocking(lambda: not process.exists() or ") Z " in (process / "stat").read_text())
