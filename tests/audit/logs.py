"""Small logs for tests, made by the code that makes real ones."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from pactgate.audit.chain_file import ChainFile


def open_file(path: Path, **settings: Any) -> ChainFile:
    """A log as a gateway takes it up: locked, opened, its start recorded."""
    file = ChainFile(path, **{"max_bytes": 2**30, "max_files": 100, "fsync": False, **settings}, wall=lambda: 0.0)
    file.lock()
    file.open()
    file.append([file.opened_facts()])
    return file


def call(number: int) -> bytes:
    return b'{"kind":"call","requestId":"r%d"}' % number


def made(path: Path, calls: int, **settings: Any) -> None:
    """A log with so many calls."""
    file = open_file(path, **settings)
    for number in range(calls):
        file.append([call(number)])
    file.close()


def said(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def fill_the_disk(path: Path) -> None:
    """From now on every write to this open file of ours fails as on a full disk, until it is opened again."""
    full = os.open("/dev/full", os.O_RDWR)
    _put_in_place_of(path, full)


def stall_the_disk(path: Path) -> int:
    """From now on every write to this open file of ours waits, until what comes back, a pipe's end, is read or closed."""
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    try:
        while True:
            os.write(write_end, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(write_end, True)
    _put_in_place_of(path, write_end)
    return read_end


def _put_in_place_of(path: Path, other: int) -> None:
    links = {int(link.name): os.readlink(link) for link in Path("/proc/self/fd").iterdir() if os.path.lexists(link)}
    mine = next(number for number, target in links.items() if target == str(path))
    os.dup2(other, mine)
    os.close(other)
