"""Lines of strace become what was seen, and what was seen a declaration."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.config.sections.effects import MAX_PATHS, Effects
from pactgate.upstreams.process import strace
from pactgate.upstreams.process.strace import ObservedEffects, StraceParser, notes_on, propose_effects

PROGRAM = '1 execve("/usr/bin/python3", ["python3"], 0x7 /* 9 vars */) = 0'


def seen(*lines: str) -> ObservedEffects:
    trace = StraceParser("/srv")
    for line in (PROGRAM, *lines):
        trace.feed(line + "\n")
    return trace.seen


def proposed(*lines: str, exists: Any = lambda path: True) -> dict[str, Any]:
    effects = propose_effects(
        seen(*lines), always_read=("/usr", "/etc/hosts"), always_write=("/dev/null",), exists=exists
    )
    msgspec.convert(effects, Effects)
    return effects


@pytest.mark.parametrize(
    ("line", "effects"),
    [
        ('1 openat(AT_FDCWD</srv>, "a.txt", O_RDONLY|O_CLOEXEC) = 3</srv/a.txt>', {"read": ["/srv/a.txt"]}),
        ('1 open("/etc/passwd", O_RDONLY) = 3', {"read": ["/etc/passwd"]}),
        ('1 openat(AT_FDCWD</srv>, "/x", O_RDONLY) = -1 ENOENT (No such file or directory)', {}),
        ('1 openat(AT_FDCWD</srv>, "/usr/lib/x.so", O_RDONLY) = 3</usr/lib/x.so>', {}),
        ('1 openat(AT_FDCWD</srv>, "/proc/77/stat", O_RDONLY) = 3</proc/77/stat>', {}),
        ('1 openat(AT_FDCWD</srv>, "/dev/null", O_RDWR|O_CREAT, 0666) = 3</dev/null<char 1:3>>', {}),
        ('1 openat(AT_FDCWD</srv>, "log", O_WRONLY|O_APPEND) = 3</srv/log>', {"write": ["/srv/log"]}),
        ('1 openat(AT_FDCWD</srv>, "new", O_WRONLY|O_CREAT, 0666) = 3</srv/new>', {"write": ["/srv"]}),
        ('1 rename("old", "/data/new")     = 0', {"write": ["/data", "/srv"]}),
        ('1 unlinkat(5</data/in>, "x", 0) = 0', {"write": ["/data/in"]}),
        ('1 symlink("/secret", "/data/link") = 0', {"write": ["/data"]}),
        ('1 chmod("/data/x", 0600) = 0', {"write": ["/data/x"]}),
        ('1 openat(AT_FDCWD</srv>, "\\303\\251", O_RDONLY) = 3</srv/\\303\\251>', {"read": ["/srv/é"]}),
        (
            '1 connect(3<TCP:[7]>, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("1.2.3.4")}, 16) = -1 EINPROGRESS (Op)',
            {"connect": [443]},
        ),
        (
            '1 connect(3<TCPv6:[7]>, {sa_family=AF_INET6, sin6_port=htons(80), sin6_addr="::1"}, 28) = 0',
            {"connect": [80]},
        ),
        (
            '1 bind(6<TCP:[7]>, {sa_family=AF_INET, sin_port=htons(0), sin_addr=inet_addr("0.0.0.0")}, 16) = 0',
            {"bind": [0]},
        ),
        (
            '1 sendto(4<UDP:[7]>, "x", 1, 0, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("1.1.1.1")}, 16) = 1',
            {"sockets": True},
        ),
        (
            '1 connect(5<UNIX-STREAM:[7]>, {sa_family=AF_UNIX, sun_path="/run/x"}, 16) = -1 ENOENT (No such file or directory)',
            {},
        ),
        ('1 connect(5<UNIX-STREAM:[7]>, {sa_family=AF_UNIX, sun_path="/run/docker.sock"}, 16) = 0', {"sockets": True}),
        ('1 execve("/usr/bin/git", ["git"], 0x7 /* 9 vars */) = 0', {"run": ["/usr/bin/git"]}),
        ('1 execve("/usr/local/bin/git", ["git"], 0x7 /* 9 vars */) = -1 ENOENT (No such file or directory)', {}),
        ("1 getcwd(0x7, 1) = ?", {}),
        ("nothing of strace's", {}),
    ],
)
def test_what_is_done_is_what_is_proposed(line: str, effects: dict[str, Any]) -> None:
    assert proposed(line) == {"read": [], "write": [], "connect": [], **effects}


def test_a_call_that_another_thread_interrupted_is_read_whole() -> None:
    lines = (
        '2 openat(AT_FDCWD</srv>, "/etc/x", O_RDONLY <unfinished ...>',
        '3 openat(AT_FDCWD</srv>, "/etc/y", O_RDONLY) = 4</etc/y>',
        "2 <... openat resumed>) = 3</etc/x>",
    )
    assert proposed(*lines)["read"] == ["/etc/x", "/etc/y"]


def test_many_files_of_a_folder_become_the_folder_and_nothing_is_named_twice() -> None:
    lines = [f'1 openat(AT_FDCWD</srv>, "d/{n}", O_RDONLY) = 3</srv/d/{n}>' for n in range(5)]
    lines.append('1 openat(AT_FDCWD</srv>, "d/deep/x", O_RDONLY) = 3</srv/d/deep/x>')
    assert proposed(*lines)["read"] == ["/srv/d"]


def test_what_may_be_written_may_be_read_and_what_is_gone_is_its_folder() -> None:
    lines = (
        '1 openat(AT_FDCWD</srv>, "/data/db", O_RDWR) = 3</data/db>',
        '1 openat(AT_FDCWD</srv>, "/data/db", O_RDONLY) = 3</data/db>',
        '1 openat(AT_FDCWD</srv>, "/old/gone/x", O_RDONLY) = 3</old/gone/x>',
    )
    effects = proposed(*lines, exists=lambda path: "gone" not in path)
    assert (effects["read"], effects["write"]) == (["/old"], ["/data/db"])


@given(st.lists(st.text("abc/", min_size=1, max_size=12), max_size=200))
def test_a_proposal_always_fits_a_declaration(names: list[str]) -> None:
    lines = [f'1 openat(AT_FDCWD</srv>, "{name}", O_RDONLY) = 3</srv/{name}>' for name in names]
    assert len(proposed(*lines)["read"]) <= MAX_PATHS


@given(st.text(max_size=200))
def test_no_line_breaks_the_reading(line: str) -> None:
    seen(line, '1 openat(AT_FDCWD</srv>, "' + line)


def test_a_package_runner_may_run_anything_and_the_notes_say_so() -> None:
    lines = [f'1 execve("/usr/bin/p{n}", ["p"], 0x7) = 0' for n in range(20)]
    effects = proposed(*lines)
    assert effects["run"] is True
    assert any("20 programs" in note for note in notes_on(seen(*lines), effects))


def test_the_notes_say_what_was_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strace, "MAX_SEEN", 1)
    lines = (
        "1 io_uring_setup(8, {}) = 3",
        '1 openat(AT_FDCWD</srv>, "/tmp/a", O_WRONLY|O_CREAT, 0666) = 3</tmp/a>',
        "1 connect(3<TCP:[7]>, {sa_family=AF_INET, sin_port=htons(443)}, 16) = 0",
        '1 openat(AT_FDCWD</srv>, "/etc/x", O_RDONLY) = 3</etc/x>',
        '1 openat(AT_FDCWD</srv>, "/etc/y", O_RDONLY) = 3</etc/y>',
    )
    notes = " ".join(notes_on(seen(*lines), proposed(*lines)))
    for word in ("did not do", "io_uring", "/tmp", "hosts are not", "not looked at"):
        assert word in notes


def test_a_folder_that_was_only_listed_is_proposed_unless_it_may_be_listed_anyway() -> None:
    parser = StraceParser("/app")
    parser.feed('1 openat(AT_FDCWD</app>, "/app", O_RDONLY|O_NONBLOCK|O_CLOEXEC|O_DIRECTORY) = 3</app>')
    parser.feed('1 openat(AT_FDCWD</app>, "/data", O_RDONLY|O_NONBLOCK|O_CLOEXEC|O_DIRECTORY) = 3</data>')
    effects = propose_effects(
        parser.seen, always_read=(), always_write=(), always_list=("/app",), exists=lambda _: True
    )
    assert effects["read"] == ["/data"]
