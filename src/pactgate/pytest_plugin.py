"""For authors of servers: a pytest fixture that judges a server, or a capture of one, by the same rules as `pactgate compliance`.

pytest finds it by itself where this package is installed. It is only imported by pytest, and imports the checker only when the fixture
is called. Must not: be imported by anything of ours.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pactgate.conformance.report import ComplianceReport


class Compliance:
    """Judges, and fails the test with the whole report where something that counts does not hold."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0

    def __call__(
        self,
        *command: str | os.PathLike[str],
        url: str | None = None,
        capture: str | os.PathLike[str] | None = None,
        headers: dict[str, str] | None = None,
        env: dict[str, str] | None = None,
        calls: dict[str, dict[str, Any]] | None = None,
        rules: str | Sequence[str] | None = None,
        era: str | None = None,
        fail_on: str = "must",
        baseline: str | os.PathLike[str] | None = None,
        timeout_s: float = 30.0,
    ) -> ComplianceReport:
        """Name one of: a command with its arguments, `url=`, or `capture=`. The report is returned when it passed.

        `calls` are tools to call with their arguments; no other tool is called.
        """
        from pactgate.conformance.baseline import load
        from pactgate.conformance.check import check_capture
        from pactgate.conformance.live import record_live
        from pactgate.conformance.probe import ProbeTarget
        from pactgate.core.failures import GatewayFailure
        from pactgate.protocol.versions import Era

        if [bool(command), url is not None, capture is not None].count(True) != 1:
            raise TypeError("name one of: a command, url=..., capture=...")
        path = Path(capture) if capture is not None else self._fresh()
        if capture is None:
            words = tuple(os.fspath(word) for word in command)
            target = ProbeTarget(
                command=words,
                url=url,
                headers=headers or {},
                env={**os.environ, **(env or {})},
                calls=tuple((calls or {}).items()),
            )
            wanted = None if era in (None, "auto") else Era(era)
            label = url or f"stdio://{Path(words[0]).name}"
            try:
                _run(record_live(target, path, label=label, era=wanted, timeout_s=timeout_s))
            except GatewayFailure as failure:
                pytest.fail(f"{label} can't be asked: {failure.message}", pytrace=False)
        report = check_capture(
            path,
            rules=rules,
            era=era,
            fail_on=fail_on,
            baseline=() if baseline is None else load(Path(baseline)),
        )
        if not report.passed:
            pytest.fail(f"{_text(report)}\nThe capture is in {path}.", pytrace=False)
        return report

    def _fresh(self) -> Path:
        self._count += 1
        return self._folder / f"session-{self._count}.json"


def _text(report: ComplianceReport) -> str:
    from pactgate.conformance.formats.as_text import as_text

    return as_text(report, lambda text, _style: text)


def _run(work: Any) -> None:
    """Also from within a test that runs on an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(work)
        return
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, work).result()


@pytest.fixture
def mcp_compliance(tmp_path: Path) -> Compliance:
    """Judge an MCP server: `mcp_compliance("python", "server.py")`, `mcp_compliance(url=...)` or `mcp_compliance(capture=...)`."""
    return Compliance(tmp_path)
