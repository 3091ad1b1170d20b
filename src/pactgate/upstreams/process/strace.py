"""Reads strace's output, and proposes the declaration of effects that would have allowed what the program did. Pure.

Sees the system calls of a program and of everything it starts: files opened, created, moved and deleted, TCP ports, other sockets, programs
started. Does not see: what the session did not exercise, hosts (ports only), operations of io_uring, and metadata that was only read, which
no declaration restricts. Must not: propose less than the program did; a person narrows it.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

from pactgate.config.sections.effects import MAX_PATHS

TRACED: Final = "trace=%file,%network,execve,execveat,io_uring_setup"
STRACE: Final = ("-f", "-qq", "-yy", "-s", "4096", "-e", "signal=none", "-e", TRACED)
MAX_SEEN: Final = 20_000
MAX_LINE_CHARS: Final = 20_000
MAX_PROGRAMS: Final = 8
"""More programs than these come from a package runner or a shell; a list of them would soon be out of date."""
SHARED: Final = ("/tmp", "/var/tmp", "/dev/shm", "/home", "/root", "/etc")
_TOGETHER: Final = 3
"""So many files of one folder are replaced by the folder."""

_CALL: Final = re.compile(r"(\d+) +(\w+)\((.*)", re.DOTALL)
_RESUMED: Final = re.compile(r"(\d+) +<\.\.\. \w+ resumed>(.*)", re.DOTALL)
_UNFINISHED: Final = " <unfinished ...>"
_RESULT: Final = re.compile(r"\) += (-?\d+|\?)(?:<(.*)>)?(?: (E[A-Z]+)\b.*)?$")
_PATH: Final = re.compile(r'(?:(?:AT_FDCWD|\d+)<([^>]*)>, )?"((?:[^"\\]|\\.)*)"')
_PORT: Final = re.compile(r"sin6?_port=htons\((\d+)\)")
_DEVICE: Final = re.compile(r"<(?:char|block) [0-9:]+>$")
_ESCAPE: Final = re.compile(r"\\([0-7]{1,3}|x[0-9a-f]{2}|.)")
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", "v": "\v", "f": "\f"}

_OPENS: Final = frozenset({"open", "openat", "openat2", "creat"})
_WRITING: Final = ("O_WRONLY", "O_RDWR", "O_TRUNC", "O_APPEND")
_IN_FOLDER: Final = frozenset(
    {"mkdir", "mkdirat", "unlink", "unlinkat", "rmdir", "rename", "renameat", "renameat2", "link", "linkat"}
    | {"symlink", "symlinkat", "mknod", "mknodat"}
)
_OF_FILE: Final = frozenset(
    {"truncate", "chmod", "fchmodat", "fchmodat2", "chown", "lchown", "fchownat", "utime", "utimes", "utimensat"}
    | {"setxattr", "lsetxattr", "removexattr", "lremovexattr"}
)
_SENDS: Final = frozenset({"connect", "bind", "sendto", "sendmsg", "sendmmsg"})
_TRIED: Final = frozenset({"EINPROGRESS", "ECONNREFUSED", "ETIMEDOUT", "ENETUNREACH", "EHOSTUNREACH", "EADDRINUSE"})
"""Errors of attempts that the declaration has to allow as well."""


class ObservedEffects(Struct):
    """Everything the program did. `is_partial`: there was more than `MAX_SEEN` paths."""

    read: set[str] = field(default_factory=set)
    listed: set[str] = field(default_factory=set)
    """Folders that were listed."""
    write: set[str] = field(default_factory=set)
    made: set[str] = field(default_factory=set)
    """Paths created, moved or deleted, which needs write access to their folder."""
    connect: set[int] = field(default_factory=set)
    bind: set[int] = field(default_factory=set)
    run: dict[str, None] = field(default_factory=dict)
    sockets: set[str] = field(default_factory=set)
    uses_io_uring: bool = False
    is_partial: bool = False


class StraceParser:
    """Takes the lines of strace's output one by one. `cwd` is the folder the program started in."""

    def __init__(self, cwd: str) -> None:
        self.seen = ObservedEffects()
        self._cwd = cwd
        self._begun: dict[str, str] = {}
        self._has_begun = False

    def feed(self, line: str) -> None:
        if self.seen.is_partial:
            return
        whole = self._joined(line[:MAX_LINE_CHARS].rstrip("\n"))
        found = _CALL.match(whole) if whole else None
        result = _RESULT.search(found[3]) if found else None
        if found and result:
            self._take(found[2], found[3][: result.start()], result)
        self.seen.is_partial = (
            len(self.seen.read) + len(self.seen.listed) + len(self.seen.write) + len(self.seen.made) > MAX_SEEN
        )

    def _joined(self, line: str) -> str:
        """Joins the two halves of a call that another thread's call interrupted."""
        resumed = _RESUMED.match(line)
        if resumed:
            return self._begun.pop(resumed[1], "") + resumed[2]
        if line.endswith(_UNFINISHED):
            self._begun[line.split(" ", 1)[0]] = line.removesuffix(_UNFINISHED)
            return ""
        return line

    def _take(self, name: str, arguments: str, result: re.Match[str]) -> None:
        is_done = not result[1].startswith("-")
        if name in _SENDS:
            self._network(name, arguments, is_done or result[3] in _TRIED)
        elif not is_done:
            return
        elif name in _OPENS:
            told = _unescaped(_DEVICE.sub("", result[2])) if result[2] else ""
            self._opened(name, arguments, told or (self._paths(arguments) or [""])[-1])
        elif name in _IN_FOLDER:
            named = self._paths(arguments)
            self.seen.made.update(named[-1:] if "symlink" in name else named)
        elif name in _OF_FILE:
            self.seen.write.update(self._paths(arguments)[:1])
        elif name.startswith("execve"):
            self._started(self._paths(arguments)[:1])
        elif name == "io_uring_setup":
            self.seen.uses_io_uring = True

    def _opened(self, name: str, arguments: str, path: str) -> None:
        if not os.path.isabs(path):
            return  # a pipe, a socket, something in memory
        path = path.removesuffix(" (deleted)")
        if name == "creat" or "O_CREAT" in arguments or "O_TMPFILE" in arguments:
            self.seen.made.add(path)
        elif any(flag in arguments for flag in _WRITING):
            self.seen.write.add(path)
        elif "O_DIRECTORY" in arguments:
            self.seen.listed.add(path)
        else:
            self.seen.read.add(path)

    def _network(self, name: str, arguments: str, is_tried: bool) -> None:
        port = _PORT.search(arguments)
        of_tcp = "<TCP" in arguments[:40]
        if not is_tried:
            return
        if of_tcp and port and name in ("connect", "bind"):
            (self.seen.connect if name == "connect" else self.seen.bind).add(int(port[1]))
        elif "<UDP" in arguments[:40] and (name != "bind" or (port and port[1] != "0")):
            self.seen.sockets.add(f"UDP port {port[1]}" if port else "UDP")
        elif "sa_family=AF_UNIX" in arguments:
            named = re.search(r'sun_path=@?"((?:[^"\\]|\\.)*)"', arguments)
            self.seen.sockets.add(f"Unix socket {_unescaped(named[1])}" if named else "Unix socket")

    def _started(self, paths: Sequence[str]) -> None:
        if self._has_begun:
            self.seen.run.update(dict.fromkeys(paths))
        self._has_begun = True

    def _paths(self, arguments: str) -> list[str]:
        return [
            os.path.normpath(os.path.join(_unescaped(folder) if folder else self._cwd, _unescaped(text)))
            for folder, text in _PATH.findall(arguments)
        ]


