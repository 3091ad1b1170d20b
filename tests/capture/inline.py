"""Recordings whose jobs for the disk run at once, so that a test can read the file after each step."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVarTuple

from pactgate.capture.capture_files import CaptureStore
from pactgate.capture.redaction import Redaction
from pactgate.capture.session_writer import RecordingContext
from pactgate.core.events import Emit

Ts = TypeVarTuple("Ts")


class InlineJobs:
    def put(self, size_bytes: int, job: Callable[[*Ts], None], *details: *Ts) -> None:
        job(*details)


def inline_context(
    store: CaptureStore,
    *,
    max_file_bytes: int = 1_000_000,
    emit: Emit = print,
) -> RecordingContext:
    return RecordingContext(
        store=store,
        redaction=Redaction(),
        jobs=InlineJobs(),
        max_file_bytes=max_file_bytes,
        emit=emit,
    )
