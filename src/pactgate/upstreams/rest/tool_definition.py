"""Builds the definition of a tool from an endpoint: closed input schema, output schema, annotations, contract.

Pure, made once per endpoint. Must not: promise more than the endpoint and its method do. Enforces D8 (closed schemas) and the declared
half of S2/MCP-002 for REST tools.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Raw

from pactgate.config.sections.endpoints import Endpoint, OutputValidation, Parameter
from pactgate.core.contract import CONTRACT_KEY
from pactgate.core.failures import RETRYABLE_ERRORS, ErrorCode
from pactgate.protocol.messages import encode_json
from pactgate.upstreams.rest.request import arguments_of, is_spread
from pactgate.upstreams.rest.response import WRAPPED, wraps

OPERATIONS: Final = "dev.pactgate/operations"
_READ_ONLY: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_IDEMPOTENT: Final = _READ_ONLY | {"PUT", "DELETE"}
_ERRORS: Final = {
    ErrorCode.PERMISSION_DENIED: "The API refuses the gateway's credentials (HTTP 401, 403).",
    ErrorCode.NOT_FOUND: "Not found (HTTP 404, 410).",
    ErrorCode.CONFLICT: "Conflict with the current state (HTTP 409).",
    ErrorCode.RATE_LIMITED: "Too many requests (HTTP 429).",
    ErrorCode.SERVICE_UNAVAILABLE: "The API can't be reached or is busy (HTTP 503).",
    ErrorCode.OPERATION_FAILED: "Any other status of 400 or more.",
    ErrorCode.INVALID_OUTPUT: "A response that is empty, of another kind, or lacks expected fields.",
}


def definition(endpoint: Endpoint, *, validation: OutputValidation = "enforce") -> Raw:
    """The encoded definition of the tool. With `warn` the output schema is in it for the gateway only (`catalog/discovery.py`)."""
    annotations: dict[str, Any] = {
        "readOnlyHint": is_read_only(endpoint),
        "destructiveHint": endpoint.method == "DELETE",
        "idempotentHint": is_idempotent(endpoint),
        "openWorldHint": True,
    }
    tool: dict[str, Any] = {"name": endpoint.name, "description": endpoint.description}
    if endpoint.title is not None:
        tool["title"] = annotations["title"] = endpoint.title
    tool["inputSchema"] = input_schema(endpoint)
    if endpoint.output_schema is not None and validation != "off":
        tool["outputSchema"] = output_schema(endpoint)
    tool["annotations"] = annotations
    tool["_meta"] = {CONTRACT_KEY: _contract(endpoint, validation)}
    return Raw(encode_json(tool))


def is_read_only(endpoint: Endpoint) -> bool:
    if endpoint.category is not None:
        return endpoint.category in ("query", "scan")
    return endpoint.method in _READ_ONLY


def is_idempotent(endpoint: Endpoint) -> bool:
    if endpoint.idempotent is not None:
        return endpoint.idempotent
    return is_read_only(endpoint) or endpoint.method in _IDEMPOTENT


def input_schema(endpoint: Endpoint) -> dict[str, Any]:
    """The schema of the arguments. Closed: an unknown argument is an error (D8)."""
    definitions: dict[str, Any] = {}
    properties = {
        parameter.argument or parameter.name: _property(parameter, definitions) for parameter in endpoint.parameters
    }
    body = endpoint.body
    if body is not None:
        schema = _lifted(body.schema, definitions)
        if is_spread(body):
            properties.update(schema["properties"])
        else:
            properties[arguments_of(endpoint)[-1].name] = schema
    closed: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    required = [argument.name for argument in arguments_of(endpoint) if argument.required]
    if required:
        closed["required"] = required
    if definitions:
        closed["$defs"] = definitions
    if endpoint.examples:
        closed["examples"] = list(endpoint.examples)
    return closed


def output_schema(endpoint: Endpoint) -> dict[str, Any]:
    """The schema of the structured content; anything but an object is wrapped in one."""
    schema = endpoint.output_schema or {}
    if not wraps(endpoint):
        return schema
    definitions: dict[str, Any] = {}
    inner = _lifted(schema, definitions)
    wrapped: dict[str, Any] = {"type": "object", "properties": {WRAPPED: inner}, "required": [WRAPPED]}
    return {**wrapped, "$defs": definitions} if definitions else wrapped


def _property(parameter: Parameter, definitions: dict[str, Any]) -> dict[str, Any]:
    schema = _lifted(parameter.schema, definitions)
    return schema if parameter.description is None else {**schema, "description": parameter.description}


def _lifted(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema without its `$defs`, which go to the top of the outer schema, where references find them."""
    definitions.update(schema.get("$defs", {}))
    return {word: held for word, held in schema.items() if word not in ("$defs", "$schema", "$id")}


def _contract(endpoint: Endpoint, validation: OutputValidation) -> dict[str, Any]:
    may_repeat = is_idempotent(endpoint)
    declares = endpoint.output_schema is not None or endpoint.expect is not None
    return {
        **({"outputValidation": validation} if declares or validation == "off" else {}),
        "category": endpoint.category or ("query" if is_read_only(endpoint) else "mutation"),
        "idempotent": may_repeat,
        "effects": ["network"],
        "errorCodes": [
            {"code": code.value, "description": said, "retryable": may_repeat and code in RETRYABLE_ERRORS}
            for code, said in _ERRORS.items()
        ],
    }
