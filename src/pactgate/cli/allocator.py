"""Memory settings of a serving process: malloc keeps large buffers, and the cycle collector runs less often.

A result of a few hundred KiB passes through several buffers. By default glibc maps each of them anew, and page faults take most of the
time of such a call. Buffers of more than 4 MiB, such as those of a large request that is refused, are given back to the system at once.
Without glibc nothing changes. The cycle collector runs after every 700 new objects, which dozens of concurrent calls
always have; reference counting frees what a call leaves behind, so the collector can run rarely.
"""

from __future__ import annotations

import ctypes
import gc
from typing import Final

MIB: Final = 1024 * 1024

_OBJECTS_BETWEEN_SEARCHES: Final = 20_000

_TRIM_THRESHOLD: Final = -1
_TOP_PAD: Final = -2
_MMAP_THRESHOLD: Final = -3


def keep_large_buffers() -> bool:
    """Return whether the allocator accepted the settings."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    advice = ((_MMAP_THRESHOLD, 4 * MIB), (_TRIM_THRESHOLD, 32 * MIB), (_TOP_PAD, 1 * MIB))
    return all(mallopt(parameter, value) == 1 for parameter, value in advice)


def search_garbage_rarely() -> None:
    """Exclude modules, settings and code, which live as long as the process, from all later collections."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_OBJECTS_BETWEEN_SEARCHES, 10, 10)
