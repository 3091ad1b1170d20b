"""Faults of isolation."""

from __future__ import annotations

from tests.conformance.gateway.switches.words import error_for, swap
from tests.support.breaking_proxy import Switch

SWITCHES = {
    "GWP-150": swap("for the first", "for the second"),
    "GWP-151": swap("said to the first", "said to the second"),
    "GWP-152": error_for("gwp152_"),
    "GWP-153": Switch(status=lambda request, status: 200 if status == 404 else status),
}
