"""Faults of tracing and of credentials."""

from __future__ import annotations

from tests.conformance.gateway.strict_gateway import IDENTITY
from tests.conformance.gateway.switches.words import error_for, swap_request
from tests.support.breaking_proxy import Switch


def adding(headers: dict[str, str], *, is_behind: bool = False) -> Switch:
    """Requests are sent on with these headers."""
    return Switch(headers=lambda request, own: {**own, **headers}, is_behind=is_behind)


def renaming(name: str) -> Switch:
    """Requests are sent on without what this header says."""
    return Switch(
        headers=lambda request, own: {key: "other" if key.lower() == name else value for key, value in own.items()}
    )


def without_challenge(name: str, value: str) -> str:
    return "" if name == "www-authenticate" else value


SWITCHES = {
    "GWP-120": swap_request("4bf92f3577b34da6a3ce929d0e0e4736", "0af7651916cd43dd8448eb211c80319c"),
    "GWP-121": swap_request("gwp=a:1,other@gwp=b2", "other@gwp=b2"),
    "GWP-122": swap_request("%C3%A9", "é"),
    "GWP-124": adding({"Authorization": "Bearer of-the-client"}, is_behind=True),
    "GWP-125": adding({"Cookie": "gwp=125"}, is_behind=True),
    "GWP-126": Switch(response_headers=without_challenge),
    "GWP-127": Switch(response_headers=lambda name, value: value.replace("oauth-protected-resource", "nothing")),
    "GWP-128": Switch(headers=lambda request, own: {**IDENTITY, **own} if "tools/list" in request else own),
    "GWP-130": renaming("mcp-param-gwp-count"),
    "GWP-131": renaming("mcp-name"),
    "GWP-132": error_for("gwp132_"),
}
