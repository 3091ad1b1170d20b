"""The settings of a REST API, whether its endpoints are written by hand or come from an OpenAPI document.

The defaults are strict: an empty response, a missing field or unexpected content is a failure unless the operator says otherwise
(requirements 3.1, 3.3, 3.4). Must not: know how a request is made. Enforces S4/R3 by its defaults.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from pactgate.config import value_checks
from pactgate.config.sections import doc
from pactgate.config.sections.endpoints import MAX_ENDPOINTS, BaseUrl, Endpoint, OutputValidation
from pactgate.config.sections.openapi import OpenApiSettings

EgressHost = Annotated[str, Meta(min_length=1, max_length=255, extra={"check": value_checks.check_egress_host})]
Endpoints = Annotated[tuple[Endpoint, ...], Meta(max_length=MAX_ENDPOINTS)]


class RestSettings(OpenApiSettings, frozen=True, kw_only=True):
    """Settings of a REST API behind the gateway."""

    base_url: Annotated[
        BaseUrl | None,
        doc(
            "Where the paths of `endpoints` or of an OpenAPI document begin, as `https://api.example/v1`; replaces the document's servers."
        ),
    ] = None
    endpoints: Annotated[
        Endpoints | None, doc("Endpoints of a REST API, each of them a tool. A server has this or `command` or `url`.")
    ] = None
    allowed_hosts: Annotated[
        tuple[EgressHost, ...],
        doc(
            "Hosts with private addresses that may be called, beside the origin of `baseUrl`: `host` for the default ports, else "
            "`host:port`.",
            max_length=100,
        ),
    ] = ()
    follow_redirects: Annotated[
        int, doc("Redirects of a REST API followed in one call; with 0 a redirect is a failure.", ge=0, le=10)
    ] = 0
    empty_response: Annotated[
        Literal["error", "allow"],
        doc("Whether a successful response of a REST API without content is a failure. 204 and 205 never are."),
    ] = "error"
    non_json: Annotated[
        Literal["error", "text"],
        doc("Whether a response that should be JSON and is not becomes a failure or text for the model."),
    ] = "error"
    output_validation: Annotated[
        OutputValidation,
        doc(
            "What happens to a response that does not fit `outputSchema` or `expect`: a failure (`enforce`), passed on with "
            "`validated: false` and the places (`warn`), or nothing (`off`). Only `enforce` announces the schema to clients. Default "
            "beside `openapi`: `warn`, because many documents do not describe responses exactly."
        ),
    ] = "enforce"
