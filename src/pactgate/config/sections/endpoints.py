"""One REST endpoint as a tool: where its arguments go in a request, and what its answer has to be.

Written by hand under `endpoints` of a server, or made from an OpenAPI document. Must not: know HTTP beyond names; requests are built
from these values elsewhere. Enforces the declarations of S4/UNDECIDED-1, S4/UNDECIDED-3 and S4/UNDECIDED-4.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, field

from pactgate.config import rest_checks
from pactgate.config.documented import Documented

MAX_PARAMETERS: Final = 200
MAX_ENDPOINTS: Final = 2000

WireName = Annotated[str, Meta(min_length=1, max_length=200)]
Pointer = Annotated[str, Meta(min_length=1, max_length=500)]
Title = Annotated[str, Meta(max_length=200)]
JsonSchema = Annotated[dict[str, Any], Meta(max_length=1000)]
Words = Annotated[str, Meta(max_length=10000)]
BaseUrl = Annotated[
    str, Meta(min_length=1, max_length=2000, extra={"expand": True, "check": rest_checks.check_base_url})
]
PathTemplate = Annotated[str, Meta(min_length=1, max_length=2000, extra={"check": rest_checks.check_path_template})]
ToolName = Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9_.-]+$")]

Place = Literal["path", "query", "header", "body"]
Style = Literal["simple", "label", "matrix", "form", "spaceDelimited", "pipeDelimited", "deepObject"]
Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
ResponseKind = Literal["json", "text", "binary", "none"]


class Parameter(Documented, frozen=True, kw_only=True):
    """One argument of the tool and its place in the request."""

    name: Annotated[
        WireName,
        Meta(description="Name in the request: of the path's placeholder, query key, header or body property."),
    ]
    in_: Annotated[
        Place, Meta(description="Where it goes. Parameters in the `body` are the properties of one JSON object.")
    ] = field(name="in")
    required: Annotated[bool, Meta(description="Whether a call without it is refused; always so in the `path`.")] = (
        False
    )
    schema: Annotated[JsonSchema, Meta(description="JSON Schema of the value; none means any value.")] = {}
    description: Annotated[Words | None, Meta(description="What it is, for the model.")] = None
    style: Annotated[
        Style | None,
        Meta(
            description="How lists and tables are written, in OpenAPI's words. Left out: `simple` in path and header, `form` in the query."
        ),
    ] = None
    explode: Annotated[
        bool | None, Meta(description="Whether each item stands by itself. Left out: only with the style `form`.")
    ] = None
    argument: Annotated[
        WireName | None, Meta(description="Name of the tool's argument where it differs from the name in the request.")
    ] = None


class Body(Documented, frozen=True, kw_only=True):
    """The body of the request."""

    content_type: Annotated[
        str,
        Meta(
            min_length=3, max_length=200, description="Its media type.", extra={"check": rest_checks.check_media_type}
        ),
    ] = "application/json"
    schema: Annotated[JsonSchema, Meta(description="JSON Schema of the body.")] = {}
    required: Annotated[bool, Meta(description="Whether a call without it is refused.")] = True
    argument: Annotated[
        WireName | None,
        Meta(
            description="The one argument that is the whole body. Left out: the properties of the schema are arguments."
        ),
    ] = None


class Expect(Documented, frozen=True, kw_only=True):
    """What every successful answer has."""

    required: Annotated[
        tuple[Pointer, ...],
        Meta(
            max_length=100, description="Members that must be there, by name or as a JSON Pointer such as `/owner/id`."
        ),
    ] = ()


class Endpoint(Documented, frozen=True, kw_only=True):
    """One request that is offered as a tool."""

    name: Annotated[ToolName, Meta(description="Name of the tool, once per server.")]
    description: Annotated[Words, Meta(description="What the tool does, for the model.")]
    title: Annotated[Title | None, Meta(description="Name for people.")] = None
    method: Annotated[Method, Meta(description="HTTP method. `GET`, `HEAD` and `OPTIONS` make a read-only tool.")]
    path: Annotated[
        PathTemplate, Meta(description="Path below the base URL; `{name}` stands for the path parameter of that name.")
    ]
    base_url: Annotated[BaseUrl | None, Meta(description="Base URL of this endpoint, instead of the server's.")] = None
    parameters: Annotated[
        tuple[Parameter, ...], Meta(max_length=MAX_PARAMETERS, description="The arguments of the tool.")
    ] = ()
    body: Annotated[
        Body | None, Meta(description="The body of the request, where single parameters do not say it.")
    ] = None
    response: Annotated[
        ResponseKind,
        Meta(
            description="What a successful answer is: `json`, `text`, `binary` (an image, audio or file), or `none` at all."
        ),
    ] = "json"
    expect: Annotated[Expect | None, Meta(description="What a successful answer has, without a whole schema.")] = None
    output_schema: Annotated[JsonSchema | None, Meta(description="JSON Schema every successful answer fits.")] = None
    allow_empty: Annotated[
        bool, Meta(description="Whether an empty successful answer is one, instead of a failure.")
    ] = False
    category: Annotated[
        Literal["query", "mutation", "scan", "execution"] | None,
        Meta(description="Category of the tool, where the method says it wrongly."),
    ] = None
    idempotent: Annotated[
        bool | None,
        Meta(description="Whether repeating a call changes nothing more, where the method says it wrongly."),
    ] = None
    examples: Annotated[
        tuple[dict[str, Any], ...],
        Meta(max_length=20, description="Arguments of calls that make sense, for the model."),
    ] = ()
