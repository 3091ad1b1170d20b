"""Faults of eras."""

from __future__ import annotations

import json

from tests.conformance.gateway.switches.words import error_for, result_for, swap
from tests.support.breaking_proxy import Switch

MODERN = "io.modelcontextprotocol/protocolVersion"


def with_envelope(request: str) -> str:
    """A gateway that passes the envelope of its client on."""
    message = json.loads(request or "{}")
    if message.get("method") != "tools/call":
        return request
    message["params"].setdefault("_meta", {})[MODERN] = "2026-07-28"
    return json.dumps(message)


SWITCHES = {
    "GWP-040": error_for("gwp040_"),
    "GWP-041": error_for("gwp041_"),
    "GWP-042": error_for("gwp042_"),
    "GWP-043": error_for("gwp043_"),
    "GWP-044": error_for("gwp044_"),
    "GWP-045": error_for("gwp045_"),
    "GWP-046": swap('"ttlMs":', '"ttl":'),
    "GWP-047": result_for("2099-01-01", {"resultType": "complete", "tools": []}),
    "GWP-048": error_for("2099-01-01"),
    "GWP-049": swap('"protocolVersion":"2025-06-18"', '"protocolVersion":"2025-11-25"'),
    "GWP-050": swap('"resultType":"complete",', ""),
    "GWP-051": Switch(request=with_envelope, is_behind=True),
    "GWP-052": Switch(
        response=lambda request, response: "" if "server/discover" in request else response,
        status=lambda request, status: 502 if "server/discover" in request else status,
    ),
}
