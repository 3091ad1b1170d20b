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


def accepting(part: str) -> Switch:
    """A request with this in its text is answered as if nothing were wrong with it."""
    return Switch(
        response=lambda request, response: '{"jsonrpc":"2.0","id":1,"result":{}}' if part in request else response,
        status=lambda request, status: 200 if part in request else status,
    )


def status_for(part: str, wanted: int) -> Switch:
    return Switch(status=lambda request, status: wanted if part in request else status)


def result_for(part: str, result: dict[str, Any]) -> Switch:
    """A request with this in its text is answered with this result."""

    def response(request: str, response: str) -> str:
        if part not in request:
            return response
        return json.dumps({"jsonrpc": "2.0", "id": json.loads(request)["id"], "result": result})

    return Switch(response=response)
