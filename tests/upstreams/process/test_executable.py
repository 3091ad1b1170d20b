"""What a program needs to be started, found by looking only."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from pactgate.upstreams.process.executable import find_executable, resolve_executable


def executable(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_a_program_is_found_on_the_path_it_is_given_or_from_its_folder(tmp_path: Path) -> None:
    tool = str(executable(tmp_path / "bin" / "tool"))
    assert find_executable("tool", None, {"PATH": str(tmp_path / "bin")}) == tool
    assert find_executable("bin/tool", str(tmp_path), {"PATH": ""}) == tool
    assert find_executable(tool, "/", {}) == tool


@pytest.mark.parametrize("command", ["tool", "./tool", "/no/such/tool", "/usr"])
def test_what_is_no_program_is_not_found(command: str, tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("not executable")
    assert find_executable(command, str(tmp_path), {"PATH": str(tmp_path)}) is None
    assert resolve_executable((command,), str(tmp_path), {"PATH": str(tmp_path)}) is None


def test_a_program_in_a_bin_folder_brings_its_prefix(tmp_path: Path) -> None:
    tool = executable(tmp_path / "node" / "bin" / "tool")
    link = tmp_path / "links" / "tool"
    link.parent.mkdir()
    link.symlink_to(tool)
    program = resolve_executable((str(link), "x"), None, {"HOME": "/nowhere"})
    assert program is not None
    assert program.argv == (str(link), "x")
    assert {str(link.parent), str(tmp_path / "node")} <= set(program.reads)
    assert str(tool) in program.executes
    assert os.path.realpath("/bin/sh") in program.executes


@pytest.mark.parametrize("place", [".", "bin", ".local/bin"])
def test_a_home_is_not_opened_up_because_a_program_lies_in_it(place: str, tmp_path: Path) -> None:
    home = tmp_path / "me"
    tool = executable(home / place / "tool")
    program = resolve_executable((str(tool),), None, {"HOME": str(home)})
    assert program is not None
    too_much = {str(path) for path in (home, home / ".local", *home.parents)}
    assert not too_much & {os.path.normpath(one) for one in program.reads}
    assert any(str(tool).startswith(one) for one in map(os.path.normpath, program.reads))


def test_a_script_given_to_an_interpreter_brings_its_folder_but_not_a_home(tmp_path: Path) -> None:
    app, loose = tmp_path / "app" / "server.py", tmp_path / "loose.py"
    for file in (app, loose):
        file.parent.mkdir(exist_ok=True)
        file.write_text("")
    env = {"HOME": str(tmp_path)}
    reads = [
        getattr(resolve_executable((sys.executable, "-u", str(file)), None, env), "reads", ()) for file in (app, loose)
    ]
    assert str(app.parent) in reads[0]
    assert str(loose) in reads[1]
    assert str(tmp_path) not in (*reads[0], *reads[1])


def test_env_in_a_first_line_is_resolved(tmp_path: Path) -> None:
    script = executable(tmp_path / "serve", "#!/usr/bin/env tool\n")
    tool = executable(tmp_path / "bin" / "tool")
    program = resolve_executable((str(script), "a"), None, {"PATH": str(tool.parent), "HOME": "/nowhere"})
    assert program is not None
    assert program.argv == (str(tool), str(script), "a")


def test_first_lines_that_can_not_be_read_are_left_to_the_kernel(tmp_path: Path) -> None:
    for number, line in enumerate(("#!", "#!/no/such", "#!/usr/bin/env -S a b", "\x7fELF", "")):
        script = executable(tmp_path / f"script{number}", line + "\n")
        program = resolve_executable((str(script),), None, {"HOME": "/nowhere"})
        assert program is not None
        assert program.argv == (str(script),)


def test_interpreters_that_name_each_other_come_to_an_end(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    executable(first, f"#!{second}\n")
    executable(second, f"#!{first}\n")
    assert resolve_executable((str(first),), None, {}) is not None


def test_a_virtual_environment_brings_the_interpreter_it_was_made_from(tmp_path: Path) -> None:
    venv.EnvBuilder(symlinks=False, with_pip=False).create(tmp_path / "env")
    program = resolve_executable((str(tmp_path / "env" / "bin" / "python"),), None, {"HOME": "/nowhere"})
    assert program is not None
    assert {str(tmp_path / "env"), os.path.realpath(sys.base_prefix)} <= {
        os.path.realpath(one) for one in program.reads
    }


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ELF is the format of Linux")
def test_the_loader_of_a_program_is_found() -> None:
    program = resolve_executable(("/bin/ls",), None, {})
    assert program is not None
    loaders = [file for file in program.executes if os.path.basename(file).startswith("ld")]
    assert len(loaders) == 1
    listing = subprocess.run([loaders[0], "--list", "/bin/ls"], capture_output=True, check=True).stdout
    assert b"libc" in listing
