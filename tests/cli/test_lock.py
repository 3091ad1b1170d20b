"""`pactgate lock` as people and CI run it, with a real server whose definitions change."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.catalog.test_definition_pins import REFUND, SERVER, STATE, changed, write
from tests.cli.program import run, run_on_terminal
from tests.conformance.formats.test_as_sarif import SHAPE


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "state.json", STATE)
    crm = {"command": sys.executable, "args": [str(SERVER), "legacy", str(tmp_path / "state.json")]}
    (tmp_path / "pactgate.json").write_text(json.dumps({"mcpServers": {"crm": crm}}))
    done = run(tmp_path, "lock")
    assert done.returncode == 0, done.stderr
    assert "1 server, 3 tools, 1 prompt, 1 resource, 1 template." in done.stdout
    return tmp_path


def test_the_same_server_gives_the_same_bytes_and_passes_the_check(folder: Path) -> None:
    before = (folder / "pactgate.lock").read_bytes()
    assert run(folder, "lock", "--check").returncode == 0
    assert run(folder, "lock").returncode == 0
    assert (folder / "pactgate.lock").read_bytes() == before


def test_a_change_fails_the_check_in_every_format_and_is_shown(folder: Path) -> None:
    write(folder / "state.json", changed(description="Refunds an order.\U000e0041", annotations={"readOnlyHint": True}))
    text, as_json, sarif = (run(folder, "lock", "--check", "--format", form) for form in ("text", "json", "sarif"))
    assert [text.returncode, as_json.returncode, sarif.returncode] == [1, 1, 1]
    assert "readOnlyHint false → true" in text.stdout
    assert "U+E0041" in text.stdout
    (finding,) = json.loads(as_json.stdout)["findings"]
    assert (finding["name"], finding["change"]) == ("refund", "changed")
    report: Any = json.loads(sarif.stdout)
    assert list(Draft202012Validator(SHAPE).iter_errors(report)) == []
    (result,) = report["runs"][0]["results"]
    rules = report["runs"][0]["tool"]["driver"]["rules"]
    assert (report["version"], result["level"]) == ("2.1.0", "error")
    assert result["ruleId"] == rules[result["ruleIndex"]]["id"] == "lock-changed"
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "pactgate.lock"
    assert run(folder, "lock", "diff", "crm.find").returncode == 0
    assert run(folder, "lock", "diff", "crm.refund").returncode == 1


def test_one_definition_is_approved_and_the_rest_stays_as_it_was(folder: Path) -> None:
    state = changed(title="Other")
    write(folder / "state.json", {**state, "tools": [*state["tools"], {**REFUND, "name": "drop"}], "prompts": []})
    assert run(folder, "lock", "accept", "crm.refund").returncode == 0
    left = run(folder, "lock", "diff", "--json")
    found = [(one["name"], one["change"]) for one in json.loads(left.stdout)["findings"]]
    assert found == [("drop", "unknown"), ("greet", "removed")]
    assert run(folder, "lock", "accept", "crm").returncode == 0
    assert run(folder, "lock", "--check").returncode == 0
    nothing = run(folder, "lock", "accept", "crm.refund")
    assert (nothing.returncode, "Nothing of crm.refund differs" in nothing.stderr) == (1, True)


def test_a_server_that_can_not_be_asked_keeps_its_entry_and_fails_the_check(folder: Path) -> None:
    before = (folder / "pactgate.lock").read_text()
    (folder / "state.json").unlink()
    assert run(folder, "lock", "--check").returncode == 1
    done = run(folder, "lock")
    assert (done.returncode, "keeps its entry" in done.stderr) == (1, True)
    assert (folder / "pactgate.lock").read_text() == before


def test_wrong_invocations_say_what_to_do(tmp_path: Path) -> None:
    assert "no configuration" in run(tmp_path, "lock").stderr
    (tmp_path / "pactgate.json").write_text('{"mcpServers": {}}')
    assert "There is no server 'crm'" in run(tmp_path, "lock", "diff", "crm").stderr
    assert "`pactgate lock` writes one" in run(tmp_path, "lock", "--check").stderr


def test_a_difference_fits_a_terminal_and_nothing_but_its_colours_reaches_it(folder: Path) -> None:
    write(folder / "state.json", changed(description=f"Refunds\x1b[2J {'every order ' * 20}", title="\x1b]0;x\x07"))
    code, shown = run_on_terminal(folder, "lock", "diff")
    assert code == 1
    lines = re.sub(r"\x1b\[\d*m", "", shown.decode()).splitlines()
    assert any(line.strip().startswith("description: ") for line in lines)
    assert "\x1b" not in "".join(lines)
    assert max(map(len, lines)) <= 80
