"""The Unix socket that local clients use: its file, and which user is at the other end.

The file is made before anybody can connect, with its mode; the gateway that made it removes it. A folder in which others can replace the
file is refused. Must not: follow a symbolic link, or remove a file that is not a dead socket of this user.
"""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import struct
from contextlib import closing, suppress
from typing import Final

from pactgate.config.problems import shown_path
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.core.principal import OF_SOCKET, Principal, PrincipalKind
from pactgate.policy.access import ADMINISTRATOR

OWN_USER: Final = "0600"
_BACKLOG: Final = 1024
_UCRED: Final = struct.Struct("3i")
_XUCRED: Final = struct.Struct("2I")
_XUCRED_BYTES: Final = 76
_SOL_LOCAL: Final = 0
_LOCAL_PEERCRED: Final = 1
_OTHERS_MAY_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


class SocketFile:
    """One socket at a path. Raises INVALID_CONFIG where it can't be made."""

    def __init__(self, path: str, mode: str) -> None:
        self._path = path
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.setblocking(False)
        try:
            _require_safe_folder(path)
            _remove_dead_socket(path)
            self.socket.bind(path)
            os.chmod(path, int(mode, 8))  # nobody can connect yet: that begins with listen()
            found = os.lstat(path)
            self._identity = found.st_dev, found.st_ino
            self.socket.listen(_BACKLOG)
        except OSError as problem:
            self.socket.close()
            raise _unusable(path, f"{(problem.strerror or str(problem)).lower()}") from None
        except GatewayFailure:
            self.socket.close()
            raise

    def remove(self) -> None:
        """Remove the file, if it is still this one."""
        with suppress(OSError):
            found = os.lstat(self._path)
            if (found.st_dev, found.st_ino) == self._identity:
                os.unlink(self._path)


def user_of(transport: asyncio.BaseTransport) -> int | None:
    """The user id of the process at the other end of a Unix socket, as the kernel noted it when it connected; None elsewhere."""
    found = transport.get_extra_info("socket")
    if found is None or found.family != socket.AF_UNIX:
        return None
    with closing(socket.fromfd(found.fileno(), socket.AF_UNIX, socket.SOCK_STREAM)) as connection:
        return peer_user(connection)


def peer_user(connection: socket.socket) -> int:
    """Linux has SO_PEERCRED; macOS and the BSDs have LOCAL_PEERCRED, with the user after a version number."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is not None:
        _, uid, _ = _UCRED.unpack(connection.getsockopt(socket.SOL_SOCKET, option, _UCRED.size))
    else:
        _, uid = _XUCRED.unpack_from(connection.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _XUCRED_BYTES))
    return int(uid)


def local_user(mode: str, uid: int) -> Principal | None:
    """A user of this machine; None who may not call. The one who started the gateway owns its process and its file, and may manage it.

    The mode of the file alone does not keep root out.
    """
    is_own = uid == os.geteuid()
    if not is_own and mode == OWN_USER:
        return None
    roles = ADMINISTRATOR if is_own else frozenset[str]()
    return Principal(f"uid:{uid}", roles=roles, kind=PrincipalKind.SOCKET, issuer=OF_SOCKET, subject=str(uid))


def _require_safe_folder(path: str) -> None:
    folder = os.path.dirname(path)
    found = os.stat(folder)
    if found.st_uid not in (0, os.geteuid()):
        raise _unusable(path, f"its folder {shown_path(folder)} belongs to another user")
    if found.st_mode & _OTHERS_MAY_WRITE and not found.st_mode & stat.S_ISVTX:
        raise _unusable(path, f"others may write its folder {shown_path(folder)}; run: chmod go-w {folder}")


def _remove_dead_socket(path: str) -> None:
    """Remove what a gateway left that was killed."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.geteuid():
        raise _unusable(path, "there is another file at this path; remove it, or choose another path")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.setblocking(False)  # a full queue is a gateway that lives
        try:
            connection.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
        except BlockingIOError:
            pass
    raise _unusable(path, "another gateway listens there; `pactgate status` shows it")


def _unusable(path: str, why: str) -> GatewayFailure:
    return GatewayFailure(Kind.INVALID_CONFIG, f"the socket {shown_path(path)} can't be used: {why}")
