"""What the runner of Python tools reports that no answer carried: effects that were not declared, and changes of the file.

Must not: act on a report; it becomes an event.
"""

from __future__ import annotations

from collections.abc import Callable

from pactgate.core.contract import REPORT_METHOD
from pactgate.core.events import EffectsExceeded, Emit, ToolReported
from pactgate.policy import contracts
from pactgate.protocol.messages import Notification


class ToolReports:
    """The reports of one server. `otherwise` takes every other notification."""

    def __init__(
        self, server: str, emit: Emit, mask: Callable[[str], str], *, otherwise: Callable[[Notification], None]
    ) -> None:
        self._server = server
        self._emit = emit
        self._mask = mask
        self._otherwise = otherwise
        self.not_reloaded: str | None = None
        """Why the last change of its file of Python tools was not loaded."""

    def notice(self, notification: Notification) -> None:
        if notification.method != REPORT_METHOD:
            self._otherwise(notification)
            return
        report = contracts.read_report(notification.params)
        if report is None:
            return
        tool = f"{self._server}.{report.tool}" if report.tool else ""
        if report.operations:
            told = tuple(self._mask(str(one)) for one in report.operations)
            self._emit(EffectsExceeded(self._server, tool, "", told))
        else:
            if report.what in ("reloaded", "not_reloaded"):
                self.not_reloaded = self._mask(report.text) if report.what == "not_reloaded" else None
            self._emit(ToolReported(self._server, tool, report.what, self._mask(report.text)))
