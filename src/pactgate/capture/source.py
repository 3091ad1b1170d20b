"""Reads the bytes of a capture in pieces, from a file, standard input or memory, and reports the progress.

Must not: hold more than one piece, or look into it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from pactgate.capture.format import CaptureError, CaptureErrorKind, Progress

STANDARD_INPUT: Final = "-"
_PIECE_BYTES: Final = 1024 * 1024


def chunks_of(path: str | os.PathLike[str], on_progress: Progress | None = None) -> Iterator[bytes]:
    """The pieces of a file, or of standard input for "-". Raises CaptureError when it can't be opened or read."""
    try:
        if path == STANDARD_INPUT:
            yield from _pieces(sys.stdin.buffer, None, on_progress)
            return
        with Path(path).open("rb") as file:
            yield from _pieces(file, os.fstat(file.fileno()).st_size or None, on_progress)
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise CaptureError(
            CaptureErrorKind.UNREADABLE, f"The capture {os.fspath(path)} can't be read: {reason}."
        ) from None
    except ValueError:
        raise CaptureError(CaptureErrorKind.UNREADABLE, "The name of the capture is not a valid file name.") from None


def chunks_of_value(capture: Any) -> Iterator[bytes]:
    """The pieces of a capture that is already decoded, so that it is read by the same rules as a file."""
    try:
        yield json.dumps(capture, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as problem:
        raise CaptureError(CaptureErrorKind.NOT_JSON, f"The capture is not JSON: {problem}.") from None


def _pieces(file: BinaryIO, total_bytes: int | None, on_progress: Progress | None) -> Iterator[bytes]:
    done_bytes = 0
    while piece := file.read(_PIECE_BYTES):
        done_bytes += len(piece)
        if on_progress is not None:
            on_progress(done_bytes, total_bytes)
        yield piece
