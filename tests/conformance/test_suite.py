"""Many captures against what is expected of each."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from pactgate.conformance.suite import CheckOutcome, SuiteError, read_suite, run_suite
from tests.conformance.captures import call, capture, handshake

SERVER = Path(__file__).parent.parent / "support" / "stdio_upstream.py"
GOOD = capture(*handshake(), call(2, "tools/list", None, {"tools": []}))
BAD = capture(handshake()[0], call(2, "tools/list", None, {"tools": []}))


def outcomes(folder: Path, text: str) -> list[CheckOutcome]:
    (folder / "good.json").write_text(json.dumps(GOOD))
    (folder / "bad.json").write_text(json.dumps(BAD))
    (folder / "two.json").write_text(json.dumps([GOOD, {**GOOD, "server_label": "b"}]))
    (folder / "suite.yml").write_text(text)
    return list(run_suite(read_suite(folder / "suite.yml")))


@pytest.mark.parametrize(
    ("check", "is_met"),
    [
        ("{capture: good.json}", True),
        ("{capture: good.json, expect: pass, name: a name}", True),
        ("{capture: bad.json}", False),
        ("{capture: bad.json, expect: {fails: [inv-002]}}", True),
        ("{capture: bad.json, expect: {fails: [INV-002, INV-003]}}", False),
        ("{capture: good.json, expect: {fails: [INV-002]}}", False),
        ("{capture: two.json, expect: {fails: [COMP-002]}}", True),
        ("{capture: bad.json, allow_missing_initialized: true}", True),
        ("{capture: bad.json, era: modern}", True),
        ("{capture: bad.json, rules: INV-001}", True),
        ("{capture: missing.json}", False),
        ("{capture: missing.json, expect: {fails: [INV-002]}}", False),
    ],
)
def test_a_check_is_met_when_exactly_the_expected_rules_fail(tmp_path: Path, check: str, is_met: bool) -> None:
    assert [outcome.is_met for outcome in outcomes(tmp_path, f"checks:\n  - {check}\n")] == [is_met]


def test_a_baseline_is_found_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "known.yml").write_text("- INV-002\n")
    found = outcomes(
        tmp_path,
        "checks:\n  - {capture: bad.json, baseline: known.yml}\n  - {capture: good.json, baseline: known.yml}\n",
    )
    assert [outcome.is_met for outcome in found] == [True, False]
    assert found[1].failed == ("INV-002",), "the stale entry is what failed"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "checks: []",
        "checks: 7",
        "[]",
        "checks: [7]",
        "checks: [{name: x}]",
        "checks: [{capture: 7}]",
        "checks: [{capture: ''}]",
        "checks: [{capture: good.json, expects: pass}]",
        "checks: [{capture: good.json, expect: fail}]",
        "checks: [{capture: good.json, expect: {fails: []}}]",
        "checks: [{capture: good.json, expect: {fails: [INV-9]}}]",
        "checks: [{capture: good.json, era: ancient}]",
        "checks: [{capture: good.json, fail_on: may}]",
        "checks: [{capture: good.json, rules: nothing}]",
        "checks: [{capture: good.json, baseline: missing.yml}]",
        "checks: [{capture: good.json, allow_missing_initialized: 'yes'}]",
    ],
)
def test_a_file_that_is_not_as_it_should_be_is_refused_before_anything_runs(tmp_path: Path, text: str) -> None:
    with pytest.raises(SuiteError, match=r"suite\.yml"):
        outcomes(tmp_path, text)


@pytest.mark.parametrize(
    "check",
    [
        "{live: nonsense}",
        "{live: []}",
        "{live: {url: 'http://127.0.0.1:1/mcp'}}",
        "{live: 'http://127.0.0.1:1/mcp', capture: a.json}",
        "{name: neither}",
    ],
)
def test_a_check_names_a_capture_or_a_live_server_and_not_both(tmp_path: Path, check: str) -> None:
    with pytest.raises(SuiteError):
        outcomes(tmp_path, f"checks: [{check}]")


def test_a_live_server_is_asked_in_the_folder_of_the_file_and_judged(tmp_path: Path) -> None:
    shutil.copy(SERVER, tmp_path / "server.py")
    text = f"checks: [{{live: ['{sys.executable}', server.py, '{{}}'], era: legacy}}, {{live: [no-such-program]}}]"
    good, missing = outcomes(tmp_path, text)
    assert good.is_met
    assert not missing.is_met
    assert missing.report.error is not None
    assert "no-such-program" in missing.report.error.message
