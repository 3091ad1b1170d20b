"""Maps one operation of an OpenAPI document to an endpoint: its parameters, its body, its response.

An operation that no endpoint can express is skipped with the reason. An optional parameter that can't be sent, such as a cookie, is skipped
alone, with a note. Must not: guess where a value goes. Serves requirement 3.1, 3.3 and 3.4: the document declares the kind of the response
and whether it may be empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple, cast

from pactgate.config.endpoint_checks import STYLES, WHOLE_BODY, spreads
from pactgate.config.sections.endpoints import MAX_PARAMETERS, Body, Parameter, Place, ResponseKind, Style
from pactgate.config.value_checks import PLACEHOLDER, check_header_name
from pactgate.core.display import flat
from pactgate.upstreams.openapi.document_text import DocumentError
from pactgate.upstreams.openapi.names import argument_names, is_legal_argument
from pactgate.upstreams.openapi.references import DocumentNode, References
from pactgate.upstreams.openapi.schemas import Direction, Schemas
from pactgate.upstreams.rest.body import FORM, MULTIPART, essence
from pactgate.upstreams.rest.credentials import NONE_GIVEN, OperatorNames

DESCRIPTION_CHARS: Final = 1000
_BODY: Final = "(body)"
_UNSUPPORTED: Final = 9
_WRITTEN_HEADERS: Final = frozenset({"accept", "content-type", "authorization"})
"""OpenAPI ignores parameters of these names: content negotiation and credentials are not arguments."""
_OWN_HEADERS: Final = frozenset(
    {"accept-encoding", "connection", "content-encoding", "content-length", "cookie", "host", "proxy-authorization"}
    | {"te", "trailer", "transfer-encoding", "upgrade", "user-agent"}
)
_EVENTS: Final = "text/event-stream"
_TEXT_TYPES: Final = frozenset({"application/xml", "application/yaml", "application/x-yaml", "application/javascript"})


class MappedRequest(NamedTuple):
    """Where the arguments of a tool go; `notes` name optional parameters that are skipped."""

    parameters: tuple[Parameter, ...]
    body: Body | None
    notes: tuple[str, ...]


class MappedResponse(NamedTuple):
    kind: ResponseKind
    output: DocumentNode | None
    allow_empty: bool


def read_request(
    item: DocumentNode,
    operation: DocumentNode,
    method: str,
    path: str,
    references: References,
    schemas: Schemas,
    given: OperatorNames = NONE_GIVEN,
) -> MappedRequest:
    """`given` are sent by the gateway with each request. Raises DocumentError."""
    notes: list[str] = []
    placeholders = PLACEHOLDER.findall(path)
    parameters = [one for one in _merged(item, operation, references, placeholders) if _is_taken(one, given, notes)]
    if len(parameters) > MAX_PARAMETERS:
        raise DocumentError(f"it has more than {MAX_PARAMETERS} parameters")
    body = _chosen_body(operation, method, references)
    wanted = {_label(one): _schema_spot(one) for one in parameters}
    if body is not None:
        wanted[_BODY] = body.schema
    made = schemas.stand_alone(wanted, Direction.INPUT)
    arguments = argument_names((_place(one), one.text("name") or "") for one in parameters)
    taken = set(arguments.values())
    return MappedRequest(
        tuple(_parameter(one, made[_label(one)], arguments) for one in parameters),
        None if body is None else _body(body, made[_BODY], taken),
        tuple(notes),
    )


def read_answer(operation: DocumentNode, method: str, references: References) -> MappedResponse:
    """The response of a successful call. Raises DocumentError."""
    if method == "HEAD":
        return MappedResponse("none", None, allow_empty=True)
    declared = list(_successes(operation, references))
    contents = [(kind, spot) for _, content in declared for kind, spot in content.items()]
    is_sometimes_empty = any(not content for _, content in declared)
    if not contents:
        is_never_full = bool(declared) and all(code in ("204", "205") for code, _ in declared)
        return MappedResponse("none" if is_never_full else "text", None, allow_empty=True)
    if all(essence(kind) == _EVENTS for kind, _ in contents):
        raise DocumentError("its response is a stream of events, and a tool answers once")
    json_spots = [spot for kind, spot in contents if is_json(kind)]
    if json_spots:
        distinct = {_identity(spot.inside("schema")): spot.inside("schema") for spot in json_spots}
        only = next(iter(distinct.values())) if len(distinct) == 1 else None
        is_clear = only is not None and not is_sometimes_empty and len(json_spots) == len(contents)
        return MappedResponse("json", only if is_clear and only and only.value else None, is_sometimes_empty)
    is_text = any(_is_text(kind) for kind, _ in contents)
    return MappedResponse("text" if is_text else "binary", None, is_sometimes_empty)


def describe(operation: DocumentNode, method: str, path: str) -> str:
    summary, description = (_words(operation, name) for name in ("summary", "description"))
    if summary and description and not description.startswith(summary):
        text = f"{summary.rstrip('.')}. {description}"
    else:
        text = description or summary or f"{method} {path}"
    return _shortened(text)


def title_of(operation: DocumentNode) -> str | None:
    summary = _words(operation, "summary")
    return flat(summary, 100) if summary else None


def is_json(media_type: str) -> bool:
    kind = essence(media_type)
    return kind in ("application/json", "text/json", "*/*", "application/*") or kind.endswith("+json")


class _ChosenBody(NamedTuple):
    content_type: str
    schema: DocumentNode
    is_required: bool


def _merged(
    item: DocumentNode, operation: DocumentNode, references: References, placeholders: list[str]
) -> list[DocumentNode]:
    """The parameters of path and operation; those of the operation take precedence.

    An undeclared placeholder is a string parameter. A path parameter without a placeholder is skipped.
    """
    found: dict[tuple[str, str], DocumentNode] = {
        ("path", name): DocumentNode({"name": name, "in": "path", "schema": {"type": "string"}})
        for name in placeholders
    }
    for holder in (item, operation):
        for given in holder.inside("parameters").items():
            one = references.follow(given)
            name, place = one.text("name"), one.text("in")
            if not name or place not in ("path", "query", "header", "cookie"):
                raise DocumentError("one of its parameters has no name, or an unknown `in`")
            if place != "path" or name in placeholders:
                found[place, name.casefold() if place == "header" else name] = one
    return list(found.values())


def _is_taken(parameter: DocumentNode, given: OperatorNames, notes: list[str]) -> bool:
    name, place = parameter.text("name") or "", parameter.text("in")
    if place == "header" and name.casefold() in _WRITTEN_HEADERS:
        return False
    if given.has(place, name):
        notes.append(f"its parameter {flat(name, 60)} is set in the configuration, so it is no argument")
        return False
    problem = _parameter_problem(parameter, name, place)
    if problem is None:
        return True
    what = f"its parameter {flat(name, 60)} {problem}"
    if parameter.is_set("required") or place == "path":
        raise DocumentError(what)
    notes.append(f"{what}; it is optional and skipped")
    return False


def _parameter_problem(parameter: DocumentNode, name: str, place: str | None) -> str | None:
    if place == "cookie":
        return "goes into a cookie"
    if place == "header" and (name.casefold() in _OWN_HEADERS or check_header_name(name) is not None):
        return "is a header that can't be sent, or that the gateway writes itself"
    kind = _own_kind(parameter)
    if kind is not None and not is_json(kind) and not _is_text(kind):
        return f"is written as {flat(kind, 60)}"
    style = parameter.text("style")
    if style is not None and place is not None and style not in STYLES[place]:
        return f"has the style {flat(style, 40)}, which is not allowed there"
    return None


def _chosen_body(operation: DocumentNode, method: str, references: References) -> _ChosenBody | None:
    body = references.follow(operation.inside("requestBody"))
    content = body.inside("content").members()
    if not content:
        return None
    if method in ("GET", "HEAD"):
        if body.is_set("required"):
            raise DocumentError(f"it is a {method} with a body")
        return None
    chosen = min(content, key=_preference)
    schema = body.inside("content", chosen, "schema")
    kind = essence(chosen)
    if _preference(chosen) == _UNSUPPORTED or (kind == MULTIPART and _takes_files(schema, references)):
        what = "uploads files" if kind == MULTIPART else "takes a body of another kind"
        raise DocumentError(f"it {what} ({flat(', '.join(content), 100)}); JSON, forms and text can be sent")
    if _is_text(kind):
        schema = DocumentNode({"type": "string"})
    return _ChosenBody("application/json" if "*" in chosen else chosen, schema, body.is_set("required"))


def _preference(media_type: str) -> int:
    """The lower, the better the gateway can send it."""
    kind = essence(media_type)
    if kind in ("application/json", "*/*", "application/*"):
        return 0
    if is_json(kind):
        return 1
    if kind in (FORM, MULTIPART):
        return 2 if kind == FORM else 3
    return 4 if _is_text(kind) else _UNSUPPORTED


def _takes_files(schema: DocumentNode, references: References) -> bool:
    """Whether a form has binary fields at its top level."""
    form = references.follow(schema)
    for member in form.inside("properties").members().values():
        one = references.follow(DocumentNode(member, form.file))
        inner = references.follow(one.inside("items"))
        if any(spot.text("format") == "binary" or spot.text("contentMediaType") for spot in (one, inner)):
            return True
    return not form.inside("properties").members()


def _parameter(one: DocumentNode, schema: dict[str, Any], arguments: dict[tuple[str, str], str]) -> Parameter:
    name, place = one.text("name") or "", _place(one)
    argument = arguments[place, name]
    description = _words(one, "description") or None
    kind = _own_kind(one)
    if kind is not None:
        schema = {**schema, "contentMediaType": kind}
        description = f"{description or name} ({kind}, as one string)"
    explode = one.members().get("explode")
    return Parameter(
        name=name,
        in_=cast("Place", place),
        required=one.is_set("required") or place == "path",
        schema=schema,
        description=_shortened(description) if description else None,
        style=cast("Style | None", one.text("style")),
        explode=explode if isinstance(explode, bool) else None,
        argument=None if argument == name else argument,
    )


def _body(body: _ChosenBody, schema: dict[str, Any], taken: set[str]) -> Body:
    """The properties of the body are arguments where that loses nothing; else the body is one argument."""
    merged = merged_object(schema)
    if merged is not None and spreads(merged):
        names = merged["properties"].keys()
        if all(map(is_legal_argument, names)) and not {name.casefold() for name in names} & {
            name.casefold() for name in taken
        }:
            return Body(content_type=body.content_type, schema=merged, required=body.is_required)
    argument = WHOLE_BODY
    while argument.casefold() in {name.casefold() for name in taken}:
        argument = f"request_{argument}"
    return Body(content_type=body.content_type, schema=schema, required=body.is_required, argument=argument)


_MERGED_WORDS: Final = frozenset(
    {"type", "properties", "required", "title", "description", "examples", "default", "deprecated", "allOf"}
)


def merged_object(schema: dict[str, Any]) -> dict[str, Any] | None:
    """The object schema with its `allOf` merged into one list of properties, or None where that would lose something."""
    definitions = schema.get("$defs", {})
    bare = {word: value for word, value in schema.items() if word != "$defs"}
    if "allOf" not in bare:
        return {**schema, "type": "object"} if "properties" in bare and "type" not in bare else schema
    properties: dict[str, Any] = {}
    required: dict[str, None] = {}
    if not _gather(bare, definitions, properties, required, 0):
        return None
    joined: dict[str, Any] = {word: bare[word] for word in ("title", "description") if word in bare}
    joined |= {"type": "object", "properties": properties}
    if required:
        joined["required"] = list(required)
    return {**joined, "$defs": definitions} if definitions else joined


def _gather(
    part: Any, definitions: dict[str, Any], properties: dict[str, Any], required: dict[str, None], level: int
) -> bool:
    if isinstance(part, dict) and set(part) == {"$ref"}:
        part = definitions.get(str(part["$ref"]).rpartition("/")[2])
    if not isinstance(part, dict) or level > 10 or not part.keys() <= _MERGED_WORDS:
        return False
    if part.get("type", "object") != "object":
        return False
    for name, schema in part.get("properties", {}).items():
        if properties.setdefault(name, schema) != schema:
            return False
    required.update(dict.fromkeys(part.get("required", ())))
    return all(_gather(one, definitions, properties, required, level + 1) for one in part.get("allOf", ()))


def _successes(operation: DocumentNode, references: References) -> Iterator[tuple[str, dict[str, DocumentNode]]]:
    responses = operation.inside("responses")
    codes = [str(code) for code in responses.members() if str(code).startswith("2")]
    for code in sorted(codes) or [code for code in ("default",) if code in responses.members()]:
        content = references.follow(responses.inside(code)).inside("content")
        yield code, {str(kind): content.inside(kind) for kind in content.members()}


def _identity(schema: DocumentNode) -> Any:
    reference = schema.members().get("$ref")
    return (schema.file, reference) if isinstance(reference, str) else id(schema.value)


def _is_text(media_type: str) -> bool:
    kind = essence(media_type)
    return kind.startswith("text/") or kind in _TEXT_TYPES or kind.endswith(("+xml", "+yaml"))


def _place(parameter: DocumentNode) -> str:
    return parameter.text("in") or ""


def _label(parameter: DocumentNode) -> str:
    return f"{_place(parameter)} {parameter.text('name')}"


def _schema_spot(parameter: DocumentNode) -> DocumentNode:
    return parameter.inside("schema") if _own_kind(parameter) is None else DocumentNode({"type": "string"})


def _own_kind(parameter: DocumentNode) -> str | None:
    """The media type of a parameter with `content`, such as JSON in a query; None for the others."""
    if parameter.inside("schema").value is not None:
        return None
    return next((str(kind) for kind in parameter.inside("content").members()), None)


def _words(spot: DocumentNode, name: str) -> str:
    return (spot.text(name) or "").strip()


def _shortened(text: str) -> str:
    """The text, cut at the end of a word: models pay for every word."""
    if len(text) <= DESCRIPTION_CHARS:
        return text
    head = text[: DESCRIPTION_CHARS - 1]
    end = max(head.rfind(" "), head.rfind("\n"), DESCRIPTION_CHARS // 2)
    return f"{head[:end].rstrip()}…"
