"""`pactgate compliance` as people run it: exit codes, formats, standard input, and a terminal nobody can move."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from pactgate.cli import main
from tests.cli.program import PROGRAM, WAIT_S, environment, run, run_on_terminal
from tests.conformance.captures import call, capture, failed, handshake

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
GOOD = capture(*handshake(), call(2, "tools/list", None, {"tools": []}))
BAD = capture(handshake()[0], call(2, "tools/list", None, {"tools": []}))
TWO = [GOOD, {**GOOD, "server_label": "other"}]
EVIL = "\x1b]0;owned\x07\u202e"


def write(folder: Path, value: Any, name: str = "session.json") -> str:
    path = folder / name
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return str(path)


def judge(*words: str) -> int:
    return main.run(["compliance", "invariants", *words])


@pytest.mark.requirement("S3/CLI")
@pytest.mark.parametrize(("value", "code"), [(GOOD, 0), (BAD, 1), (TWO, 1), ([GOOD], 0), ([], 0)])
def test_the_exit_code_is_0_only_when_everything_holds_and_there_is_no_hazard(
    tmp_path: Path, value: Any, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert judge("--capture", write(tmp_path, value)) == code
    printed = capsys.readouterr()
    assert printed.out.splitlines()[-1].startswith("PASSED" if code == 0 else "FAILED")
    assert printed.err == ""


@pytest.mark.requirement("S3/CLI")
@pytest.mark.parametrize("command", ["compliance", "conformance"])
def test_both_names_of_the_command_work_in_a_process_of_their_own(tmp_path: Path, command: str) -> None:
    write(tmp_path, BAD)
    done = run(tmp_path, command, "invariants", "--capture", "session.json", "--format", "json")
    assert (done.returncode, done.stderr) == (1, "")
    report = json.loads(done.stdout)
    assert (report["passed"], report["source"]) == (False, "session.json")
    assert [result["status"] for result in report["sessions"][0]["results"]][:3] == ["pass", "fail", "pass"]


@pytest.mark.requirement("S3/CLI")
@pytest.mark.parametrize("text", [None, "", "{", "7", "{}", '{"exchanges": [7]}'])
def test_an_unreadable_capture_is_exit_code_1_with_a_message_and_an_error_in_json(
    tmp_path: Path, text: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "missing.json") if text is None else write(tmp_path, text)
    assert judge("--capture", path, "--format", "json") == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out)["error"]["message"] in printed.err
    assert judge("--capture", path) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "error:" in printed.err


@pytest.mark.requirement("S3/CLI")
@pytest.mark.parametrize("exchange", [{}, {"request": None}, {"response": {"jsonrpc": "2.0", "id": 1, "result": {}}}])
def test_an_exchange_without_a_request_is_an_error_in_the_report_and_exit_code_1(
    tmp_path: Path, exchange: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, capture(*handshake(), exchange))
    assert judge("--capture", path, "--format", "json") == 1
    report = json.loads(capsys.readouterr().out)
    assert report["passed"] is False
    assert report["error"]["message"] == "This is not a capture: exchange 2 of the session has no request."


@pytest.mark.parametrize("form", ["junit", "sarif", "markdown", "github"])
def test_the_other_forms_tell_of_an_unreadable_capture_too(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert judge("--capture", "missing.json", "--format", form) == 1
    assert "missing.json" in capsys.readouterr().out.replace("\\", "")


@pytest.mark.requirement("S3/CLI")
@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--capture"],
        ["--nothing"],
        ["--capture", "F", "--format", "pdf"],
        ["--capture", "F", "--rules", "INV-999"],
        ["--capture", "F", "--era", "ancient"],
        ["--capture", "F", "--fail-on", "may"],
        ["--capture", "F", "--not-judged", "maybe"],
        ["--capture", "F", "--baseline", "missing.yml"],
        ["--capture", "F", "extra"],
    ],
)
def test_a_wrong_invocation_is_exit_code_2(
    tmp_path: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, GOOD)
    assert judge(*(path if word == "F" else word for word in words)) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "error" in printed.err.lower()


def test_standard_input_is_a_capture_too(tmp_path: Path) -> None:
    words = [*PROGRAM, "compliance", "invariants", "--capture", "-", "--format", "json"]
    done = subprocess.run(
        words,
        input=json.dumps(GOOD),
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert json.loads(done.stdout)["source"] == "-"


EVERY_FORM = """
from pactgate.cli import main
for form in ("text", "json", "junit", "sarif", "markdown"):
    words = ("compliance", "invariants", "--capture", "session.json", "--format", form, "--rules", "all")
    assert main.run([*words]) == 1
    print("end of", form)
