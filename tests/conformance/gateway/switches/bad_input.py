"""Faults of the front door."""

from __future__ import annotations

from tests.conformance.gateway.switches.words import accepting, status_for

SWITCHES = {
    **{f"GWP-{number}": accepting(f"gwp{number}") for number in (180, 181, 182, 183, 184, 185, 186, 189, 191)},
    "GWP-187": status_for("gwp187", 500),
    "GWP-188": status_for("gwp188", 500),
    "GWP-190": accepting('"id":null'),
}
