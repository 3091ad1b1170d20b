"""The launcher as the program it is, on this kernel and on ones it takes for older, and its filter on every machine it knows."""

from __future__ import annotations

import ast
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pactgate.config.sections.effects import Effects
from pactgate.upstreams.process import launcher, syscall_filter
from pactgate.upstreams.process.executable import resolve_executable
from pactgate.upstreams.process.sandbox import LAUNCHER, SandboxRules, confine, rules_of
from tests.upstreams.confinement import LIAR, bare, environment, needs_kernel, run, world

ROOT = Path(__file__).parents[3]


def launched(
    rules: SandboxRules | str, *argv: str, abi: int | None = None, seccomp: bool = True
) -> subprocess.CompletedProcess[str]:
    """The launcher with these rules; with `abi` or without `seccomp` it takes the kernel for a lesser one."""
    text = rules if isinstance(rules, str) else msgspec.json.encode(rules).decode()
    start: tuple[str, ...] = (LAUNCHER,)
    if abi is not None or not seccomp:
        changes = f"launcher.landlock_abi = lambda: {abi}\n" if abi is not None else ""
        changes += "" if seccomp else "launcher.syscall_numbers = lambda: None\n"
        package = (
            f"import sys\nsys.path.append({str(ROOT / 'src')!r})\nfrom pactgate.upstreams.process import launcher\n"
        )
        start = ("-c", f"{package}{changes}launcher.main(sys.argv[1:])")
    return run(bare(sys.executable, "-I", "-S", *start, text, "--", *argv))


def rules_for(effects: Effects, *argv: str) -> SandboxRules:
    program = resolve_executable(argv, "/", environment())
    assert program is not None
    return rules_of(effects, program)


def lie(effects: Effects, at: dict[str, Any], *only: str, **kernel: Any) -> tuple[dict[str, str], str]:
    argv = (sys.executable, "-I", "-S", LIAR, json.dumps(at | {"only": only}))
    done = launched(rules_for(effects, *argv), *argv, **kernel)
    return json.loads(done.stdout)["params"] if done.stdout else {}, done.stderr


# What it refuses.


@pytest.mark.parametrize("words", [(), ("{}",), ("{}", "true"), ("{}", "--"), ("{", "--", "true")])
def test_words_it_does_not_understand_start_nothing(words: tuple[str, ...]) -> None:
    done = run(bare(sys.executable, "-I", "-S", LAUNCHER, *words))
    assert done.returncode == 126
    assert done.stderr.startswith("pactgate launcher: refused: ")
    assert done.stderr.count("\n") == 1


@needs_kernel
@pytest.mark.requirement("S2/MCP-002")
@pytest.mark.parametrize(
    ("kernel", "missing"),
    [
        ({"abi": 0}, "files, signals to other programs"),
        ({"abi": 5}, "signals to other programs"),
        (
            {"seccomp": False},
            "kinds of sockets, starting programs, modes, owners and times of files, "
            "limits and priorities of other programs",
        ),
    ],
)
def test_a_kernel_that_can_not_hold_the_rules_starts_nothing(
    kernel: dict[str, Any], missing: str, tmp_path: Path
) -> None:
    made = tmp_path / "made"
    done = launched(rules_for(Effects(), "touch"), "touch", str(made), **kernel)
    assert (done.returncode, done.stderr) == (
        126,
        f"pactgate launcher: refused: this kernel can't enforce: {missing}\n",
    )
    assert not made.exists()


@needs_kernel
def test_rules_the_kernel_does_not_take_start_nothing() -> None:
    rules = SandboxRules(connect=(70_000,))
    done = launched(rules, "/bin/true")
    assert done.returncode == 126
    assert "refused: the rules could not be applied: Invalid argument" in done.stderr


@needs_kernel
@pytest.mark.parametrize(
    ("command", "code", "why"),
    [
        ("/no/such/program", 127, "No such file or directory"),
        ("no-such-program", 127, "No such file"),
        ("/usr", 126, "Permission denied"),
    ],
)
def test_a_program_that_can_not_be_started_is_said(command: str, code: int, why: str) -> None:
    done = launched(rules_for(Effects(), "true"), command)
    assert done.returncode == code
    assert f"pactgate launcher: {command} could not be started: {why}" in done.stderr


@needs_kernel
def test_a_declared_path_that_is_missing_is_said_and_no_obstacle(tmp_path: Path) -> None:
    gone = str(tmp_path / "gone")
    done = run(confine(bare("true"), Effects(read=(gone,))).launch)
    assert (done.returncode, done.stderr) == (
        0,
        f"pactgate launcher: nothing is allowed in {gone}: No such file or directory\n",
    )


# Lesser kernels, as far as they go.


