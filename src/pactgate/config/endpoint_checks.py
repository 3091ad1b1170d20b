"""Checks the endpoints of one server: unique names, parameters that match the path, valid schemas.

Takes values that have passed `validate`; reports every problem with its position. Must not: call anything.
Enforces S4/R2 (two endpoints with one name), S4/UNDECIDED-2 (path parameters, schemas of own tools).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pactgate.config.problems import ConfigFindings, Path, ValueFault, show
from pactgate.config.value_checks import PLACEHOLDER, check_header_name

WHOLE_BODY: Final = "body"
"""The argument that is the whole body, where its properties can't be arguments."""
STYLES: Final[dict[str, tuple[str, ...]]] = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "body": (),
}
_CREDENTIAL_HEADERS: Final = frozenset({"authorization", "cookie", "proxy-authorization"})
_WRITTEN_HEADERS: Final = frozenset({"accept", "accept-encoding", "content-encoding", "content-type", "user-agent"})
_PLAIN_BODY_WORDS: Final = frozenset(
    {"type", "properties", "required", "title", "description", "example", "examples", "default", "$defs", "deprecated"}
)


def check_endpoints(entry: dict[str, Any], headers: dict[str, str], path: Path, found: ConfigFindings) -> None:
    """Every problem of the endpoints of one entry."""
    seen: dict[str, int] = {}
    for number, endpoint in enumerate(entry["endpoints"]):
        where: Path = (*path, number)
        for key, fault in _faults(endpoint, headers):
            found.add((*where, *key), *fault)
        name = endpoint.get("name", "")
        if name in seen:
            found.add(where, f"There are two endpoints {show(name)}.", "Give each its own name.")
        seen.setdefault(name, number)
        if not endpoint.get("baseUrl") and not entry.get("baseUrl"):
            found.add(where, "The endpoint has no baseUrl.", "Set baseUrl of the endpoint or of the server.")


def spreads(schema: dict[str, Any]) -> bool:
    """Whether the properties of a body can be arguments without losing a constraint of its schema."""
    closed = schema.get("additionalProperties") in (None, False)
    words = schema.keys() - {"additionalProperties"}
    return schema.get("type") == "object" and bool(schema.get("properties")) and closed and words <= _PLAIN_BODY_WORDS


def arguments_of(endpoint: dict[str, Any]) -> Iterator[str]:
    """The names of the tool's arguments, in order, duplicates included."""
    for parameter in endpoint.get("parameters", ()):
        yield parameter.get("argument") or parameter.get("name", "")
    body = endpoint.get("body")
    if body is None:
        return
    schema = body.get("schema", {})
    if body.get("argument") is None and spreads(schema):
        yield from schema["properties"]
    else:
        yield body.get("argument") or WHOLE_BODY


_Faults = Iterator[tuple[Path, ValueFault]]


def _faults(endpoint: dict[str, Any], headers: dict[str, str]) -> _Faults:
    yield from _path_faults(endpoint)
    taken = {name.casefold() for name in headers}
    for number, parameter in enumerate(endpoint.get("parameters", ())):
        for fault in _parameter_faults(parameter, taken):
            yield ("parameters", number), fault
    yield from _argument_faults(endpoint)
    yield from _body_faults(endpoint)
    yield from _response_faults(endpoint)
    for keys, schema in _schemas(endpoint):
        if (misfit := _schema_fault(schema)) is not None:
            yield keys, misfit


def _path_faults(endpoint: dict[str, Any]) -> _Faults:
    wanted = set(PLACEHOLDER.findall(endpoint.get("path", "")))
    given = {one.get("name") for one in endpoint.get("parameters", ()) if one.get("in") == "path"}
    for name in sorted(wanted - given):
        yield ("path",), ValueFault(f"There is no path parameter {show(name)}.", "Add it to parameters.")
    for name in sorted(given - wanted - {None}):
        yield ("path",), ValueFault(f"The path has no {{{name}}}.", "Write it into the path, or remove the parameter.")


def _parameter_faults(parameter: dict[str, Any], taken: set[str]) -> Iterator[ValueFault]:
    place, name, style = parameter.get("in", "query"), parameter.get("name", ""), parameter.get("style")
    if place == "path" and not parameter.get("required"):
        yield ValueFault(f"The path parameter {show(name)} is not required.", "Set required to true.")
    if style is not None and style not in STYLES[place]:
        known = ", ".join(STYLES[place]) or "none"
        yield ValueFault(f"The style {style} does not exist in the {place}.", f"Styles there: {known}.")
    if place == "header":
        folded = name.casefold()
        if folded in _CREDENTIAL_HEADERS or folded in taken:
            yield ValueFault(f"The header {show(name)} can't be an argument.", "Set it under headers.")
        elif folded in _WRITTEN_HEADERS:
            yield ValueFault(f"The header {show(name)} is written by the gateway itself.", "Remove it.")
        elif (fault := check_header_name(name)) is not None:
            yield fault


def _argument_faults(endpoint: dict[str, Any]) -> _Faults:
    seen: set[str] = set()
    for name in arguments_of(endpoint):
        if name in seen:
            yield (
                (),
                ValueFault(f"Two arguments are called {show(name)}.", "Give one of them another name with argument."),
            )
        seen.add(name)
    required = set((endpoint.get("body") or {}).get("schema", {}).get("required", ()))
    for number, example in enumerate(endpoint.get("examples", ())):
        must = {one.get("argument") or one.get("name") for one in endpoint.get("parameters", ()) if one.get("required")}
        missing = sorted(str(name) for name in (must | (required & seen)) - example.keys())
        unknown = sorted(example.keys() - seen)
        if missing or unknown:
            what = f"lacks {', '.join(missing)}" if missing else f"has {', '.join(unknown)}, an unknown argument"
            yield ("examples", number), ValueFault(f"This example {what}.", "Correct it, because models copy examples.")


def _body_faults(endpoint: dict[str, Any]) -> _Faults:
    parts = [one for one in endpoint.get("parameters", ()) if one.get("in") == "body"]
    if parts and endpoint.get("body") is not None:
        yield ("body",), ValueFault("There are a body and parameters in the body.", "Keep one of them.")


def _response_faults(endpoint: dict[str, Any]) -> _Faults:
    response = endpoint.get("response", "json")
    if endpoint.get("method") == "HEAD" and response != "none":
        yield ("response",), ValueFault("A response to HEAD has no content.", 'Set response to "none".')
    for key in ("outputSchema", "expect"):
        if response != "json" and endpoint.get(key) is not None:
            yield (key,), ValueFault(f"{key} is about JSON, and the response is {response}.", f"Remove {key}.")


def _schemas(endpoint: dict[str, Any]) -> Iterator[tuple[Path, dict[str, Any]]]:
    for number, parameter in enumerate(endpoint.get("parameters", ())):
        yield ("parameters", number, "schema"), parameter.get("schema", {})
    if endpoint.get("body") is not None:
        yield ("body", "schema"), endpoint["body"].get("schema", {})
    if endpoint.get("outputSchema") is not None:
        yield ("outputSchema",), endpoint["outputSchema"]


def _schema_fault(schema: dict[str, Any]) -> ValueFault | None:
    if not schema:
        return None
    # Imported here: most configurations have no schemas of their own.
    import jsonschema_rs

    try:
        jsonschema_rs.meta.validate(schema)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as problem:
        return ValueFault("This is not a valid JSON Schema.", str(problem).partition("\n")[0][:200])
    return None
