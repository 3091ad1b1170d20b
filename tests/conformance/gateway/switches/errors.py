"""Faults of errors."""

from __future__ import annotations

from tests.conformance.gateway.switches.words import error_for, result_for, swap

SWITCHES = {
    "GWP-140": result_for("gwp140_", {"resultType": "complete", "content": []}),
    "GWP-141": swap("gwp141: the invoice is locked", "internal error"),
    "GWP-142": error_for("gwp142/nobody"),
    "GWP-143": result_for("gwp143_nobody", {"resultType": "complete", "messages": []}),
    "GWP-144": result_for("gwp144/nobody", {"resultType": "complete", "contents": []}),
    "GWP-145": swap('"message":"', '"message":"Traceback (most recent call last): '),
}
