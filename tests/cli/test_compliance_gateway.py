"""`pactgate compliance gateway` as people run it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.program import run


def test_checks_are_listed_and_explained() -> None:
    done = run("compliance", "gateway", "--list", "--only", "names,GWP-001")
    assert done.code == 0
    assert "GWP-001" in done.out
    assert "GWP-060" in done.out
    assert "GWP-002" not in done.out
    assert "2^53" in run("compliance", "rules", "GWP-001").out


def test_a_run_without_a_gateway_passes_and_is_judged_again_from_its_recording(tmp_path: Path) -> None:
    kept = str(tmp_path / "run.json")
    done = run("compliance", "gateway", "--for", "direct", "--only", "gwp-001", "-o", kept, "--format", "json")
    assert done.code == 0, done.err
    again = run("compliance", "gateway", "--from", kept, "--format", "json")
    assert json.loads(again.out) == json.loads(done.out)
    assert "100 %" in run("compliance", "gateway", "--from", kept).out


def test_a_wrong_invocation_ends_with_two() -> None:
    assert run("compliance", "gateway").code == 2
    assert run("compliance", "gateway", "--only", "GWP-999", "--for", "direct").code == 2
    assert run("compliance", "gateway", "--url", "http://127.0.0.1:1/mcp", "--from", "x").code == 2
    assert run("compliance", "gateway", "--start", "there-is-no-such-program").code == 2
