"""What a program needs of the file system to start: its file, its interpreter, its loader, and the files beside it.

Looks at files and starts nothing. Knows symbolic links, `#!` lines (`env` included), virtual environments and the loader an ELF file
names. Must not: open up a home directory because a program is in it. Serves S2/MCP-002.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

MAX_LINKS: Final = 40
MAX_INTERPRETERS: Final = 4
HEAD_BYTES: Final = 4096

INTERPRETERS: Final = re.compile(r"(?:python|pypy|node|nodejs|deno|bun|ruby|perl|php|bash|dash|sh|zsh|lua)[0-9.]*")
"""Interpreters: the first argument that is a file is the program they run."""

SHARED_FOLDERS: Final = frozenset(
    {"/", "/home", "/Users", "/root", "/tmp", "/var/tmp", "/etc", "/var", "/srv", "/mnt", "/media"}
)
"""Folders with too much in them to be opened up for one program: only the program's own file is."""


class Executable(Struct, frozen=True):
    """How to start a program, and which files it must read. The kernel itself starts or loads the files in `executes`."""

    argv: tuple[str, ...]
    reads: tuple[str, ...]
    executes: tuple[str, ...]


def resolve_executable(argv: Sequence[str], cwd: str | None, env: Mapping[str, str]) -> Executable | None:
    """None if there is no such program. `#!/usr/bin/env name` is resolved here, so that starting it is one execve."""
    file = find_executable(argv[0], cwd, env)
    if file is None:
        return None
    home = env.get("HOME", "")
    real_argv: tuple[str, ...] = (file, *argv[1:])
    reads: dict[str, None] = {}
    executes: dict[str, None] = {}
    for _ in range(MAX_INTERPRETERS):
        reads.update(dict.fromkeys(_surroundings(file, home)))
        executes[os.path.realpath(file)] = None
        head = _head(file)
        interpreter, through_env = _interpreter(head, cwd, env)
        if interpreter is None:
            executes.update(dict.fromkeys(filter(None, [_loader(head)])))
            break
        if through_env:
            real_argv = (interpreter, file, *real_argv[1:])
        file = interpreter
    reads.update(dict.fromkeys(_script(argv, cwd, home)))
    return Executable(real_argv, tuple(reads), tuple(executes))


def find_executable(command: str, cwd: str | None, env: Mapping[str, str]) -> str | None:
    """Where the system finds a program: on its PATH, or from its working directory. None if it can't be run."""
    base = os.path.abspath(cwd or ".")
    if os.sep in command:
        file = os.path.join(base, command)
        return file if os.path.isfile(file) and os.access(file, os.X_OK) else None
    found = shutil.which(command, path=env.get("PATH", os.defpath))
    return os.path.join(base, found) if found else None


def _surroundings(file: str, home: str) -> list[str]:
    """The folder of the file and of everything it links to; the whole prefix if the folder is a `bin`."""
    places: list[str] = []
    for link in _links(file):
        folder = os.path.dirname(link)
        prefix = os.path.dirname(folder) if os.path.basename(folder) in ("bin", "sbin", "Scripts") else folder
        places += [prefix if _may_open_up(prefix, home) else folder if _may_open_up(folder, home) else link]
        places += [base for base in _base_prefix(prefix) if _may_open_up(base, home)]
    return places


def _links(file: str) -> list[str]:
    """The file and the chain of its symbolic links."""
    chain = [os.path.abspath(file)]
    while os.path.islink(chain[-1]) and len(chain) < MAX_LINKS:
        chain.append(os.path.normpath(os.path.join(os.path.dirname(chain[-1]), os.readlink(chain[-1]))))
    real = os.path.realpath(file)
    return chain if real in chain else [*chain, real]


def _base_prefix(prefix: str) -> list[str]:
    """The installation behind a virtual environment."""
    try:
        with open(os.path.join(prefix, "pyvenv.cfg"), encoding="utf-8", errors="replace") as file:
            lines = file.read(HEAD_BYTES).splitlines()
    except OSError:
        return []
    pairs = (line.partition("=") for line in lines)
    homes = [value.strip() for key, _, value in pairs if key.strip() == "home"]
    return [os.path.dirname(os.path.realpath(place)) for place in homes if os.path.isabs(place)]


def _may_open_up(folder: str, home: str) -> bool:
    real = os.path.realpath(folder)
    own = os.path.realpath(home) if home else "/"
    too_much = real in SHARED_FOLDERS or real in (own, os.path.join(own, ".local"), os.path.join(own, ".config"))
    return not too_much and not own.startswith(real.rstrip("/") + "/")


def _script(argv: Sequence[str], cwd: str | None, home: str) -> list[str]:
    """The script an interpreter is given, with its folder."""
    if not INTERPRETERS.fullmatch(os.path.basename(argv[0])):
        return []
    for word in argv[1:]:
        file = os.path.join(os.path.abspath(cwd or "."), word)
        if not word.startswith("-") and os.path.isfile(file):
            folder = os.path.dirname(os.path.realpath(file))
            return [folder if _may_open_up(folder, home) else file]
    return []


def _head(file: str) -> bytes:
    try:
        with open(file, "rb") as opened:
            return opened.read(HEAD_BYTES)
    except OSError:
        return b""


def _interpreter(head: bytes, cwd: str | None, env: Mapping[str, str]) -> tuple[str | None, bool]:
    """The interpreter of a `#!` line, and whether `env` finds it. `env` with options is not resolved."""
    if not head.startswith(b"#!"):
        return None, False
    words = os.fsdecode(head[2:].split(b"\n", 1)[0]).split()
    if len(words) == 2 and os.path.basename(words[0]) == "env" and not words[1].startswith("-") and "=" not in words[1]:
        return find_executable(words[1], cwd, env), True
    return (find_executable(words[0], cwd, env) if words else None), False


def _loader(head: bytes) -> str | None:
    """The loader of a 64-bit little-endian ELF file; None for static programs and other formats."""
    if head[:6] != b"\x7fELF\x02\x01" or len(head) < 64:
        return None
    (table,) = struct.unpack_from("<Q", head, 32)
    size, count = struct.unpack_from("<HH", head, 54)
    for number in range(count):
        start = table + number * size
        if start + 56 > len(head):
            return None
        kind, offset, length = (
            struct.unpack_from(form, head, start + at)[0] for form, at in (("<I", 0), ("<Q", 8), ("<Q", 32))
        )
        if kind == 3:
            return os.fsdecode(head[offset : offset + length].rstrip(b"\0")) or None
    return None