def _unescaped(text: str) -> str:
    """A path without strace's escapes, which stand for bytes beyond ASCII."""

    def one(found: re.Match[str]) -> str:
        code = found[1]
        if code[0].isdigit():
            return chr(int(code, 8))
        return chr(int(code[1:], 16)) if code[0] == "x" and len(code) == 3 else _ESCAPED.get(code, code)

    return _ESCAPE.sub(one, text).encode("latin-1", "replace").decode("utf-8", "surrogateescape")


def propose_effects(
    seen: ObservedEffects,
    *,
    always_read: Iterable[str],
    always_write: Iterable[str],
    exists: Callable[[str], bool],
    always_list: Iterable[str] = (),
) -> dict[str, Any]:
    """The `effects` that would have allowed it, without what this program may always do."""
    made = {os.path.dirname(path) for path in seen.made if not _is_under(path, always_write)}
    changed = {path for path in seen.write if not _is_under(path, always_write)}
    writes = _fewest({_there(path, exists) for path in made | changed})
    known = (*always_read, *always_write, *writes, "/proc/self")
    looked_at = seen.read | {path for path in seen.listed if not _is_under(path, always_list)}
    reads = _fewest({_there(path, exists) for path in looked_at if not _is_under(path, known) and not _is_own(path)})
    effects: dict[str, Any] = {"read": reads, "write": writes, "connect": sorted(seen.connect)}
    if seen.bind:
        effects["bind"] = sorted(seen.bind)
    if seen.run:
        effects["run"] = list(seen.run) if len(seen.run) <= MAX_PROGRAMS else True
    if seen.sockets:
        effects["sockets"] = True
    return effects


