"""Files of a configuration: read within bounds, and whom else they are open to."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pactgate.config.file_access import other_writers
from tests.config.writing import loaded, problems, server

# -- secrets from files


def test_a_secret_is_read_from_a_file_without_the_line_break_at_its_end(tmp_path: Path) -> None:
    (tmp_path / "absolute").write_text("some-credential\n")
    (tmp_path / "relative").write_text("other-credential\r\n")
    env = {"A": f"${{file:{tmp_path}/absolute}}", "B": "x ${file:relative}"}
    config = loaded(tmp_path, server(env=env))
    assert config.servers["files"].env == {"A": "some-credential", "B": "x other-credential"}
    assert {"some-credential", "other-credential"} <= set(config.secrets)
    assert config.secret_files == (f"{tmp_path}/absolute", f"{tmp_path}/relative")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda path: None, "No such file"),
        (lambda path: path.mkdir(), "not a regular file"),
        (lambda path: os.mkfifo(path), "not a regular file"),
        (lambda path: path.write_bytes(b""), "is empty"),
        (lambda path: path.write_bytes(b"canary\xff"), "not UTF-8"),
        (lambda path: path.write_bytes(b"canary" * 20_000), "larger than"),
    ],
)
def test_a_file_that_has_no_usable_secret_is_a_problem_with_its_line(
    make: Callable[[Path], Any], why: str, tmp_path: Path
) -> None:
    make(tmp_path / "secret")
    (problem,) = problems(tmp_path, server(env={"A": "${file:secret}"}))
    assert problem.path == "mcpServers.files.env.A"
    assert why in problem.message
    assert problem.line == 6
    assert "canary" not in str(problem)


def test_what_a_secret_file_holds_is_not_expanded_again(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("${HOME} ${file:secret}")
    config = loaded(tmp_path, server(env={"A": "${file:secret}"}), HOME="/")
    assert config.servers["files"].env == {"A": "${HOME} ${file:secret}"}


# -- who else may write


@pytest.mark.parametrize(
    ("mode", "who"), [(0o644, None), (0o600, None), (0o666, "Every user"), (0o602, "Every user"), (0o664, "Its group")]
)
def test_whoever_else_may_write_a_file_is_named(mode: int, who: str | None, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    file.chmod(mode)
    writers = other_writers(file)
    assert (writers and writers.who) == who


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_written_by_that_user(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch(0o600)
    os.chown(file, 12345, 12345)
    writers = other_writers(file)
    assert writers is not None
    assert "another user" in writers.who
    assert not writers.is_everybody


def test_a_file_that_is_not_there_is_written_by_nobody(tmp_path: Path) -> None:
    assert other_writers(tmp_path / "missing") is None
    assert other_writers("\x00") is None


def test_tools_that_every_user_may_write_are_a_warning(tmp_path: Path) -> None:
    tools = tmp_path / "kit.py"
    tools.touch(0o600)
    assert loaded(tmp_path, {"mcpServers": {"kit": {"tools": "kit.py"}}}).warnings == ()
    tools.chmod(0o666)
    (warning,) = loaded(tmp_path, {"mcpServers": {"kit": {"tools": "kit.py"}}}).warnings
    assert warning.path == "mcpServers.kit.tools"
    assert "runs it" in warning.message
