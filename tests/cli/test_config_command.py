"""`pactgate config` against a running gateway: what is shown, what is changed, and with which exit code."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.program import PROGRAM, WATCHFUL, Served, environment, run, scripted, write_config
from tests.cli.test_reload import logged
from tests.support.eventually import eventually_blocking

TOKEN = {"PACTGATE_TOKEN": "9c1e7b52d04f8a63-ops-token"}
AUTH = {"anonymous": True, "tokens": {"ops": {"token": TOKEN["PACTGATE_TOKEN"], "roles": ["admin"]}}}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("settings")
    write_config(folder, {"files": scripted()}, auth=AUTH)
    with Served(folder) as served:
        served.wait_for("ok +files")
        yield served


def test_a_setting_is_read_changed_and_written(gateway: Served) -> None:
    assert gateway.run_program("config", "get", "limits.maxArraySize", **TOKEN).stdout == "100\n"
    changed = gateway.run("config", "set", "limits.maxArraySize", "7", **TOKEN)
    assert changed.returncode == 0
    assert changed.stdout.startswith("limits.maxArraySize: 100 -> 7 (")
    shown = gateway.run("config", "show", "--scope", "changes", **TOKEN)
    assert json.loads(shown.stdout) == {"limits.maxArraySize": 7}
    assert "not in the file" in shown.stderr
    kept = gateway.run("config", "set", "naming.exposed", "dot", "--persist", "--json", **TOKEN)
    facts = json.loads(kept.stdout)
    assert (facts["oldValue"], facts["newValue"], facts["persisted"]) == ("double_underscore", "dot", True)
    assert json.loads((gateway.folder / "pactgate.json").read_text())["naming"] == {"exposed": "dot"}
    lost = gateway.run("config", "set", "limits.maxArraySize", "8", "--expect", "000000000000", **TOKEN)
    assert lost.returncode == 1
    assert facts["revision"] in lost.stderr


def test_a_bad_value_is_refused_with_every_problem(gateway: Served) -> None:
    done = gateway.run("config", "set", "limits", '{"maxObjectDepth": 0, "maxString": 1}', **TOKEN)
    assert done.returncode == 1
    assert "Nothing was changed." in done.stderr
    assert "limits.maxObjectDepth: 0 is less than 1." in done.stdout
    assert "limits.maxString: Unknown setting." in done.stdout
    as_json = gateway.run("config", "set", "limits", '{"maxObjectDepth": 0}', "--json", **TOKEN)
    assert as_json.returncode == 1
    assert json.loads(as_json.stdout)["error"]["code"] == "INVALID_INPUT"


def test_what_stands_in_the_file_alone_says_so(gateway: Served) -> None:
    done = gateway.run("config", "set", "mcpServers.files.command", "sh", **TOKEN)
    assert done.returncode == 1
    assert "operator's file" in done.stderr
    unknown = gateway.run("config", "set", "mcpServers.nothing.enabled", "true", **TOKEN)
    assert "There is no server" in unknown.stderr


def test_whoever_is_no_administrator_is_told_what_it_takes(gateway: Served) -> None:
    done = gateway.run("config", "get", "limits")
    assert done.returncode == 1
    assert "keys add ops --roles admin" in done.stderr


def test_no_secret_is_shown(gateway: Served) -> None:
    shown = gateway.run("config", "show", **TOKEN)
    assert shown.returncode == 0
    assert TOKEN["PACTGATE_TOKEN"] not in shown.stdout
    assert json.loads(shown.stdout)["auth"]["tokens"]["ops"]["token"] == "***"


def test_wrong_words_are_a_wrong_invocation(tmp_path: Path) -> None:
    assert run(tmp_path, "config", "set", "limits.maxArraySize").returncode == 2
    assert run(tmp_path, "config", "nothing").returncode == 2
    nobody = run(tmp_path, "config", "get", "limits", "--url", "http://127.0.0.1:9")
    assert nobody.returncode == 1
    assert "Nothing answers" in nobody.stderr


def test_what_the_gateway_wrote_itself_is_no_news_and_sighup_makes_the_file_count_again(tmp_path: Path) -> None:
    write_config(tmp_path, {"files": scripted()}, auth=AUTH)
    with Served(tmp_path, program=WATCHFUL) as served:
        assert served.run("config", "set", "limits.maxArraySize", "7", **TOKEN).returncode == 0
        assert served.run("config", "set", "limits.maxObjectDepth", "7", "--persist", **TOKEN).returncode == 0
        seen = time.monotonic() + 0.3  # longer than the pause between two looks at the file
        eventually_blocking(lambda: time.monotonic() > seen)
        assert served.run("config", "get", "limits.maxArraySize", **TOKEN).stdout == "7\n"
        served.process.send_signal(signal.SIGHUP)
        told = logged(served, "ConfigurationReloaded")
        assert told["undone"] == ["limits.maxArraySize"]
        assert served.run("config", "get", "limits.maxArraySize", **TOKEN).stdout == "100\n"
        assert served.run("config", "get", "limits.maxObjectDepth", **TOKEN).stdout == "7\n"


def test_a_token_can_come_from_a_file_or_standard_input_instead_of_the_command_line(
    gateway: Served, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN["PACTGATE_TOKEN"] + "\n")
    words = ("config", "get", "limits")
    assert gateway.run(*words, "--token-file", str(file)).returncode == 0
    piped = subprocess.run(
        [*PROGRAM, *words, "--token-file", "-", "--url", gateway.url],
        input=file.read_bytes(),
        cwd=gateway.folder,
        env=environment(gateway.folder),
        capture_output=True,
        timeout=20,
        check=False,
    )
    assert piped.returncode == 0, piped.stderr
    file.write_text("")
    empty = gateway.run(*words, "--token-file", str(file), **TOKEN)
    assert (empty.returncode, "has no token in its first line" in empty.stderr) == (2, True)
    missing = gateway.run(*words, "--token-file", str(tmp_path / "none"))
    assert (missing.returncode, "can't be read" in missing.stderr) == (2, True)


def test_a_dry_run_shows_the_change_and_where_settings_come_from(gateway: Served) -> None:
    before = gateway.run("config", "get", "limits.maxObjectDepth", **TOKEN).stdout
    planned = gateway.run("config", "set", "limits.maxObjectDepth", "9", "--dry-run", **TOKEN)
    assert (planned.returncode, planned.stdout.startswith("limits.maxObjectDepth: 10 -> 9 (not applied")) == (0, True)
    assert gateway.run("config", "set", "limits.maxObjectDepth", "0", "--dry-run", **TOKEN).returncode == 1
    assert gateway.run("config", "get", "limits.maxObjectDepth", **TOKEN).stdout == before
    shown = json.loads(gateway.run("config", "show", "--json", **TOKEN).stdout)
    assert shown["origins"]["listen.port"] == "command line"
    assert shown["origins"]["auth.tokens"].startswith("pactgate.json:")
    assert {"limits", "mcpServers.*.enabled"} <= set(shown["settable"])
