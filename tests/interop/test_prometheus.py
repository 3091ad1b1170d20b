"""What Prometheus makes of the metrics, the alert rules and the dashboard: promtool and a real Prometheus judge them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.program import Served, demo, write_config
from tests.support.http_get import fetch

pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(shutil.which("promtool") is None, reason="the package prometheus is not installed"),
]
ROOT = Path(__file__).parents[2]
OPEN_METRICS = "application/openmetrics-text; version=1.0.0"


def promtool(*words: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["promtool", *words], input=given, capture_output=True, timeout=60, check=False)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway that has answered calls, good and bad."""
    folder = tmp_path_factory.mktemp("prometheus")
    write_config(folder, {"pad": demo("scratchpad")})
    with Served(folder) as gateway:
        gateway.wait_for("ok    pad")
        for words in (("pad.note_add", "text=b"), ("pad.note_list",), ("pad.none",)):
            gateway.run("call", *words)
        yield gateway


def test_promtool_finds_nothing_to_mend_in_the_metrics(served: Served) -> None:
    found = promtool("check", "metrics", given=fetch(f"{served.url}/metrics"))
    assert (found.returncode, found.stdout, found.stderr) == (0, b"", b"")


def test_the_open_metrics_end_as_their_format_asks(served: Served) -> None:
    text = fetch(f"{served.url}/metrics", accept=OPEN_METRICS)
    assert text.endswith(b"# EOF\n")
    assert b"# TYPE pactgate_requests counter\n" in text
