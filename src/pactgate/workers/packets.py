"""Messages between our own processes: whole, in order, with descriptors, over a Unix socket that keeps packets apart.

A packet that is too large for the socket travels in a memory file whose descriptor goes along. Never waits. Must not: know what a
packet says, or lose a descriptor: whoever receives one owns it.
"""

from __future__ import annotations

import array
import os
import socket
from collections.abc import Sequence
from typing import Final, NamedTuple

INLINE_BYTES: Final = 64 * 1024
MAX_BYTES: Final = 256 * 1024 * 1024
MAX_DESCRIPTORS: Final = 16
_INLINE: Final = b"i"
_IN_FILE: Final = b"f"
_ROOM: Final = socket.CMSG_SPACE((MAX_DESCRIPTORS + 1) * array.array("i").itemsize)


class Packet(NamedTuple):
    text: bytes
    descriptors: tuple[int, ...]

    def close(self) -> None:
        """Let go of descriptors nobody wants."""
        for descriptor in self.descriptors:
            os.close(descriptor)


class EndedError(Exception):
    """The other end is gone."""


def pair() -> tuple[socket.socket, socket.socket]:
    """Two ends of one conversation; without a name in any file system."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send(end: socket.socket, text: bytes, descriptors: Sequence[int] = ()) -> bool:
    """Whether it went out; False where the socket, or the system, is full at the moment. Raises EndedError."""
    if len(text) > MAX_BYTES:
        raise ValueError(f"a packet has at most {MAX_BYTES} bytes")
    beside = _file_of(text) if len(text) > INLINE_BYTES else None
    sent = [*descriptors, beside] if beside is not None else list(descriptors)
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", sent))] if sent else []
    parts = (_INLINE, text) if beside is None else (_IN_FILE,)
    try:
        end.sendmsg(parts, rights, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
    except (BrokenPipeError, ConnectionResetError):
        raise EndedError from None
    except OSError:
        return False  # EAGAIN, ENOBUFS, ETOOMANYREFS: full, in one way or another
    finally:
        if beside is not None:
            os.close(beside)
    return True


def receive(end: socket.socket) -> Packet | None:
    """The next packet, or None where there is none yet. Raises EndedError."""
    try:
        text, rights, _, _ = end.recvmsg(INLINE_BYTES + 1, _ROOM, socket.MSG_DONTWAIT | socket.MSG_CMSG_CLOEXEC)
    except (BlockingIOError, InterruptedError):
        return None
    except OSError:
        raise EndedError from None
    if not text:
        raise EndedError
    descriptors = _descriptors(rights)
    if text[:1] == _INLINE:
        return Packet(text[1:], descriptors)
    return Packet(_text_of(descriptors[-1]), descriptors[:-1])


def _descriptors(rights: Sequence[tuple[int, int, bytes]]) -> tuple[int, ...]:
    found = array.array("i")
    for level, kind, data in rights:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            found.frombytes(data[: len(data) - len(data) % found.itemsize])
    return tuple(found)


def _file_of(text: bytes) -> int:
    file = os.memfd_create("pactgate packet", os.MFD_CLOEXEC)
    rest = memoryview(text)
    while rest:
        rest = rest[os.write(file, rest) :]
    return file


def _text_of(file: int) -> bytes:
    with open(file, "rb", buffering=0) as packet:
        packet.seek(0)
        return packet.readall()
