"""What Prometheus makes of the metrics, the alert rules and the dashboard: promtool and a real Prometheus judge them."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.cli.program import Served, scripted, write_config
from tests.interop.processes import free_port
from tests.support.eventually import eventually_blocking
from tests.support.facing import modern
from tests.support.http_get import fetch, status_of
from tests.support.otlp_receiver import collecting
from tests.support.raw_http import RawClient

pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(shutil.which("promtool") is None, reason="the package prometheus is not installed"),
]
ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
LIGHT = {
    "command": sys.executable,
    "args": ["-I", "-S", str(ROOT / "tests" / "journeys" / "light_server.py"), "healthy"],
}
OPEN_METRICS = "application/openmetrics-text; version=1.0.0"
SCRAPES_S = 12


def promtool(*words: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["promtool", *words], input=given, capture_output=True, timeout=60, check=False)


async def load(port: int, done: threading.Event) -> None:
    """A server that is slow, one whose queue is full, one whose equal calls wait for each other, and errors."""

    async def calls(name: str, ms: int, *, is_varied: bool = True) -> None:
        number = 0
        async with RawClient(port) as client:
            while not done.is_set():
                number += 1
                text = str(number) if is_varied else str(int(time.monotonic() * 2))
                await client.ask(modern("tools/call", name=name, arguments={"ms": ms, "text": text}))
                await asyncio.to_thread(done.wait, 0 if is_varied else 0.1)

    async def refused() -> None:
        while not done.is_set():
            await asyncio.to_thread(status_of, f"http://127.0.0.1:{port}/mcp", origin="https://evil.example")
            async with RawClient(port) as client:
                await client.ask(modern("tools/call", name="slow__none"))
                await client.ask(modern("tools/call", name="odd__refuse", arguments={"code": -32603}))
            await asyncio.to_thread(done.wait, 0.2)

    busy = [calls("busy__slow", 20) for _ in range(4)]
    equal = [calls("equal__slow", 300, is_varied=False) for _ in range(2)]
    await asyncio.gather(calls("slow__slow", 200), *busy, *equal, refused())


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway under light load, which lasts as long as the tests."""
    folder = tmp_path_factory.mktemp("prometheus")
    done = threading.Event()
    with collecting() as collector:
        write_config(
            folder,
            {"slow": LIGHT, "busy": LIGHT, "equal": LIGHT, "odd": scripted()},
            limits={"maxInFlightPerServer": 1},
            cache={"tools": {"equal.slow": {"ttlMs": 1000}}},
            categories={"equal.slow": "query"},
            rateLimits={"enabled": False},
            telemetry={"endpoint": f"{collector.url}/v1/traces"},
        )
        with Served(folder) as gateway:
            for name in ("slow", "busy", "equal", "odd"):
                gateway.wait_for(f"ok    {name}")
            port = int(gateway.url.rpartition(":")[2])
            working = threading.Thread(target=lambda: asyncio.run(load(port, done)))
            working.start()
            try:
                yield gateway
            finally:
                done.set()
                working.join(10)


class Prometheus:
    """Asks one over HTTP."""

    def __init__(self, url: str) -> None:
        self.url = url

    def ask(self, expr: str) -> list[dict[str, Any]]:
        page = json.loads(fetch(f"{self.url}/api/v1/query?query={quote(expr)}"))
        found: list[dict[str, Any]] = page["data"]["result"]
        return found

    def values(self, expr: str, label: str) -> dict[str, float]:
        return {one["metric"].get(label, ""): float(one["value"][1]) for one in self.ask(expr)}


def is_ready(url: str) -> bool:
    try:
        return status_of(f"{url}/-/ready") == 200
    except OSError:
        return False  # it does not listen yet


