"""`pactgate remove`, `enable` and `disable` change one entry and no other byte; `reload` reaches the running gateway."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.program import run

FILE = """\
{
  // what we use
  "mcpServers": {
    "files": { "command": "npx", "args": ["files"] }, // keep
    "My Crm": { "url": "https://crm.example/mcp", "disabled": true } /* old */
  }
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pactgate.jsonc").write_text(FILE)
    return tmp_path


def text_of(folder: Path) -> str:
    return (folder / "pactgate.jsonc").read_text()


def test_disable_and_enable_give_back_every_byte(folder: Path) -> None:
    assert run(folder, "disable", "files").returncode == 0
    assert '"enabled": false' in text_of(folder)
    assert "// keep" in text_of(folder)
    assert "/* old */" in text_of(folder)
    again = run(folder, "disable", "files")
    assert (again.returncode, "Nothing to do" in again.stdout) == (0, True)
    assert run(folder, "enable", "files").returncode == 0
    assert text_of(folder) == FILE


def test_an_entry_in_the_spelling_of_a_client_is_found_by_its_id_and_keeps_its_spelling(folder: Path) -> None:
    assert run(folder, "enable", "my-crm").returncode == 0
    assert "disabled" not in text_of(folder)
    assert run(folder, "disable", "my-crm").returncode == 0
    assert '"enabled": false' in text_of(folder)


def test_remove_takes_one_entry_away(folder: Path) -> None:
    assert run(folder, "remove", "files").returncode == 0
    assert "// what we use" in text_of(folder)
    assert json.loads(run(folder, "check", "--json").stdout)["servers"][0]["serverId"] == "my-crm"
    missing = run(folder, "remove", "files")
    assert (missing.returncode, "Servers: My Crm." in missing.stderr) == (2, True)


def test_reload_without_a_running_gateway_says_so(folder: Path) -> None:
    done = run(folder, "reload")
    assert (done.returncode, "`pactgate serve` starts one" in done.stderr) == (1, True)
