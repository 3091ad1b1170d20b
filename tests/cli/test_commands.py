"""The command tree: lazily loaded, and true to the commands behind it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from pactgate.cli.commands import COMMANDS, app
from tests.cli.program import PROGRAM, environment, run
from tests.support.each import each

UNNEEDED = {"pydantic", "rich", "typer", "yaml", "http.client", "difflib"}


def loaded(*words: str) -> set[str]:
    """The modules that a command line imports."""
    script = f"import sys; from pactgate.cli.main import run; run({list(words)}); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@each("name", COMMANDS)
def test_the_listed_help_of_a_command_is_how_its_own_help_begins(name: str) -> None:
    command = app.get_command(click.Context(app), name)
    assert command is not None
    own = (command.help or "").split()
    if not COMMANDS[name].is_hidden:
        first_words = COMMANDS[name].help.rstrip(".").replace(",", "").split()[:2]
        assert [word.rstrip(".,:") for word in own[:2]] == first_words


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_help_and_version_import_no_command(flag: str) -> None:
    assert not (UNNEEDED | {"asyncio", "msgspec", "pactgate.app", "pactgate.cli.serve"}) & loaded(flag)


def test_serve_imports_only_what_a_gateway_needs() -> None:
    modules = loaded("serve", "--help")
    assert "pactgate.app" in modules
    assert not UNNEEDED & modules


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_the_shell(tmp_path: Path, shell: str) -> None:
    done = run(tmp_path, "completion", shell)
    assert done.returncode == 0
    assert "_PACTGATE_COMPLETE" in done.stdout


@pytest.mark.parametrize(
    ("words", "suggested"),
    [("pactgate ex", {"explain"}), ("pactgate serve --st", {"--stdio"}), ("pactgate conf", {"config"})],
)
def test_completion_suggests_commands_and_options(tmp_path: Path, words: str, suggested: set[str]) -> None:
    asked = {"_PACTGATE_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    done = subprocess.run(
        PROGRAM, cwd=tmp_path, env=environment(tmp_path, **asked), capture_output=True, text=True, check=False
    )
    assert {line.partition(",")[2] for line in done.stdout.splitlines()} == suggested


def every_command(group: click.Group, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield (*words, name)
        if isinstance(command, click.Group):
            yield from every_command(command, (*words, name))


@each("words", [(), *every_command(app)])
def test_help_fits_eighty_columns_and_cuts_nothing(words: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, [*words, "--help"], terminal_width=80)
    assert done.exit_code == 0
    assert max(map(len, done.output.splitlines())) <= 80
    assert not [line for line in done.output.splitlines() if re.match(r"  \w.*\.\.\.$", line)]
