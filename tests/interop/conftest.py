"""Every upstream, one gateway in front of all of them, and every client's jobs played through it, once per run.

What is not installed is skipped with its reason; where CI=true that is a failure, so that no green run hides a test that did not run.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.interop.pairings import CLIENTS, DRIVERS, UPSTREAMS, VIEWS, Pairing, every_pairing, why_not_here
from tests.interop.processes import Fleet

DRIVER_S = 100
JOB_S = 15


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and os.environ.get("CI") == "true" and item.get_closest_marker("interop"):
        report.outcome = "failed"
        report.longrepr = f"CI=true, and this did not run: {report.longrepr}"
    return report


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("interop")


@pytest.fixture(scope="package")
def gateway(folder: Path) -> Iterator[str]:
    """The address of a gateway in front of every upstream that can run here."""
    with Fleet(folder) as fleet:
        for upstream in UPSTREAMS:
            if why_not_here(upstream=upstream) is None:
                fleet.add(upstream.id, upstream.command(), upstream.path if upstream.transport != "stdio" else None)
        yield fleet.start_gateway("greet", {"views": VIEWS})[1]


@pytest.fixture(scope="package")
def played(gateway: str) -> dict[tuple[str, str, str], dict[str, Any]]:
    return play(gateway)


def play(gateway: str, pairings: Iterable[Pairing] | None = None) -> dict[tuple[str, str, str], dict[str, Any]]:
    """What each client saw, by client, upstream and path. Drivers run side by side, each with all of its jobs."""
    jobs: dict[str, list[dict[str, Any]]] = {driver: [] for driver in DRIVERS}
    for pairing in every_pairing() if pairings is None else pairings:
        if why_not_here(upstream=pairing.upstream, client=pairing.client) is None:
            jobs[CLIENTS[pairing.client]].append(_job(pairing, gateway))
    with ThreadPoolExecutor(len(jobs)) as pool:
        outcomes = [outcome for found in pool.map(_drive, jobs, jobs.values()) for outcome in found]
    return {(o["job"]["client"], o["job"]["upstream"], o["job"]["path"]): o for o in outcomes}


def _job(pairing: Pairing, gateway: str) -> dict[str, Any]:
    return {
        "client": pairing.client,
        "upstream": pairing.upstream.id,
        "path": pairing.path,
        "url": f"{gateway}{pairing.path.format(id=pairing.upstream.id)}",
        "tool": pairing.tool,
        "arguments": pairing.arguments,
        "seconds": JOB_S,
    }


def _drive(driver: str, jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if not jobs:
        return []
    command = [str(word) for word in DRIVERS[driver]]
    try:
        done = subprocess.run(
            command, input=json.dumps(jobs), capture_output=True, text=True, timeout=DRIVER_S, check=False
        )
        said, problem = done.stdout, f"the driver ended with {done.returncode}: {done.stderr[-1500:]}"
    except subprocess.TimeoutExpired as late:
        said = (late.stdout or b"").decode() if isinstance(late.stdout, bytes) else late.stdout or ""
        problem = f"the driver did not finish within {DRIVER_S} s"
    outcomes = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    return outcomes + [{"job": job, "error": problem} for job in jobs[len(outcomes) :]]
