"""What switches are made of: changes of texts, which leave everything else as it was."""

from __future__ import annotations

import json
from typing import Any

from tests.support.breaking_proxy import Switch


def swap(old: str, new: str) -> Switch:
    """Something else comes back."""
    return Switch(response=lambda request, response: response.replace(old, new))


def swap_request(old: str, new: str) -> Switch:
    """Something else is sent on."""
    return Switch(request=lambda request: request.replace(old, new))


def error_for(part: str, code: int = -32000) -> Switch:
    """A request with this in its text is answered with an error."""

    def response(request: str, response: str) -> str:
        if part not in request:
            return response
        return json.dumps({"jsonrpc": "2.0", "id": json.loads(request)["id"], "error": {"code": code, "message": "no"}})

    return Switch(response=response)


def result_for(part: str, result: dict[str, Any]) -> Switch:
    """A request with this in its text is answered with this result."""

    def response(request: str, response: str) -> str:
        if part not in request:
            return response
        return json.dumps({"jsonrpc": "2.0", "id": json.loads(request)["id"], "result": result})

    return Switch(response=response)
