"""What a program needs of the file system to start: its file, its interpreter, its loader, and the code beside it.

Looks at files and starts nothing. Knows symbolic links, `#!` lines (`env` included), virtual environments and the loader an ELF file
names. Of the folder of a script only the code is opened, because a project folder has much else in it. Must not: open up a home directory
because a program is in it, or a file of the gateway's own (`private`) or a `.env`, wherever they are. Serves S2/MCP-002.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
from collections.abc import Mapping, Sequence
from itertools import islice
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


CODE: Final = (
    *(".py", ".pyc", ".pyi", ".so", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx", ".node", ".wasm"),
    *(".rb", ".pl", ".pm", ".php", ".lua", ".sh", ".bash"),
)
"""How the names of files end that a script may load from its folder."""
CODE_FOLDERS: Final = ("node_modules", "__pycache__")
MAX_BESIDE: Final = 512
"""So many files and folders beside a script are opened; the rest has to be declared."""
MAX_SCANNED: Final = 4096
PACKAGE_LEVELS: Final = 4
"""A JavaScript file may be so many folders below its `package.json`."""


class Executable(Struct, frozen=True):
    """How to start a program, and which files it must read. The kernel itself starts or loads the files in `executes`.

    The folders in `lists` may be listed, with all folders in them: interpreters look for modules that way.
    """

    argv: tuple[str, ...]
    reads: tuple[str, ...]
    executes: tuple[str, ...]
    lists: tuple[str, ...] = ()


def resolve_executable(
    argv: Sequence[str], cwd: str | None, env: Mapping[str, str], private: Sequence[str] = ()
) -> Executable | None:
    """None if there is no such program. `#!/usr/bin/env name` is resolved here, so that starting it is one execve.

    `private` are files and folders that are never among `reads`, nor inside a folder that is.
    """
    file = find_executable(argv[0], cwd, env)
    if file is None:
        return None
    home = env.get("HOME", "")
    real_argv: tuple[str, ...] = (file, *argv[1:])
    closed = _Closed(private)
    reads: dict[str, None] = {}
    executes: dict[str, None] = {}
    lists: list[str] = []
    for _ in range(MAX_INTERPRETERS):
        head = _head(file)
        is_script = head.startswith(b"#!")
        for place in _surroundings(file, home, is_script=is_script):
            reads.update(dict.fromkeys(closed.opened(place)))
        if is_script:
            lists += _beside(file, home, closed, reads)
        executes[os.path.realpath(file)] = None
        interpreter, through_env = _interpreter(head, cwd, env)
        if interpreter is None:
            executes.update(dict.fromkeys(filter(None, [_loader(head)])))
            break
        if through_env:
            real_argv = (interpreter, file, *real_argv[1:])
        file = interpreter
    if (script := _script(argv, cwd)) is not None:
        reads[script] = None
        lists += _beside(script, home, closed, reads)
    return Executable(argv=real_argv, reads=tuple(reads), executes=tuple(executes), lists=tuple(dict.fromkeys(lists)))


def find_executable(command: str, cwd: str | None, env: Mapping[str, str]) -> str | None:
    """Where the system finds a program: on its PATH, or from its working directory. None if it can't be run."""
    base = os.path.abspath(cwd or ".")
    if os.sep in command:
        file = os.path.join(base, command)
        return file if os.path.isfile(file) and os.access(file, os.X_OK) else None
    found = shutil.which(command, path=env.get("PATH", os.defpath))
    return os.path.join(base, found) if found else None


def _surroundings(file: str, home: str, *, is_script: bool) -> list[str]:
    """The folder of the file and of everything it links to; the whole prefix if the folder is a `bin`.

    Of a script elsewhere only the file: `_beside` finds the code in its folder.
    """
    places: list[str] = []
    for link in _links(file):
        folder = os.path.dirname(link)
        is_installed = os.path.basename(folder) in ("bin", "sbin", "Scripts")
        if is_script and not is_installed:
            places.append(link)
            continue
        prefix = os.path.dirname(folder) if is_installed else folder
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


def _script(argv: Sequence[str], cwd: str | None) -> str | None:
    """The script an interpreter is given."""
    if not INTERPRETERS.fullmatch(os.path.basename(argv[0])):
        return None
    files = (os.path.join(os.path.abspath(cwd or "."), word) for word in argv[1:] if not word.startswith("-"))
    return next(filter(os.path.isfile, files), None)


def _beside(script: str, home: str, closed: _Closed, reads: dict[str, None]) -> list[str]:
    """Add the code in the folder of a script to `reads`. Returns the folders the script may list."""
    folder = os.path.dirname(os.path.realpath(script))
    if not _may_open_up(folder, home):
        return []
    found = [entry.path for entry in _entries(folder) if _is_code(entry)]
    found += _package_above(folder, home)
    for place in sorted(found)[:MAX_BESIDE]:
        reads.update(dict.fromkeys(closed.opened(place)))
    return [folder]


def _package_above(folder: str, home: str) -> list[str]:
    """The `package.json` of a JavaScript program, and the modules beside it."""
    for _ in range(PACKAGE_LEVELS):
        if not _may_open_up(folder, home):
            return []
        description = os.path.join(folder, "package.json")
        if os.path.isfile(description):
            return [description, *filter(os.path.isdir, [os.path.join(folder, "node_modules")])]
        folder = os.path.dirname(folder)
    return []


def _is_code(entry: os.DirEntry[str]) -> bool:
    """Whether it is a file of code, or a folder with some in it. Hidden folders have none."""
    if not entry.is_dir():
        return entry.name.endswith(CODE)
    if entry.name in CODE_FOLDERS or entry.name.endswith((".dist-info", ".egg-info")):
        return True
    return not entry.name.startswith(".") and any(one.name.endswith(CODE) for one in _entries(entry.path))


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """At most `MAX_SCANNED`; none if the folder can't be listed."""
    try:
        with os.scandir(folder) as found:
            return list(islice(found, MAX_SCANNED))
    except OSError:
        return []


class _Closed:
    """The files that stay closed: the private ones, with copies and rotated files beside them, and every `.env`."""

    def __init__(self, private: Sequence[str]) -> None:
        self._paths = tuple(os.path.realpath(path) for path in private)
        names = {path: os.path.splitext(os.path.basename(path)) for path in self._paths}
        self._kin = [
            (
                os.path.dirname(path),
                re.compile(rf"{re.escape(stem + suffix)}.*|{re.escape(stem)}\.[0-9]{{6,}}{re.escape(suffix)}"),
            )
            for path, (stem, suffix) in names.items()
        ]

    def opened(self, place: str) -> list[str]:
        """The place, or where something closed is in it, the entries that are open."""
        real = os.path.realpath(place)
        if self._is_closed(real):
            return []
        if not os.path.isdir(real) or not self._has_closed(real):
            return [place]
        return [path for entry in _entries(place) for path in self.opened(entry.path)]

    def _is_closed(self, real: str) -> bool:
        folder, name = os.path.split(real)
        if name == ".env" or name.startswith(".env."):
            return True
        if any(real == path or real.startswith(path + os.sep) for path in self._paths):
            return True
        return any(folder == place and kin.fullmatch(name) for place, kin in self._kin)

    def _has_closed(self, folder: str) -> bool:
        inside = any(path.startswith(folder.rstrip(os.sep) + os.sep) for path in self._paths)
        return inside or os.path.exists(os.path.join(folder, ".env"))


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
