"""Where gateways of this user run: each writes a small file while it serves HTTP, so that commands find it.

A file has the addresses, the process id and the configuration of one gateway, in a folder that only this user can read. The file of a
process that is gone is removed by whoever finds it. Must not: hold a secret, or guess an address.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from pactgate.config.file_access import is_private_folder, replacing

_MAX_BYTES: Final = 64 * 1024
_MAX_FILES: Final = 1000


class RunningGateway(Struct, frozen=True):
    """One gateway. `config` is its configuration file, None for the demo and for a file of tools.

    `certificate` is the file of its certificate, which its commands trust as it is; `socket` its Unix socket.
    """

    url: str
    pid: int
    config: str | None = None
    certificate: str | None = None
    socket: str | None = None


@contextmanager
def announced(gateway: RunningGateway) -> Iterator[None]:
    """While inside, commands of this user find the gateway. It is served all the same where the file can't be written."""
    path = None
    with suppress(OSError):
        path = _write(gateway)
    try:
        yield
    finally:
        if path is not None:
            path.unlink(missing_ok=True)


def running_gateways() -> list[RunningGateway]:
    """The gateways of this user that run now."""
    folder = runtime_folder()
    if not is_private_folder(folder):
        return []
    found = []
    for path in sorted(folder.glob("*.json"))[:_MAX_FILES]:
        with suppress(OSError, msgspec.DecodeError):
            gateway = msgspec.json.decode(path.read_bytes()[:_MAX_BYTES], type=RunningGateway)
            if _is_alive(gateway.pid):
                found.append(gateway)
            else:
                path.unlink(missing_ok=True)
    return found


def _write(gateway: RunningGateway) -> Path | None:
    folder = runtime_folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not is_private_folder(folder):
        return None
    path = folder / f"{gateway.pid}.json"
    with replacing(path) as file:
        file.write(msgspec.json.encode(gateway))
    return path


def runtime_folder() -> Path:
    """Where what is small and of this run goes."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return Path(runtime) / "pactgate" if runtime and os.path.isabs(runtime) else temporary_folder()


def temporary_folder() -> Path:
    """Where what is large goes: what `XDG_RUNTIME_DIR` names is kept in memory."""
    return Path(_temporary()) / f"pactgate-{os.getuid()}"


def _temporary() -> str:
    """What `tempfile.gettempdir` finds, without the modules that it needs to try others: serving loads nothing else of them."""
    usual = next(filter(None, map(os.environ.get, ("TMPDIR", "TEMP", "TMP"))), "/tmp")
    if os.path.isabs(usual) and os.access(usual, os.W_OK | os.X_OK):
        return usual
    import tempfile

    return tempfile.gettempdir()


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