"""


@pytest.mark.requirement("S3/CLI")
def test_the_same_bytes_give_the_same_report_byte_for_byte(tmp_path: Path) -> None:
    write(tmp_path, TWO)
    first, second = (
        subprocess.run(
            [sys.executable, "-c", EVERY_FORM],
            cwd=tmp_path,
            env=environment(tmp_path, PYTHONHASHSEED=seed),
            capture_output=True,
            text=True,
            timeout=4 * WAIT_S,
            check=True,
        ).stdout
        for seed in ("1", "2")
    )
    assert first == second
    assert len(re.split(r"\S\s+end of \w+\n", first)) == 6, "each form says something"


def test_the_forms_can_be_read_by_their_readers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, BAD)
    judge("--capture", path, "--format", "junit")
    assert ElementTree.fromstring(capsys.readouterr().out).tag == "testsuites"
    judge("--capture", path, "--format", "sarif")
    assert json.loads(capsys.readouterr().out)["version"] == "2.1.0"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--rules", "INV-001"], 0),
        (["--rules", "inv"], 1),
        (["--allow-missing-initialized"], 0),
        (["--era", "modern"], 0),
        (["--era", "legacy"], 1),
        (["--rules", "GW-015"], 0),
        (["--rules", "GW-015", "--not-judged", "fail"], 1),
        (["--rules", "GW-006", "--fail-on", "should"], 0),
    ],
)
def test_options_change_what_counts(
    tmp_path: Path, words: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert judge("--capture", write(tmp_path, BAD), *words) == code


def test_a_baseline_excuses_and_a_stale_one_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known = write(tmp_path, "server:\n  - INV-002\n", "known.yml")
    assert judge("--capture", write(tmp_path, BAD), "--baseline", known) == 0
    assert "(expected)" in capsys.readouterr().out
    assert judge("--capture", write(tmp_path, GOOD), "--baseline", known) == 1
    assert "stale" in capsys.readouterr().out


def test_a_capture_can_not_move_the_cursor_of_the_terminal_that_shows_its_report(tmp_path: Path) -> None:
    evil = capture(*handshake(), failed(2, EVIL, {"code": EVIL, "message": EVIL}), label=EVIL)
    write(tmp_path, evil)
    code, received = run_on_terminal(tmp_path, "compliance", "invariants", "--capture", "session.json", NO_COLOR="1")
    assert code == 1
    assert b"\x1b" not in received
    assert b"\x07" not in received
    assert "\u202e".encode() not in received


def test_colour_is_for_terminals_only(tmp_path: Path) -> None:
    write(tmp_path, BAD)
    words = ("compliance", "invariants", "--capture", "session.json")
    assert b"\x1b[31mFAIL" in run_on_terminal(tmp_path, *words)[1]
    assert "\x1b" not in run(tmp_path, *words).stdout


@pytest.mark.requirement("S3/SCOPE")
def test_the_command_opens_no_socket(tmp_path: Path) -> None:
    write(tmp_path, TWO)
    script = """
import os, sys
def refuse(event, arguments):
    if event.startswith(("socket", "subprocess", "os.exec", "os.posix_spawn")):
        sys.stdout.flush(); os._exit(9)
sys.addaudithook(refuse)
from pactgate.cli import main
sys.exit(main.run(sys.argv[1:]))
"""
    words = [sys.executable, "-c", script, "compliance", "invariants", "--capture", "session.json", "--rules", "all"]
    done = subprocess.run(words, cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].startswith("FAILED")


def test_the_example_in_the_repository_runs_as_printed() -> None:
    done = run(ROOT, "compliance", "run", "--config", "examples/official-conformance.yml")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "PASSED: 7 of 7 checks as expected."


def test_a_run_says_what_is_not_as_expected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, BAD, "bad.json")
    write(tmp_path, TWO, "two.json")
    checks = "checks: [{capture: bad.json}, {capture: two.json}, {capture: missing.json, name: lost}]"
    path = write(tmp_path, checks, "suite.yml")
    assert main.run(["compliance", "run", "--config", path]) == 1
    printed = capsys.readouterr().out
    assert "expected to fail: nothing; failed: INV-002" in printed
    assert "COMP-002" in printed
    assert "FAIL  lost" in printed
    assert printed.splitlines()[-1] == "FAILED: 0 of 3 checks as expected."
    assert main.run(["compliance", "run", "--config", path, "--format", "json"]) == 1
    outcome = json.loads(capsys.readouterr().out)
    assert [(check["met"], check["failures"]) for check in outcome["checks"]] == [
        (False, ["INV-002"]),
        (False, ["COMP-002"]),
        (False, []),
    ]


@pytest.mark.parametrize("text", ["checks: 7", "checks: [{live: {url: 'http://127.0.0.1:1/mcp'}}]"])
def test_a_run_that_can_not_be_made_is_a_wrong_invocation(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["compliance", "run", "--config", write(tmp_path, text, "suite.yml")]) == 2
    assert "suite.yml" in capsys.readouterr().err


def test_rules_are_listed_and_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["compliance", "rules"]) == 0
    assert "INV-002   MUST" in capsys.readouterr().out
    assert main.run(["compliance", "rules", "gw-040"]) == 0
    printed = capsys.readouterr().out
    assert "tool_list_faulty" in printed
    assert "How to fix" in printed
    assert main.run(["compliance", "rules", "INV-002", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["decides"] is True
    assert main.run(["compliance", "rules", "INV-999"]) == 2


def test_a_large_capture_is_judged_under_a_progress_bar(tmp_path: Path) -> None:
    from pactgate.cli.compliance import _bar

    assert _bar(50_000_000, 200_000_000) == "[######                  ]  25% of 200 MB"
    assert _bar(50_000_000, None) == "50 MB"
    assert _bar(10, 5).endswith("100% of 0 MB")


def test_on_a_terminal_the_text_of_a_rule_is_wrapped_below_its_beginning(tmp_path: Path) -> None:
    code, screen = run_on_terminal(
        tmp_path, "compliance", "invariants", "--capture", write(tmp_path, BAD), NO_COLOR="1"
    )
    lines = screen.decode().splitlines()
    assert code == 1
    assert max(len(line) for line in lines if "https://" not in line) <= 80
    (at,) = [number for number, line in enumerate(lines) if line.startswith("  pass  INV-003")]
    assert lines[at + 1].startswith(" " * 17 + "prompts/list")
