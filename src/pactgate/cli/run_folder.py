"""A folder for what one run needs and nobody afterwards: the captures of the demo, a token for this run, a scripted fleet.

It is locked as long as its process lives, and the kernel ends the lock with the process: what a killed one has left is removed by the next
that makes such a folder. Must not: remove the folder of a process that lives, wherever that counts its processes.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import Final

from pactgate.config.file_access import is_private_folder

_PREFIX: Final = "run-"
_HOW: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def run_folder(parent: Path) -> Iterator[Path]:
    """A new folder in this one, which is made for this user alone. Raises OSError."""
    parent.mkdir(mode=0o700, exist_ok=True)
    if not is_private_folder(parent):  # somebody else has taken its name
        import tempfile

        with tempfile.TemporaryDirectory(prefix="pactgate-") as name:
            yield Path(name)
        return
    for left in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # above all BlockingIOError: it is in use
            _remove_unused(left)
    path = parent / f".{token_hex(8)}"
    path.mkdir(mode=0o700)
    handle = os.open(path, _HOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        path = path.rename(parent / f"{_PREFIX}{path.name[1:]}")
        yield path
    finally:
        with suppress(OSError):
            _remove(path)
        os.close(handle)


def _remove_unused(path: Path) -> None:
    handle = os.open(path, _HOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(path)
    finally:
        os.close(handle)


def _remove(path: Path) -> None:
    from shutil import rmtree  # with all its compressors; serving needs nothing else of it

    rmtree(path)
