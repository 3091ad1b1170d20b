"""How a serving process treats its memory: large buffers are kept, and garbage is looked for less often.

A result of a few hundred KiB passes through several buffers; by default glibc maps each of them anew, and most of the time of such a call
goes into page faults. Where there is no glibc, nothing happens. Python looks for cycles after every 700 new objects that are still in use,
which dozens of calls in flight always are; what a call leaves behind is freed without that search, so it can be rarer.
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
    """Whether the allocator took the advice."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    advice = ((_MMAP_THRESHOLD, 32 * MIB), (_TRIM_THRESHOLD, 64 * MIB), (_TOP_PAD, 1 * MIB))
    return all(mallopt(parameter, value) == 1 for parameter, value in advice)


def search_garbage_rarely() -> None:
    """What is alive now stays: modules, settings, code. It need not be searched again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_OBJECTS_BETWEEN_SEARCHES, 10, 10)
