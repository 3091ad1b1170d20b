"""Files that a configuration consists of or names: reading them within bounds, replacing and locking them, and who else may write or
read them.

Must not: wait for a pipe or device, or repeat what a file of a secret says.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final, NamedTuple

from pactgate.config.env_file import parse_env_file
from pactgate.config.problems import UnreadableError, ValueFault, show

MAX_SECRET_BYTES: Final = 64 * 1024
LOCK_S: Final = 5.0
_LOCK_LOOK_S: Final = 0.01

FileState = tuple[int, int, int]
"""Tells one state of a file from another: modification time, size and inode."""


def file_state(path: str | Path) -> FileState | None:
    """None while there is no such file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def read_regular_file(path: str | Path, max_bytes: int) -> bytes:
    """The first bytes of a regular file. Never waits for a pipe or device. Raises UnreadableError."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise UnreadableError("This is not a regular file.", "Name a file, not a folder, pipe or device.")
            with open(handle, "rb", closefd=False) as file:
                return file.read(max_bytes)
        finally:
            os.close(handle)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "its name has a NUL"
        raise UnreadableError(f"The file can't be read: {reason}.", "Check the path and its permissions.") from None


@contextmanager
def replacing(
    path: str | Path, place: Callable[[str, str], None] = os.replace, *, suffix: str = ".new"
) -> Iterator[IO[bytes]]:
    """Write a file of this user alone beside another, and put it in its place when it is complete. Raises OSError."""
    beside = os.path.join(os.path.dirname(path), f".{secrets.token_hex(8)}{suffix}")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(handle, "wb") as file:
            yield file
        place(beside, os.fspath(path))
    finally:
        with suppress(FileNotFoundError):
            os.unlink(beside)


@contextmanager
def locked(path: str | Path) -> Iterator[int]:
    """Hold a lock file against every other process, for a change of the file that it stands for. Raises OSError, also where another
    process holds it for too long."""
    import fcntl  # not on every system that reads a configuration

    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        until = time.monotonic() + LOCK_S
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise TimeoutError(errno.ETIMEDOUT, "another process is changing it; try again") from None
                time.sleep(_LOCK_LOOK_S)
        yield handle
    finally:
        os.close(handle)


def is_private_folder(folder: Path) -> bool:
    """Whether a folder is this user's alone, so that nobody else can have put anything into it."""
    with suppress(OSError):
        found = folder.lstat()
        return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077
    return False


class SecretFiles:
    """Reads secrets from files, such as `/run/secrets/x`, and notes which. Relative paths are relative to the configuration."""

    def __init__(self, folder: str) -> None:
        self.names: dict[str, None] = {}
        self.folder = folder

    def variables(self, name: str) -> dict[str, str] | ValueFault:
        """The variables of a file of `NAME=VALUE` lines."""
        text = self.read(name)
        if isinstance(text, ValueFault):
            return text
        variables = parse_env_file(text)
        if isinstance(variables, ValueFault):
            return ValueFault(f"The file {show(name)}: {variables.message}", variables.hint)
        return variables

    def read(self, name: str) -> str | ValueFault:
        """The text of the file without the line break at its end. Never repeats any of it in a fault."""
        path = os.path.join(self.folder, name)
        self.names[path] = None
        try:
            data = read_regular_file(path, MAX_SECRET_BYTES + 1)
            text = data.decode()
        except UnreadableError as problem:
            return ValueFault(f"The secret file {show(path)}: {problem.message}", problem.hint)
        except UnicodeDecodeError:
            return ValueFault(f"The secret file {show(path)} is not UTF-8 text.", "Is it the right file?")
        if len(data) > MAX_SECRET_BYTES:
            message = f"The secret file {show(path)} is larger than {MAX_SECRET_BYTES} bytes."
            return ValueFault(message, "Is it the right file?")
        text = text.removesuffix("\n").removesuffix("\r")
        return text or ValueFault(f"The secret file {show(path)} is empty.", "Write the secret into it.")


class OtherWriters(NamedTuple):
    """Who may write a file beside this user and root, and what to do about it."""

    who: str
    hint: str
    is_everybody: bool = False


def other_writers(path: str | Path) -> OtherWriters | None:
    """The widest group of others that may write a file; None when there are none, or there is no such file."""
    found = _stat(path)
    if found is None:
        return None
    if found.st_mode & stat.S_IWOTH:
        return OtherWriters("Every user", _chmod("o-w", path), is_everybody=True)
    if found.st_mode & stat.S_IWGRP:
        return OtherWriters("Its group", _chmod("g-w", path))
    if found.st_uid not in (0, os.geteuid()):
        return OtherWriters("Its owner, another user,", f"Run: chown {os.geteuid()} {os.path.basename(path)}")
    return None


def hint_for_readers(path: str | Path) -> str | None:
    """What to do about credentials in a file that every user may read; None when nobody else may."""
    found = _stat(path)
    if found is None or not found.st_mode & stat.S_IROTH:
        return None
    return f"{_chmod('o-r', path)}. Or write it as ${{VARIABLE}} or ${{file:/run/secrets/x}}."


def _stat(path: str | Path) -> os.stat_result | None:
    try:
        return os.stat(path) if os.name == "posix" else None
    except (OSError, ValueError):
        return None


def _chmod(change: str, path: str | Path) -> str:
    return f"Run: chmod {change} {os.path.basename(path)}"
