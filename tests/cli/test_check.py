"""`pactgate check`: all problems at once with their places, or what would be served; nothing is started."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.program import run, run_on_terminal, write_config

BAD = """{
  "mcpServers": {
    "files": { "comand": "npx" },
    "CRM": { "url": "ftp://crm.example" }
  },
  "listen": { "port": 70000 }
}
"""


def test_every_problem_is_named_with_its_place_and_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "pactgate.json").write_text(BAD)
    done = run(tmp_path, "check")
    assert (done.returncode, done.stdout) == (2, "")
    for place in ("pactgate.json:3:", "pactgate.json:4:", "pactgate.json:6:"):
        assert place in done.stderr
    assert "command" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_same_problems_as_json(tmp_path: Path) -> None:
    (tmp_path / "pactgate.json").write_text(BAD)
    done = run(tmp_path, "check", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["ok"]) == (2, False)
    assert {problem["line"] for problem in found["problems"]} == {3, 4, 6}
    assert all(problem["message"] for problem in found["problems"])


def test_a_good_configuration_is_summed_up(tmp_path: Path) -> None:
    write_config(
        tmp_path,
        {
            "files": {"command": "npx", "args": ["-y", "server"], "requestTimeoutMs": 5000},
            "crm": {"url": "https://crm.example/mcp", "enabled": False, "era": "modern"},
        },
    )
    done = run(tmp_path, "check")
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 servers" in done.stdout
    rows = [line.split() for line in done.stdout.splitlines()[1:]]
    assert rows[1] == ["files", "yes", "auto", "5000", "ms", "npx", "-y", "server"]
    assert rows[2] == ["crm", "no", "modern", "60000", "ms", "https://crm.example/mcp"]


def test_the_summary_as_json_gives_no_secret_away(tmp_path: Path) -> None:
    servers = {"crm": {"command": "crm", "args": ["--token", "${CRM_TOKEN}"], "env": {"T": "${CRM_TOKEN}"}}}
    write_config(tmp_path, servers)
    done = run(tmp_path, "check", "--json", CRM_TOKEN="canary-4711")
    assert done.returncode == 0
    assert json.loads(done.stdout)["servers"][0]["serverId"] == "crm"
    assert "canary-4711" not in done.stdout + run(tmp_path, "check", CRM_TOKEN="canary-4711").stdout


def test_a_warning_is_shown_and_is_no_failure(tmp_path: Path) -> None:
    path = write_config(tmp_path, {"files": {"command": "npx"}})
    path.chmod(0o666)
    done = run(tmp_path, "check")
    assert done.returncode == 0
    assert "warning:" in done.stderr


def test_nothing_to_check_is_not_good(tmp_path: Path) -> None:
    assert run(tmp_path, "check").returncode == 2
    done = run(tmp_path, "check", "--config", "missing.json")
    assert done.returncode == 2
    assert "missing.json" in done.stderr


def test_an_unresolved_variable_is_a_problem(tmp_path: Path) -> None:
    write_config(tmp_path, {"crm": {"url": "https://crm.example/${WHERE}"}})
    done = run(tmp_path, "check")
    assert done.returncode == 2
    assert "WHERE" in done.stderr


def test_a_file_can_not_move_the_cursor_of_the_terminal_that_shows_its_problems(tmp_path: Path) -> None:
    (tmp_path / "pactgate.json").write_text('{"\\u001b]0;owned\\u0007\\u202e": 1, "mcpServers": {"\\u009b2J": {}}}')
    code, received = run_on_terminal(tmp_path, "check", NO_COLOR="1")
    assert code == 2
    assert not {b"\x1b", b"\x07", "\u202e".encode(), "\x9b".encode()} & {
        received[i : i + n] for n in (1, 2, 3) for i in range(len(received))
    }


def test_the_example_in_the_repository_is_good(tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "examples" / "pactgate.jsonc"
    done = run(tmp_path, "check", "--config", str(example), CRM_TOKEN="crm-1", PACTGATE_ADMIN_TOKEN="0123456789abcdef")
    assert done.returncode == 0, done.stderr
