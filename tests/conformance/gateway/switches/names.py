"""Faults of names and lists."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

from tests.conformance.gateway.switches.words import result_for
from tests.support.breaking_proxy import Switch

_turns = itertools.count()


def on_list(change: Callable[[list[Any], str], list[Any]]) -> Switch:
    """The entries of a list of tools are changed."""

    def response(request: str, response: str) -> str:
        message = json.loads(response)
        if '"tools/list"' not in request or "result" not in message:
            return response
        message["result"]["tools"] = change(message["result"]["tools"], request)
        return json.dumps(message)

    return Switch(response=response)


def first_page_only(request: str, response: str) -> str:
    message = json.loads(response)
    message.get("result", {}).pop("nextCursor", None)
    return json.dumps(message)


def without_changes(request: str, response: str) -> str | None:
    return None if "notifications/tools/list_changed" in response else response


SWITCHES = {
    "GWP-060": Switch(response=first_page_only),
    "GWP-061": on_list(lambda tools, request: tools[:: 1 if next(_turns) % 2 else -1]),
    "GWP-062": on_list(lambda tools, request: tools[: len(tools) - next(_turns) % 2]),
    "GWP-063": on_list(lambda tools, request: [*tools, *tools]),
    "GWP-064": Switch(
        response=lambda request, response: (
            response
            if "dualhttp__gwp064same" not in request
            else json.dumps(
                {"jsonrpc": "2.0", "id": json.loads(request)["id"], "error": {"code": -32602, "message": "no"}}
            )
        )
    ),
    "GWP-065": on_list(lambda tools, request: [{**tool, "name": f"server.{tool['name']}"} for tool in tools]),
    "GWP-066": result_for("gwp066_nobody", {"resultType": "complete", "content": []}),
    "GWP-067": Switch(times=lambda request: 2 if "gwp067_" in request else 1),
    "GWP-068": result_for("gwp-nobody-gave-this-out", {"resultType": "complete", "tools": []}),
    "GWP-070": Switch(response=without_changes),
    "GWP-071": Switch(response=without_changes),
}
