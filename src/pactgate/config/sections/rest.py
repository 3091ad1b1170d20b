"""What a server entry says about a REST API: the settings both kinds of them share, hand-written endpoints and OpenAPI documents.

The defaults are the strict ones: emptiness, missing fields and other content than promised are failures unless the operator says
otherwise (requirements 3.1, 3.3, 3.4). Must not: know how a request is made. Enforces S4/R3 by its defaults.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from pactgate.config import rest_checks
from pactgate.config.sections.endpoints import MAX_ENDPOINTS, BaseUrl, Endpoint
from pactgate.config.sections.openapi import OpenApiSettings

EgressHost = Annotated[str, Meta(min_length=1, max_length=255, extra={"check": rest_checks.check_egress_host})]
Endpoints = Annotated[tuple[Endpoint, ...], Meta(max_length=MAX_ENDPOINTS)]


class RestSettings(OpenApiSettings, frozen=True, kw_only=True):
    """What a file says about a REST API behind the gateway."""

    base_url: Annotated[
        BaseUrl | None,
        Meta(
            description="Where the paths of `endpoints` or of an OpenAPI document begin, as `https://api.example/v1`."
        ),
    ] = None
    endpoints: Annotated[
        Endpoints | None,
        Meta(
            description="Endpoints of a REST API, each of them a tool. A server has this or `command` or `url`.",
        ),
    ] = None
    allowed_hosts: Annotated[
        tuple[EgressHost, ...],
        Meta(
            max_length=100,
            description="Hosts a REST API may be called at although their addresses are private ones. "
            "The host of a `baseUrl` in this file is always one of them.",
        ),
    ] = ()
    follow_redirects: Annotated[
        int,
        Meta(ge=0, le=10, description="Redirects of a REST API that are followed in one call; 0 makes each a failure."),
    ] = 0
    empty_response: Annotated[
        Literal["error", "allow"],
        Meta(description="What a successful answer of a REST API without content is. 204 and 205 are never an error."),
    ] = "error"
    non_json: Annotated[
        Literal["error", "text"],
        Meta(description="What an answer is that should be JSON and is not: a failure, or a text for the model."),
    ] = "error"
    output_validation: Annotated[
        Literal["enforce", "off"],
        Meta(
            description="Whether answers are held against `outputSchema` and `expect`; `off` does not announce the schema either. "
            "Left out beside `openapi`: `off`, because documents describe answers more often than they promise them."
        ),
    ] = "enforce"
