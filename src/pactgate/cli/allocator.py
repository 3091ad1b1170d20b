"""Tells glibc to keep large buffers instead of mapping and unmapping each one.

A result of a few hundred KiB passes through several buffers; by default glibc maps each of them anew, and most of the time of such a call
goes into page faults. Where there is no glibc, nothing happens.
"""

from __future__ import annotations

import ctypes
from typing import Final

MIB: Final = 1024 * 1024

_TRIM_THRESHOLD: Final = -1
_TOP_PAD: Final = -2
_MMAP_THRESHOLD: Final = -3


def keep_large_buffers() -> bool:
    """Whether the allocator took the advice."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    advice = ((_MMAP_THRESHOLD, 32 * MIB), (_TRIM_THRESHOLD, 64 * MIB), (_TOP_PAD, 1 * MIB))
    return all(mallopt(parameter, value) == 1 for parameter, value in advice)