@needs_kernel
@pytest.mark.requirement("S2/MCP-002")
@pytest.mark.parametrize("abi", [1, 2, 3, 4, 5])
def test_an_older_landlock_still_holds_files_and_connections(abi: int, tmp_path: Path) -> None:
    with world(tmp_path / "there") as at:
        deeds = (
            "read a file",
            "write a file",
            "rename a file",
            "connect",
            "listen",
            "send a datagram",
            "start a program",
        )
        ends, said = lie(Effects(best_effort=True), at, *deeds, abi=abi)
    assert set(ends.values()) == {"EACCES"}, ends
    assert "not enforced by this kernel: " in said
    assert "signals to other programs" in said


@needs_kernel
def test_without_landlock_the_filter_still_holds_sockets_and_programs(tmp_path: Path) -> None:
    with world(tmp_path / "there") as at:
        deeds = (
            "read a file",
            "connect",
            "send a datagram",
            "start a program",
            "connect to a Unix socket",
            "change a mode",
        )
        ends, _ = lie(Effects(best_effort=True), at, *deeds, abi=0)
    assert ends.pop("read a file") == "done"
    assert set(ends.values()) == {"EACCES"}, ends


@needs_kernel
def test_without_a_filter_landlock_still_holds_files_ports_and_signals(tmp_path: Path) -> None:
    with world(tmp_path / "there") as at:
        deeds = ("read a file", "connect", "signal the parent", "connect to an abstract socket", "send a datagram")
        ends, _ = lie(Effects(best_effort=True), at, *deeds, seccomp=False)
    assert ends.pop("send a datagram") == "done"
    assert set(ends.values()) <= {"EACCES", "EPERM"}, ends


COUNTS = "import os; print(os.waitpid(os.fork() or os._exit(0), 0)[1], len(os.listdir('/proc/self/fd')))"
ALREADY_TAKEN = (
    "kernel = launcher._Kernel(); kernel.forbid_new_privileges()\n"
    "launcher._install_filter(kernel, launcher.syscall_numbers(), [(6, 0, 0, 0x7FFF0000)], flags=8)\n"
)


@needs_kernel
@pytest.mark.parametrize(
    ("before", "code", "received", "printed"),
    [("", "pass", (b"forks", 1), ""), (ALREADY_TAKEN, COUNTS, (b"", 0), "0 4\n")],
    ids=["free", "taken"],
)
def test_the_gateway_gets_the_queue_of_forks_unless_a_container_has_taken_it(
    before: str, code: str, received: tuple[bytes, int], printed: str
) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        program = (sys.executable, "-I", "-S", "-c", code)
        rules = rules_for(Effects(), *program)
        rules = msgspec.structs.replace(rules, read=tuple(filter(os.path.exists, rules.read)), forks=theirs.fileno())
        start = f"import sys\nsys.path.append({str(ROOT / 'src')!r})\nfrom pactgate.upstreams.process import launcher\n"
        words = [f"{start}{before}launcher.main(sys.argv[1:])", msgspec.json.encode(rules).decode(), "--", *program]
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", *words],
            pass_fds=[theirs.fileno()],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        theirs.close()
        message, queues, _, _ = socket.recv_fds(ours, 16, 1)
        for queue in queues:
            os.close(queue)
    assert (done.returncode, done.stderr) == (0, "")
    assert ((message, len(queues)), done.stdout) == (received, printed)


# What everything it starts inherits.


@needs_kernel
@pytest.mark.requirement("S2/MCP-002")
def test_grandchildren_are_held_like_the_program_itself(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    script = f"sh -c 'cat {tmp_path}/secret; echo x > {tmp_path}/new' & wait; (sh -c 'cat {tmp_path}/secret')"
    done = run(confine(bare("sh", "-c", script), Effects(run=True)).launch)
    assert done.stdout == ""
    assert not (tmp_path / "new").exists()
    assert done.stderr.count("Permission denied") == 2 + 1


@needs_kernel
def test_no_privilege_can_be_gained_and_no_descriptor_is_left() -> None:
    code = "import os\nprint([line for line in open('/proc/self/status') if 'NoNewPrivs' in line], len(os.listdir('/proc/self/fd')))"
    done = run(confine(bare(sys.executable, "-I", "-S", "-c", code), Effects()).launch)
    assert done.stdout == "['NoNewPrivs:\\t1\\n'] 4\n", done.stderr


# What it is made of.


def test_a_device_node_is_never_within_the_rights() -> None:
    for right in (launcher.MAKE_CHAR, launcher.MAKE_BLOCK):
        assert not launcher.WRITING & right
        assert launcher.handled_rights({"run": "any"}, 1) & right


def test_the_launcher_and_its_filter_stand_alone() -> None:
    for file in (LAUNCHER, syscall_filter.__file__):
        nodes = [*ast.walk(ast.parse(Path(file).read_text()))]
        names = {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
        names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
        own = {name for name in names if name.split(".")[0] == "pactgate"}
        assert own <= {"pactgate.upstreams.process.syscall_filter"}
        assert {name.split(".")[0] for name in names - own} <= sys.stdlib_module_names
