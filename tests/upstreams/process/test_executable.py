"""What a program needs to be started, found by looking only."""

from __future__ import annotations

import os
import shutil
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
    assert {str(link), str(tmp_path / "node")} <= set(program.reads)
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


def project(folder: Path) -> Path:
    """A project as people have them: code, data, secrets and files of the gateway side by side."""
    for name in (
        *(
            "server.py",
            "helper.py",
            "package/__init__.py",
            "package/data.txt",
            "src/tool.js",
            "node_modules/a/index.js",
        ),
        *("notes.txt", "data/customers.csv", ".git/config", ".env", ".env.local", "src/.env", "pactgate.json"),
        *("pactgate.json.bak", "audit.jsonl", "audit.000001.jsonl", "audit.jsonl.lock", "captures/one.jsonl"),
        *("package.json", "tool"),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}")
    return folder


def private(folder: Path) -> tuple[str, ...]:
    return tuple(str(folder / name) for name in ("pactgate.json", "audit.jsonl", "captures"))


def readable(folder: Path, *argv: str) -> set[str]:
    """The files of the project that a program may read, by name."""
    program = resolve_executable(argv, str(folder), {"HOME": "/nowhere", "PATH": os.environ["PATH"]}, private(folder))
    assert program is not None
    opened = [Path(os.path.realpath(os.path.join(folder, one))) for one in program.reads]
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)) for path in files if any(path.is_relative_to(one) for one in opened)}


CODE = {"server.py", "helper.py", "package/__init__.py", "package/data.txt", "src/tool.js", "node_modules/a/index.js"}


@pytest.mark.requirement("S2/MCP-002")
def test_of_the_folder_of_a_script_only_its_code_is_opened(tmp_path: Path) -> None:
    folder = project(tmp_path / "project")
    assert readable(folder, sys.executable, "server.py") == CODE | {"package.json"}
    (folder / "server.py").write_text(f"#!{sys.executable}\n")
    (folder / "server.py").chmod(0o755)
    assert readable(folder, "./server.py") == CODE | {"package.json"}


@pytest.mark.requirement("S2/MCP-002")
@pytest.mark.parametrize("place", ["tool", "bin/tool"])
def test_no_file_of_the_gateway_is_opened_with_the_folder_of_a_program(place: str, tmp_path: Path) -> None:
    folder = project(tmp_path / "project")
    (folder / "tool").unlink()
    (folder / place).parent.mkdir(exist_ok=True)
    shutil.copy("/bin/true", folder / place)
    opened = readable(folder, f"./{place}")
    assert {*CODE, "notes.txt", "data/customers.csv"} <= opened
    assert not {name for name in opened if ".env" in name or name.startswith(("pactgate", "audit", "captures"))}


def test_a_link_to_a_file_of_the_gateway_is_not_opened(tmp_path: Path) -> None:
    folder = project(tmp_path / "project")
    (folder / "link.py").symlink_to("pactgate.json")
    (folder / "more").symlink_to("captures")
    (folder / "captures" / "kept.py").touch()
    (folder / "inside.py").symlink_to("captures/kept.py")
    program = resolve_executable((sys.executable, "server.py"), str(folder), {"HOME": "/nowhere"}, private(folder))
    assert program is not None
    assert not {str(folder / name) for name in ("link.py", "more", "inside.py", "pactgate.json")} & set(program.reads)


def test_a_javascript_program_brings_the_modules_of_its_package(tmp_path: Path) -> None:
    folder = project(tmp_path / "project")
    program = resolve_executable(("node", "src/tool.js"), str(folder), {"PATH": os.environ["PATH"], "HOME": "/nowhere"})
    if program is None:
        pytest.skip("node is not installed here")
    assert {str(folder / name) for name in ("package.json", "node_modules", "src/tool.js")} <= set(program.reads)
    assert str(folder) not in program.reads


def test_a_script_in_a_home_brings_nothing_but_itself(tmp_path: Path) -> None:
    folder = project(tmp_path / "home")
    program = resolve_executable((sys.executable, "-u", "server.py"), str(folder), {"HOME": str(folder)})
    assert program is not None
    assert [one for one in program.reads if one.startswith(str(folder))] == [str(folder / "server.py")]
    assert program.lists == ()


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
