"""Builds one HTTP request from an endpoint and the arguments of a tool.

A plan is made once per endpoint, then pure: every value is encoded for its place, and the path is compared with its template, so that
a call can't reach another endpoint. Arguments that can't be sent are refused before anything is sent. Must not: add, drop or repair
a value. Enforces S4/R2 and requirement 3.5.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeVar
from urllib.parse import unquote

from msgspec import Raw, Struct

from pactgate.config.endpoint_checks import WHOLE_BODY, spreads
from pactgate.config.sections.endpoints import Body, Endpoint, Parameter
from pactgate.config.value_checks import PLACEHOLDER
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.upstreams.http.request_message import UnsafeHeaderError, header_line
from pactgate.upstreams.rest import body, parameter_styles
from pactgate.upstreams.rest.credentials import NONE_GIVEN, OperatorNames
from pactgate.upstreams.rest.parameter_styles import UnwritableError

_SAFE_PATH: Final = re.compile(r"/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*")
_SENDS_LENGTH: Final = frozenset({"POST", "PUT", "PATCH"})
_MAX_PATH_CHARS: Final = 16_384
_T = TypeVar("_T")


class HttpRequest(Struct, frozen=True):
    """`path` has the query in it, both encoded; `headers` is a block of encoded lines, without those of the connection."""

    method: str
    path: str
    headers: bytes
    body: bytes = b""


class ToolArgument(NamedTuple):
    """One argument of the tool."""

    name: str
    required: bool


class RequestPlan:
    """Builds the requests of one endpoint. `given` are sent by the gateway with each of them."""

    def __init__(self, endpoint: Endpoint, base_path: str = "", given: OperatorNames = NONE_GIVEN) -> None:
        self._endpoint = endpoint
        self._given = given
        first, *others = PLACEHOLDER.split(endpoint.path)
        base = base_path.rstrip("/")
        self._pieces = [base + first, *others]
        self._literals = [*base.split("/"), *_literals(endpoint.path)[1:]]
        by_place: dict[str, list[Parameter]] = {"path": [], "query": [], "header": [], "body": []}
        for parameter in endpoint.parameters:
            by_place[parameter.in_].append(parameter)
        in_path = {parameter.name: parameter for parameter in by_place["path"]}
        self._in_path = [in_path[name] for name in self._pieces[1::2]]
        self._in_query = by_place["query"]
        self._in_header = by_place["header"]
        self._in_body = {_argument(parameter): parameter.name for parameter in by_place["body"]}
        self._sends_empty_body = bool(self._in_body) and endpoint.method in _SENDS_LENGTH
        if endpoint.body is not None and is_spread(endpoint.body):
            self._in_body = {name: name for name in endpoint.body.schema["properties"]}
            self._sends_empty_body = endpoint.body.required
        self._known = frozenset(argument.name for argument in arguments_of(endpoint))
        self._required = tuple(argument.name for argument in arguments_of(endpoint) if argument.required)

    def build(self, arguments: Mapping[str, Raw]) -> HttpRequest:
        """The request of one call. Raises GatewayFailure for invalid arguments."""
        self._check_names(arguments)
        path = self._path(arguments)
        query = "&".join(filter(None, self._written(self._in_query, arguments, self._pairs)))
        headers = b"".join(self._written(self._in_header, arguments, _header))
        body = self._body(arguments)
        target = f"{path}?{query}" if query else path
        if len(target) > _MAX_PATH_CHARS:
            raise self._refusal("", f"make a path and query of more than {_MAX_PATH_CHARS} characters")
        if body is not None:
            headers += header_line("Content-Type", body.content_type)
        if body is None or not body.data:
            headers += b"Content-Length: 0\r\n" if self._endpoint.method in _SENDS_LENGTH else b""
            return HttpRequest(self._endpoint.method, target, headers)
        return HttpRequest(self._endpoint.method, target, headers, body.data)

    def _check_names(self, arguments: Mapping[str, Raw]) -> None:
        for name in self._required:
            if name not in arguments:
                raise self._refusal(name, "is missing")
        if not arguments.keys() <= self._known:
            name = next(name for name in arguments if name not in self._known)
            raise self._refusal(name, f"is unknown (allowed: {', '.join(sorted(self._known)) or 'none'})")

    def _path(self, arguments: Mapping[str, Raw]) -> str:
        if not self._in_path:
            return self._pieces[0]
        parts = list(self._pieces)
        parts[1::2] = self._written(self._in_path, arguments, _segment)
        path = "".join(parts)
        self._require_same_shape(path)
        return path

    def _written(
        self, parameters: list[Parameter], arguments: Mapping[str, Raw], write: Callable[[Parameter, Raw], _T]
    ) -> list[_T]:
        """The arguments of these parameters, each written for its place."""
        found: list[_T] = []
        for parameter in parameters:
            name = _argument(parameter)
            if name in arguments:
                try:
                    found.append(write(parameter, arguments[name]))
                except (UnwritableError, UnsafeHeaderError) as problem:
                    raise self._refusal(name, str(problem)) from None
        return found

    def _pairs(self, parameter: Parameter, held: Raw) -> str:
        style = parameter.style or "form"
        explode = style == "form" if parameter.explode is None else parameter.explode
        pairs = list(parameter_styles.query_pairs(held, parameter.name, style, explode))
        for pair in pairs:
            key = unquote(pair.partition("=")[0])
            if self._given.has("query", key):  # an object whose members become keys may name any
                raise UnwritableError(f"would send {key!r} a second time, which is set in the configuration")
        return "&".join(pairs)

    def _require_same_shape(self, path: str) -> None:
        """The last line of defence: as many segments as the template, its literals in place, and no dot segments."""
        segments = path.split("/")
        is_same = len(segments) == len(self._literals) and all(
            literal is None or literal == segment for literal, segment in zip(self._literals, segments, strict=True)
        )
        if not is_same or not _SAFE_PATH.fullmatch(path) or any(map(_is_dots, segments)):
            raise self._refusal("", "would lead to another path")

    def _body(self, arguments: Mapping[str, Raw]) -> body.EncodedBody | None:
        declared = self._endpoint.body
        try:
            if declared is not None and not is_spread(declared):
                held = arguments.get(declared.argument or WHOLE_BODY)
                return None if held is None else body.from_whole(declared.content_type, declared.schema, held)
            members = {wire: arguments[name] for name, wire in self._in_body.items() if name in arguments}
            if not members and not self._sends_empty_body:
                return None
            return body.from_members(declared.content_type if declared else "application/json", members)
        except UnwritableError as problem:
            raise self._refusal("", f"can't be sent: the body {problem}") from None

    def _refusal(self, name: str, why: str) -> GatewayFailure:
        subject = f"The argument {name!r}" if name else "The arguments"
        details = {"errors": [{"path": name, "pointer": f"/{name}" if name else "", "message": why}]}
        return GatewayFailure(
            Kind.INVALID_ARGUMENTS,
            f"{subject} of {self._endpoint.name} {why}.",
            operation="tools/call",
            details=details,
        )


def is_spread(body: Body) -> bool:
    """Whether the properties of the body are arguments."""
    return body.argument is None and spreads(body.schema)


def arguments_of(endpoint: Endpoint) -> list[ToolArgument]:
    """The arguments of the tool, in the order they are declared."""
    found = [ToolArgument(_argument(parameter), parameter.required) for parameter in endpoint.parameters]
    body = endpoint.body
    if body is not None and is_spread(body):
        required = frozenset(body.schema.get("required", ())) if body.required else frozenset()
        found.extend(ToolArgument(name, name in required) for name in body.schema["properties"])
    elif body is not None:
        found.append(ToolArgument(body.argument or WHOLE_BODY, body.required))
    return found


def _argument(parameter: Parameter) -> str:
    return parameter.argument or parameter.name


def _segment(parameter: Parameter, held: Raw) -> str:
    style = parameter.style or "simple"
    return parameter_styles.path_value(held, parameter.name, style, bool(parameter.explode))


def _header(parameter: Parameter, held: Raw) -> bytes:
    text = parameter_styles.header_value(held, bool(parameter.explode))
    return b"" if text is None else header_line(parameter.name, text)


def _literals(template: str) -> list[str | None]:
    """The segments of a path, None where an argument stands in one."""
    return [None if PLACEHOLDER.search(segment) else segment for segment in template.split("/")]


def _is_dots(segment: str) -> bool:
    return segment in (".", "..") or ("%" in segment and unquote(segment) in (".", ".."))
