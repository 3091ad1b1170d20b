"""Faults behind the gateway that hurt others."""

from __future__ import annotations

from tests.conformance.gateway.switches.words import error_for, result_for
from tests.support.breaking_proxy import Switch


def no_list_after(part: str) -> Switch:
    """No list any more, once such a request was sent."""
    seen: list[str] = []

    def request(request: str) -> str:
        seen.extend([part] if part in request else [])
        return request

    broken = error_for('"tools/list"')
    return Switch(
        request=request, response=lambda request, response: broken.response(request, response) if seen else response
    )


SWITCHES = {
    **{f"GWP-{number}": error_for(f"gwp{number}ok_") for number in (160, 161, 162, 166, 167)},
    **{f"GWP-{number}": error_for(f"gwp{number}_") for number in (164, 165, 168)},
    "GWP-163": result_for("gwp163_", {"resultType": "complete", "content": []}),
    "GWP-169": no_list_after("gwp169_"),
}
