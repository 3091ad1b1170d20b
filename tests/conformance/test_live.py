"""A live server, judged."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from pactgate.capture.format import read
from pactgate.conformance.check import check_capture
from pactgate.conformance.live import record_live
from pactgate.conformance.probe import ProbeTarget
from pactgate.protocol.versions import Era

SERVER = Path(__file__).parent.parent / "support" / "stdio_upstream.py"


def target(**options: Any) -> ProbeTarget:
    return ProbeTarget(command=(sys.executable, str(SERVER), json.dumps(options)))


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_good_server_passes_in_either_era(era: str, tmp_path: Path) -> None:
    path = tmp_path / "capture.json"
    await record_live(target(era="dual"), path, label="x", era=Era(era))
    report = check_capture(path)
    assert report.passed
    assert [session.era for session in report.sessions] == [era]


async def test_a_capability_that_always_fails_is_found(tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    await record_live(target(era="legacy", broken_lists=["tools/list"]), kept, label="x")
    report = check_capture(kept)
    assert not report.passed
    assert [result.code for _, result in report.failures()] == ["INV-004"]
    assert [session.head.label for session in read([kept.read_bytes()])] == ["x", "x"], (
        "and one that asks for another version"
    )


async def test_secrets_given_to_a_server_are_not_in_its_capture(tmp_path: Path) -> None:
    canary = "canary-0123456789"
    given = ProbeTarget(command=target().command, env={"API_TOKEN": canary})
    path = tmp_path / "capture.json"
    await record_live(given, path, label=canary[:3])
    assert canary not in path.read_text()


async def test_a_capture_that_can_not_be_written_is_an_error_of_the_disk(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="can't be written"):
        await record_live(target(), tmp_path / "nowhere" / "capture.json", label="x")


@pytest.mark.parametrize(
    ("kind", "path", "transport"),
    [("streamable", "/mcp", "http"), ("json", "/mcp", "http"), ("sse", "/sse", "http+sse")],
)
async def test_an_http_server_is_judged_by_what_passed_on_the_wire(
    tmp_path: Path, official: dict[str, str], kind: str, path: str, transport: str
) -> None:
    kept = tmp_path / "capture.json"
    await record_live(ProbeTarget(url=official[kind] + path), kept, label="x", era=Era.LEGACY)
    report = check_capture(kept, rules="all")
    assert report.passed, [result.message for _, result in report.failures()]
    recorded = json.loads(kept.read_text())
    for capture in recorded if isinstance(recorded, list) else [recorded]:
        assert capture["transport"] == transport
        assert all("http" in each for each in capture["exchanges"]) is (transport == "http")