@pytest.fixture(scope="module")
def prometheus(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A real one that has scraped the gateway for a while."""
    folder, port = tmp_path_factory.mktemp("tsdb"), free_port()
    target = served.url.removeprefix("http://")
    jobs = [{"job_name": "pactgate", "static_configs": [{"targets": [target]}]}]
    rules = str(DEPLOY / "prometheus" / "rules.yaml")
    config = {"global": {"scrape_interval": "1s"}, "rule_files": [rules], "scrape_configs": jobs}
    (folder / "prometheus.yaml").write_text(json.dumps(config))
    command = ["prometheus", f"--config.file={folder}/prometheus.yaml", f"--storage.tsdb.path={folder}/data"]
    command += [f"--web.listen-address=127.0.0.1:{port}", "--enable-feature=exemplar-storage", "--log.level=error"]
    with subprocess.Popen(command) as process:
        try:
            asking = Prometheus(f"http://127.0.0.1:{port}")
            eventually_blocking(lambda: is_ready(asking.url), within_s=20)
            eventually_blocking(
                lambda: asking.values("count_over_time(pactgate_uptime_seconds[1m])", "x").get("", 0) >= SCRAPES_S,
                within_s=3 * SCRAPES_S,
            )
            yield asking
        finally:
            process.terminate()
            process.wait(10)


def test_promtool_finds_nothing_to_mend_in_the_metrics(served: Served) -> None:
    found = promtool("check", "metrics", given=fetch(f"{served.url}/metrics"))
    assert (found.returncode, found.stdout, found.stderr) == (0, b"", b"")


def test_the_open_metrics_end_as_their_format_asks(served: Served) -> None:
    text = fetch(f"{served.url}/metrics", accept=OPEN_METRICS)
    assert text.endswith(b"# EOF\n")
    assert b"# TYPE pactgate_requests counter\n" in text


def test_the_alert_rules_pass_their_tests() -> None:
    assert promtool("check", "rules", str(DEPLOY / "prometheus" / "rules.yaml")).returncode == 0
    done = promtool("test", "rules", str(DEPLOY / "prometheus" / "rules_test.yaml"))
    assert done.returncode == 0, done.stdout


def panels() -> list[tuple[str, str]]:
    """Title and query of everything the dashboard shows."""
    dashboard = json.loads((DEPLOY / "grafana" / "pactgate.json").read_text())
    return [(one["title"], target["expr"]) for one in dashboard["panels"] for target in one.get("targets", ())]


@pytest.mark.parametrize(("title", "expr"), panels())
def test_every_panel_has_data(prometheus: Prometheus, title: str, expr: str) -> None:
    query = expr.replace("$__rate_interval", "10s").replace("$server", ".*")
    eventually_blocking(lambda: prometheus.ask(query), within_s=5)


def panel(title: str, at: int = 0) -> str:
    found = [expr for name, expr in panels() if name == title][at]
    return found.replace("$__rate_interval", "10s").replace("$server", ".*")


def test_the_dashboard_tells_a_slow_server_a_full_queue_and_a_slow_gate_apart(prometheus: Prometheus) -> None:
    at_server = prometheus.values(panel("At the servers"), "pactgate_server")
    assert at_server["slow"] > 0.1 > at_server["busy"]
    assert prometheus.values(panel("In queues"), "server").keys() >= {"busy"}
    assert prometheus.values(panel("Waits"), "for")["cache_lookup"] > 0.01


def test_top_tells_them_apart_too(served: Served) -> None:
    rows = {row["server"]: row for row in json.loads(served.run("top", "--once", "--json").stdout)}
    parts = ("server_ms", "queue_ms", "gates_ms")
    where = {name: max(parts, key=rows[name].__getitem__) for name in ("slow", "busy")}
    assert where == {"slow": "server_ms", "busy": "queue_ms"}
    assert rows["equal"]["gates_ms"] > 1
    assert rows["slow"]["gates_ms"] < rows["slow"]["server_ms"] / 10, "what a busy machine adds is no wait for a gate"


def test_a_bucket_leads_to_its_trace(served: Served, prometheus: Prometheus) -> None:
    query = quote("mcp_client_operation_duration_seconds_bucket")
    page = json.loads(fetch(f"{prometheus.url}/api/v1/query_exemplars?query={query}&start=0&end=9999999999"))
    found = [one["labels"]["trace_id"] for series in page["data"] for one in series["exemplars"]]
    assert found
    assert served.run("explain", found[-1]).returncode == 0
