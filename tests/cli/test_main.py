"""Help, version, wrong invocations, and the exit codes that go with them."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import pactgate
from pactgate.cli import commands, main
from tests.cli.program import PROGRAM, environment, run, run_on_terminal, run_program

COMMANDS = [name for name, lazy in commands.COMMANDS.items() if not lazy.is_hidden]


def test_help_names_every_command_with_examples(tmp_path: Path) -> None:
    done = run(tmp_path, "--help")
    assert done.returncode == 0
    for command in COMMANDS:
        assert f"\n  {command} " in done.stdout
    assert "pactgate call date_facts date=2026-06-21" in done.stdout


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_each_command_has_help(command: str, flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run([command, flag]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert f"Usage: pactgate {command}" in printed.out


def test_the_version_is_the_packages(tmp_path: Path) -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert run_program(tmp_path, "--version").stdout == f"pactgate {pactgate.__version__}\n"
    assert project.get("version", pactgate.__version__) == pactgate.__version__


@pytest.mark.parametrize(
    "words",
    [
        ["nothing"],
        ["serve", "--nothing"],
        ["serve", "--port", "many"],
        ["servers", "extra"],
        ["call"],
        ["call", "x", "--timeout-ms", "0"],
        ["servers", "--url", "ftp://x"],
        ["servers", "--url", "http://"],
        ["servers", "--url", "http://x:99999"],
        ["servers", "--url", "http://user:pass@x"],
    ],
)
def test_a_wrong_invocation_is_exit_code_2_and_says_what_is_wrong(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(words) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "error" in printed.err.lower()


@pytest.mark.parametrize("words", [["servers"], ["tools"], ["status"], ["call", "x"]])
def test_without_a_gateway_one_is_told_how_to_start_it(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run([*words, "--url", "http://127.0.0.1:9"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "Nothing answers at http://127.0.0.1:9." in printed.err
    assert "pactgate serve" in printed.err


def test_the_address_comes_from_the_configuration_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "pactgate.toml").write_text('[listen]\nhost = "0.0.0.0"\nport = 9\n')
    assert "Nothing answers at http://127.0.0.1:9." in run(tmp_path, "status").stderr


def test_where_the_configuration_cant_be_read_no_address_is_guessed(tmp_path: Path) -> None:
    (tmp_path / "pactgate.json").write_text("{")
    done = run(tmp_path, "status")
    assert (done.returncode, "7411" in done.stderr) == (2, False)
    assert "pactgate.json" in done.stderr


def test_an_error_is_red_on_a_terminal_only(tmp_path: Path) -> None:
    words = ("status", "--url", "http://127.0.0.1:9")
    assert b"\x1b[31merror:" in run_on_terminal(tmp_path, *words)[1]
    assert b"\x1b" not in run_on_terminal(tmp_path, *words, NO_COLOR="1")[1]
    assert b"\x1b" not in run_on_terminal(tmp_path, *words, TERM="dumb")[1]
    assert "\x1b" not in run(tmp_path, *words).stderr


def test_a_reader_that_has_seen_enough_is_no_reason_for_a_traceback(tmp_path: Path) -> None:
    command = " ".join([*PROGRAM, "--help", "|", "true"])
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, check=False
    )
    assert done.stderr == ""


def test_a_terminal_without_unicode_gets_escapes_instead_of_a_traceback(tmp_path: Path) -> None:
    done = run_program(tmp_path, "servers", "--url", "http://bücher:1/", PYTHONIOENCODING="ascii")
    assert done.returncode == 1
    assert "b\\xfccher" in done.stderr


def test_neither_help_nor_a_gateway_is_needed_to_import_the_entry_point() -> None:
    script = "import pactgate.cli.main, sys; print(*sorted(sys.modules))"
    modules = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not {"click", "asyncio", "msgspec"} & set(modules)


def test_a_wrong_invocation_looks_like_every_other_error(tmp_path: Path) -> None:
    done = run(tmp_path, "tools", "--no-such-option")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: No such option")
    assert "`pactgate tools --help` shows how to use it." in done.stderr


def test_an_option_of_a_servers_program_needs_two_dashes_before_it(tmp_path: Path) -> None:
    done = run(tmp_path, "add", "time", "uvx", "mcp-server-time", "--local-timezone", "UTC")
    assert done.returncode == 2
    assert "come after --" in done.stderr
