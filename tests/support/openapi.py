"""OpenAPI documents for tests, and what they become."""

from __future__ import annotations

from typing import Any

from pactgate.config.sections.endpoints import Endpoint, Parameter
from pactgate.config.server_settings import ServerConfig
from pactgate.upstreams.openapi.mapping import MappedDocument, map_document

BASE = "https://api.example/v1"


def document(paths: dict[str, Any], version: str = "3.1.0", **more: Any) -> dict[str, Any]:
    return {
        "openapi": version,
        "info": {"title": "Example", "version": "1"},
        "servers": [{"url": BASE}],
        "paths": paths,
        **more,
    }


def operation(operation_id: str | None = "run", **more: Any) -> dict[str, Any]:
    return {**({"operationId": operation_id} if operation_id else {}), "responses": {}, **more}


def mapped(paths: dict[str, Any], version: str = "3.1.0", *, more: Any = None, **settings: Any) -> MappedDocument:
    """The document with these paths, as a server with these settings has it."""
    config = ServerConfig(id="api", openapi="api.json", **{"output_validation": "off", **settings})
    return map_document(document(paths, version, **(more or {})), config)


def only(paths: dict[str, Any], version: str = "3.1.0", **settings: Any) -> Endpoint:
    found = mapped(paths, version, **settings)
    assert not found.left_out
    (endpoint,) = found.endpoints
    return endpoint


def parameter(schema: Any, version: str = "3.1.0", *, more: Any = None, **words: Any) -> Parameter:
    """A query parameter with this schema, as it comes out."""
    given = {"name": "q", "in": "query", "schema": schema, **words}
    (found,) = only({"/x": {"get": operation(parameters=[given])}}, version, more=more).parameters
    return found


def schema_of(schema: Any, version: str = "3.1.0", **components: Any) -> dict[str, Any]:
    return parameter(schema, version, more={"components": {"schemas": components}}).schema


def body(schema: Any, version: str = "3.1.0", kind: str = "application/json", **components: Any) -> Any:
    """The body of a POST with this schema, as it comes out."""
    content = {"required": True, "content": {kind: {"schema": schema}}}
    endpoint = only(
        {"/x": {"post": operation(requestBody=content)}}, version, more={"components": {"schemas": components}}
    )
    assert endpoint.body is not None
    return endpoint.body


def answering(responses: dict[str, Any], version: str = "3.1.0", **components: Any) -> Endpoint:
    """A GET with these responses, its output schemas wanted."""
    return only(
        {"/x": {"get": operation(responses=responses)}},
        version,
        output_validation="enforce",
        more={"components": {"schemas": components}},
    )


def reasons(found: MappedDocument) -> list[str]:
    return [left_out.reason for left_out in found.left_out]
