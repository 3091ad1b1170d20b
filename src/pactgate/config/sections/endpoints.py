"""One REST endpoint as a tool: where its arguments go in the request, and what its response must be.

Written by hand under `endpoints` of a server, or made from an OpenAPI document. Must not: know HTTP beyond names; requests are built
from these values elsewhere. Enforces the declarations of S4/UNDECIDED-1, S4/UNDECIDED-3 and S4/UNDECIDED-4.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, field

from pactgate.config import value_checks
from pactgate.config.sections import Section, doc

MAX_PARAMETERS: Final = 200
MAX_ENDPOINTS: Final = 2000

WireName = Annotated[str, Meta(min_length=1, max_length=200)]
Pointer = Annotated[str, Meta(min_length=1, max_length=500)]
Title = Annotated[str, Meta(max_length=200)]
JsonSchema = Annotated[dict[str, Any], Meta(max_length=1000)]
Words = Annotated[str, Meta(max_length=10000)]
BaseUrl = Annotated[
    str, Meta(min_length=1, max_length=2000, extra={"expand": True, "check": value_checks.check_base_url})
]
PathTemplate = Annotated[str, Meta(min_length=1, max_length=2000, extra={"check": value_checks.check_path_template})]
ToolName = Annotated[str, Meta(min_length=1, max_length=128, pattern="^[A-Za-z0-9_.-]+$")]

Place = Literal["path", "query", "header", "body"]
Style = Literal["simple", "label", "matrix", "form", "spaceDelimited", "pipeDelimited", "deepObject"]
Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
ResponseKind = Literal["json", "text", "binary", "none"]
OutputValidation = Literal["enforce", "warn", "off"]


class Parameter(Section, frozen=True, kw_only=True):
    """One argument of the tool and its place in the request."""

    name: Annotated[
        WireName, doc("Name in the request: of the path's placeholder, query key, header or body property.")
    ]
    in_: Annotated[Place, doc("Where it goes. Parameters in the `body` are the properties of one JSON object.")] = (
        field(name="in")
    )
    required: Annotated[bool, doc("Whether a call without it is refused; always so in the `path`.")] = False
    schema: Annotated[JsonSchema, doc("JSON Schema of the value; none means any value.")] = {}
    description: Annotated[Words | None, doc("What it is, for the model.")] = None
    style: Annotated[
        Style | None,
        doc("OpenAPI style of arrays and objects. Default: `simple` in path and header, `form` in the query."),
    ] = None
    explode: Annotated[
        bool | None, doc("Whether each item is written by itself. Default: only with the style `form`.")
    ] = None
    argument: Annotated[
        WireName | None, doc("Name of the tool's argument where it differs from the name in the request.")
    ] = None


class Body(Section, frozen=True, kw_only=True):
    """The body of the request."""

    content_type: Annotated[
        str, doc("Its media type.", min_length=3, max_length=200, extra={"check": value_checks.check_media_type})
    ] = "application/json"
    schema: Annotated[JsonSchema, doc("JSON Schema of the body.")] = {}
    required: Annotated[bool, doc("Whether a call without it is refused.")] = True
    argument: Annotated[
        WireName | None,
        doc("The one argument that is the whole body. Default: the properties of the schema are arguments."),
    ] = None


class Expect(Section, frozen=True, kw_only=True):
    """What every successful response has."""

    required: Annotated[
        tuple[Pointer, ...],
        doc("Members that must be present, by name or as a JSON Pointer such as `/owner/id`.", max_length=100),
    ] = ()


class Endpoint(Section, frozen=True, kw_only=True):
    """One request that is offered as a tool."""

    name: Annotated[ToolName, doc("Name of the tool, once per server.")]
    description: Annotated[Words, doc("What the tool does, for the model.")]
    title: Annotated[Title | None, doc("Name for people.")] = None
    method: Annotated[Method, doc("HTTP method. `GET`, `HEAD` and `OPTIONS` make a read-only tool.")]
    path: Annotated[PathTemplate, doc("Path below the base URL; `{name}` stands for the path parameter of that name.")]
    base_url: Annotated[BaseUrl | None, doc("Base URL of this endpoint, instead of the server's.")] = None
    parameters: Annotated[tuple[Parameter, ...], doc("The arguments of the tool.", max_length=MAX_PARAMETERS)] = ()
    body: Annotated[Body | None, doc("The body of the request, instead of parameters in the body.")] = None
    response: Annotated[
        ResponseKind,
        doc("Kind of a successful response: `json`, `text`, `binary` (an image, audio or file), or `none`."),
    ] = "json"
    expect: Annotated[Expect | None, doc("What a successful response has, without a whole schema.")] = None
    output_schema: Annotated[JsonSchema | None, doc("JSON Schema of every successful response.")] = None
    output_validation: Annotated[
        OutputValidation | None, doc("Like `outputValidation` of the server, for this endpoint.")
    ] = None
    allow_empty: Annotated[bool, doc("Whether an empty response is a success instead of a failure.")] = False
    category: Annotated[
        Literal["query", "mutation", "scan", "execution"] | None,
        doc("Category of the tool, where the method suggests the wrong one."),
    ] = None
    idempotent: Annotated[
        bool | None, doc("Whether a repeated call changes nothing more, where the method suggests otherwise.")
    ] = None
    examples: Annotated[
        tuple[dict[str, Any], ...], doc("Arguments of example calls, for the model.", max_length=20)
    ] = ()
