"""The boundary that contains faults: what one step raises stays with that step.

Readers, timers and event listeners run steps of many callers on one stack. Each step runs behind this barrier, so that a fault of one
caller, listener or recorder reaches nobody else. The kernel has the other boundary, which turns a fault into its caller's reply.
Must not: hide a fault; each one is reported as `InternalFailure`.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

from pactgate.core.events import Emit, Event, InternalFailure


class FaultBarrier:
    """Runs steps whose faults must not reach whoever runs them."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit

    def run(self, where: str, step: Callable[..., Any], *args: Any) -> bool:
        """Whether the step ran to its end. `where` names it in the report."""
        try:
            step(*args)
        except Exception as fault:  # noqa: BLE001 - the boundary for steps that have no reply
            self.report(where, fault)
            return False
        return True

    def report(self, where: str, fault: BaseException, request_id: str = "") -> None:
        self._emit(InternalFailure(request_id, where, repr(fault), "".join(traceback.format_exception(fault))))


class Listeners:
    """Hands each event to every listener. A listener that raises is counted and reported once; the others do not notice."""

    def __init__(self) -> None:
        self._listeners: dict[str, Emit] = {}
        self.faults: dict[str, int] = {}
        """How often each listener raised, by its name."""

    def add(self, name: str, listener: Emit) -> None:
        self._listeners = {**self._listeners, name: listener}  # another mapping: `emit` may be going through this one

    def remove(self, name: str) -> None:
        self._listeners = {known: one for known, one in self._listeners.items() if known != name}

    def emit(self, event: Event) -> None:
        for name, listener in self._listeners.items():
            try:
                listener(event)
            except Exception as fault:  # noqa: BLE001 - a listener is not part of any call
                self._count(name, fault)

    def _count(self, name: str, fault: Exception) -> None:
        count = self.faults[name] = self.faults.get(name, 0) + 1
        if count == 1:
            report = "".join(traceback.format_exception(fault))
            self.emit(InternalFailure("", f"listener {name}", repr(fault), report))
