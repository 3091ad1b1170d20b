"""A folder for what one run needs and nobody afterwards: the captures of the demo, a token for this run, a scripted fleet.

It is locked as long as its process lives, and the kernel ends the lock with the process: what a killed one has left is removed by the next
that makes such a folder. Must not: remove the folder of a process that lives, wherever that counts its processes.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from pactgate.cli.running_gateways import is_private

_PREFIX: Final = "run-"
_HOW: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def temporary_folder() -> Path:
    """Where what is large goes: what `XDG_RUNTIME_DIR` names is kept in memory."""
    return Path(tempfile.gettempdir()) / f"pactgate-{os.getuid()}"


@contextmanager
def run_folder(parent: Path) -> Iterator[Path]:
    """A new folder in this one, which is made for this user alone. Raises OSError."""
    parent.mkdir(mode=0o700, exist_ok=True)
    if not is_private(parent):  # somebody else has taken its name
        with tempfile.TemporaryDirectory(prefix="pactgate-") as name:
            yield Path(name)
        return
    for left in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # above all BlockingIOError: it is in use
            _remove_unused(left)
    path = Path(tempfile.mkdtemp(dir=parent, prefix="."))
    handle = os.open(path, _HOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        path = path.rename(parent / f"{_PREFIX}{path.name[1:]}")
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(handle)


def _remove_unused(path: Path) -> None:
    handle = os.open(path, _HOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path)
    finally:
        os.close(handle)
