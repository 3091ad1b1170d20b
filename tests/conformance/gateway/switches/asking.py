"""Faults of asking back."""

from __future__ import annotations

import json

from tests.conformance.gateway.switches.words import error_for, swap, swap_request
from tests.support.breaking_proxy import Switch


def asked_anyway(request: str, response: str) -> str:
    """A modern client gets a question that it can't answer."""
    if "gwp110" not in request or '"code":-32021' not in response:
        return response
    asked = {"q": {"method": "roots/list"}}
    result = {"resultType": "input_required", "inputRequests": asked, "requestState": "s"}
    return json.dumps({"jsonrpc": "2.0", "id": json.loads(request)["id"], "result": result})


SWITCHES = {
    "GWP-100": swap('"systemPrompt":"Be brief.",', ""),
    "GWP-101": swap('"minimum":0.5', '"minimum":1'),
    "GWP-102": swap("b=c%2Fd", "b=c/d"),
    "GWP-103": swap_request("a%20b", "a b"),
    "GWP-104": swap_request('"stopReason":"something new"', '"stopReason":"endTurn"'),
    "GWP-105": swap_request('"b":"",', ""),
    "GWP-106": swap_request('"decline"', '"cancel"'),
    "GWP-107": swap_request('"action":"cancel"', '"action":"decline"'),
    "GWP-108": swap_request('"error":{"code":-1,"message":"User rejected sampling request"}', '"result":{}'),
    "GWP-109": swap("for a", "for b"),
    "GWP-110": Switch(response=asked_anyway),
    "GWP-111": swap("requiredCapabilities", "required"),
    "GWP-112": swap_request('\\"quoted\\"', "quoted"),
    "GWP-113": swap_request('"inputResponses":{"form":', '"inputResponses":{"other":'),
    "GWP-114": swap('"method":"sampling/createMessage"', '"method":"sampling/other"'),
    "GWP-115": error_for("gwp115other_"),
    "GWP-116": swap_request('"action":"accept"', '"action":"decline"'),
}
