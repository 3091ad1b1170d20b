"""Checks a live server: records one scripted session with it, then checks the recording like any other capture."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from pactgate.capture.capture_files import SingleCaptureFile
from pactgate.capture.recorder import Recorder
from pactgate.capture.redaction import Redaction, secrets_of
from pactgate.conformance.check import check_capture
from pactgate.conformance.probe import ProbeTarget, probe
from pactgate.conformance.report import BaselineEntry, ComplianceReport
from pactgate.core.events import CaptureFailed, Event
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
            lambda _server, transport: recorder.connection(label, "session", transport),
            era=era,
            timeout_s=timeout_s,
        )
    finally:
        recorder.close()
    for event in events:
        if isinstance(event, CaptureFailed):
            raise OSError(f"The capture {output} can't be written: {event.reason}.")


async def check_live(
    target: ProbeTarget,
    *,
    label: str,
    output: Path | None = None,
    rules: str | Sequence[str] | None = None,
    era: str | None = None,
    fail_on: str = "must",
    unjudged_fails: bool = False,
    baseline: Iterable[BaselineEntry] = (),
    timeout_s: float = TIMEOUT_S,
) -> ComplianceReport:
    """Record a session with a live server and check it. `output` keeps the capture."""
    wanted = None if era in (None, "auto") else Era(era)
    with tempfile.TemporaryDirectory(prefix="pactgate-") as folder:
        path = output or Path(folder) / "live.json"
        await record_live(target, path, label=label, era=wanted, timeout_s=timeout_s)
        return check_capture(path, rules=rules, fail_on=fail_on, unjudged_fails=unjudged_fails, baseline=baseline)
