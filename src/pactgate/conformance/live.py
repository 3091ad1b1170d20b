"""Records one scripted session with a live server, which is then checked like any other capture."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from pactgate.capture.capture_files import SingleCaptureFile
from pactgate.capture.format import PROBE
from pactgate.capture.recorder import Recorder
from pactgate.capture.redaction import Redaction, secrets_of
from pactgate.conformance.probe import ProbeTarget, probe
from pactgate.core.events import CaptureFailed, Event, InternalFailure
from pactgate.protocol.versions import Era

MAX_CAPTURE_BYTES: Final = 256 * 1024 * 1024
TIMEOUT_S: Final = 30.0


async def record_live(
    target: ProbeTarget, output: Path, *, label: str, era: Era | None = None, timeout_s: float = TIMEOUT_S
) -> None:
    """Write a capture of a scripted session with a live server. Raises GatewayFailure when it can't be reached, OSError."""
    events: list[Event] = []
    recorder = Recorder(
        SingleCaptureFile(output),
        Redaction((*target.headers.values(), *secrets_of(target.env), *secrets_of(os.environ))),
        max_file_bytes=MAX_CAPTURE_BYTES,
        emit=events.append,
    )
    try:
        await probe(
            target,
            lambda _server, transport: recorder.connection(label, PROBE, transport),
            era=era,
            timeout_s=timeout_s,
        )
    finally:
        recorder.close()
    for event in events:
        if isinstance(event, CaptureFailed | InternalFailure):
            reason = event.reason if isinstance(event, CaptureFailed) else event.error
            raise OSError(f"The capture {output} can't be written: {reason}.")