def _is_own(path: str) -> bool:
    """Whether a path is in /proc/<pid>: the process reads about itself."""
    return re.match(r"/proc/\d+(/|$)", path) is not None


def _there(path: str, exists: Callable[[str], bool]) -> str:
    """The path, or the nearest folder above it that exists when the program starts."""
    while not exists(path) and path not in ("/", ""):
        path = os.path.dirname(path)
    return path


def _is_under(path: str, places: Iterable[str]) -> bool:
    return any(path == place or path.startswith(place.rstrip("/") + "/") for place in places)


def _fewest(paths: set[str]) -> list[str]:
    """A short list that covers all paths: a folder instead of many of its files, and no path inside another."""
    kept, together = paths, _TOGETHER
    while True:
        folders: dict[str, int] = {}
        for path in kept:
            folders[os.path.dirname(path)] = folders.get(os.path.dirname(path), 0) + 1
        crowded = {folder for folder, count in folders.items() if count >= together and folder != "/"}
        kept = _outermost({os.path.dirname(path) if os.path.dirname(path) in crowded else path for path in kept})
        if len(kept) <= MAX_PATHS:
            return sorted(kept)
        if not crowded and together <= 1:
            return sorted(kept)[:MAX_PATHS]
        together = max(1, together - 1)


def _outermost(paths: set[str]) -> set[str]:
    ordered: list[str] = []
    for path in sorted(paths):
        if not _is_under(path, ordered[-1:]) and not _is_under(path, ordered):
            ordered.append(path)
    return set(ordered)


def notes_on(seen: ObservedEffects, effects: Mapping[str, Any]) -> list[str]:
    """Notes for the reader of the proposal."""
    notes = [
        "What the session did not do is not in it. Read it, narrow what is too wide, and try the server with it.",
        *(f"It used a {one}, which `sockets` allows together with all others." for one in sorted(seen.sockets)),
    ]
    if effects.get("connect"):
        notes.append("Ports are restricted, hosts are not.")
    if effects.get("run") is True:
        notes.append(f"It started {len(seen.run)} programs, so `run` is true: any program it can read.")
    notes += [
        f"It makes files in {place}, which many share; a folder of its own (TMPDIR in `env`) is better."
        for place in effects["write"]
        if place in SHARED
    ]
    if seen.uses_io_uring:
        notes.append("It uses io_uring, whose operations were not seen and are always denied.")
    if seen.is_partial:
        notes.append(f"It touched more than {MAX_SEEN} paths; the rest was not looked at.")
    return notes
