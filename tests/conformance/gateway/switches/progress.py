"""Faults of progress, cancellation and log messages."""

from __future__ import annotations

import json
from typing import Any

from tests.conformance.gateway.switches.words import error_for, swap, swap_request
from tests.support.breaking_proxy import Switch

LOG_LEVEL = "io.modelcontextprotocol/logLevel"


def without(method: str) -> Switch:
    """A notification is dropped."""
    return Switch(response=lambda request, response: None if f'"{method}"' in response else response)


def with_meta(part: str, key: str, value: Any) -> Switch:
    """A call with this in its text is sent on with more in `_meta`."""

    def request(data: str) -> str:
        if part not in data:
            return data
        message = json.loads(data)
        message["params"].setdefault("_meta", {})[key] = value
        return json.dumps(message)

    return Switch(request=request)


def cancelled(request: str) -> str | None:
    """A gateway that takes a broken connection for a cancellation."""
    if "gwp089_" not in request:
        return ""
    params = {"requestId": json.loads(request)["id"]}
    return json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})


def late(request: str) -> str:
    """A result for a call that was cancelled."""
    return json.dumps({"jsonrpc": "2.0", "id": json.loads(request)["id"], "result": {}}) if "gwp087_" in request else ""


LOG = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "error", "data": "of one call"}}

SWITCHES = {
    "GWP-080": without("notifications/progress"),
    "GWP-081": swap('"progressToken":81', '"progressToken":"81"'),
    "GWP-082": swap('"total":2,"message"', '"total":3,"message"'),
    "GWP-083": swap("for a", "for b"),
    "GWP-084": with_meta("gwp084_", "progressToken", "of the gateway"),
    "GWP-085": swap_request("notifications/cancelled", "notifications/forgotten"),
    "GWP-086": Switch(gone=lambda request: None),
    "GWP-087": Switch(closing=late),
    "GWP-088": error_for("gwp088other_"),
    "GWP-089": Switch(gone=cancelled),
    "GWP-090": swap('"level":"warning"', '"level":"info"'),
    "GWP-091": Switch(request=lambda data: data.replace('evel":"error"', 'evel":"debug"')),
    "GWP-092": with_meta("gwp092_", LOG_LEVEL, "debug"),
    "GWP-093": Switch(opening=lambda request: "" if request else json.dumps(LOG)),
    "GWP-094": swap_request('"loud"', '"info"'),
}
