"""An in-process server for a REST API: each endpoint is a tool, each call one HTTP request.

A call is sent once. A redirect is followed only where the operator allows it; each hop is checked like a first address, and
credentials never go to another origin. Must not: forward anything of the client but its arguments
and its trace context. Enforces S4/F2 and S4/NONGOALS.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urldefrag, urljoin, urlsplit

from msgspec import Raw, Struct

from pactgate.config.sections.endpoints import Endpoint
from pactgate.config.server_settings import ServerConfig
from pactgate.core.failures import GatewayFailure, Kind, Verdict
from pactgate.core.trace_context import BAGGAGE, TRACE_PARENT, TRACE_STATE
from pactgate.protocol import messages
from pactgate.protocol.messages import encode_json
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.http.egress import EgressPolicy, Origin, destination_refused, named_origins, origin_of
from pactgate.upstreams.http.proxy import network_of
from pactgate.upstreams.http.refusals import ConfiguredHeaders
from pactgate.upstreams.http.request_message import HttpTarget, header_line
from pactgate.upstreams.http.response import HttpResponse
from pactgate.upstreams.in_process import unknown_tool
from pactgate.upstreams.rest.credentials import Credential, headers_of, operator_names, query_of, with_query
from pactgate.upstreams.rest.request import HttpRequest, RequestPlan
from pactgate.upstreams.rest.response import ResponseOptions, ResponseReader
from pactgate.upstreams.rest.tool_definition import OPERATIONS, definition

_ACCEPTS: Final = {"json": "application/json", "text": "text/*, */*;q=0.5"}
_MAX_TRACE_CHARS: Final = 8192
_AGENT: Final = b"User-Agent: pactgate\r\n"
_FOLLOWED: Final = frozenset({301, 302, 303, 307, 308})
_SAFE: Final = frozenset({"GET", "HEAD"})


class RestApi(Struct, frozen=True):
    """Everything needed to call an API: its endpoints and base URL, the origins the operator named, and credentials by endpoint name."""

    endpoints: tuple[Endpoint, ...]
    base_url: str
    named_origins: frozenset[Origin]
    info: dict[str, Any]
    credentials: Mapping[str, tuple[Credential, ...]] = {}


def written_api(config: ServerConfig) -> RestApi:
    """The API whose endpoints the configuration has: the operator named every origin in it."""
    endpoints = config.endpoints or ()
    urls = [config.base_url, *(endpoint.base_url for endpoint in endpoints)]
    named = named_origins(urls, config.allowed_hosts)
    info = {"name": config.id, "version": "1"} | ({"title": config.name} if config.name else {})
    return RestApi(endpoints, config.base_url or "", named, info)


class _Tool(Struct, frozen=True, kw_only=True):
    """One endpoint, ready to be called. `own` are the headers of the operator, `query` is that of the credentials."""

    base_url: str
    plan: RequestPlan
    reader: ResponseReader
    own: bytes
    headers: bytes
    query: str


class RestServer:
    """The tools of one REST API."""

    def __init__(self, config: ServerConfig, api: RestApi, client: HttpClient, *, max_body_bytes: int) -> None:
        given = {name: value for name, value in config.headers.items() if name.casefold() != "accept"}
        accept = next((value for name, value in config.headers.items() if name.casefold() == "accept"), "")
        reading = ResponseOptions(
            config.id,
            allows_empty=config.empty_response == "allow",
            takes_text_for_json=config.non_json == "text",
            output_validation=config.output_validation,
            max_bytes=max_body_bytes,
        )
        self.info = api.info
        self._id = config.id
        self._client = client
        own = ConfiguredHeaders(config.id, given)
        self._has_credentials = bool(given or api.credentials)
        self._hops = config.follow_redirects
        self._max_body_bytes = max_body_bytes
        limit_s = config.connection_timeout_ms / 1000
        self._egress = EgressPolicy(config.id, api.named_origins, connect_timeout_s=limit_s, network=network_of(config))
        self._targets: dict[str, HttpTarget] = {}
        owns: dict[tuple[Credential, ...], ConfiguredHeaders] = {(): own}
        self._tools: dict[str, _Tool] = {}
        for endpoint in api.endpoints:
            needed = api.credentials.get(endpoint.name, ())
            if needed not in owns:
                secrets = [one.value for one in needed]
                owns[needed] = ConfiguredHeaders(config.id, given | headers_of(needed), secrets)
            base_url = endpoint.base_url or api.base_url
            parts = urlsplit(base_url)
            meta = encode_json({OPERATIONS: [{"kind": "network", "target": f"{endpoint.method} {parts.hostname}"}]})
            self._tools[endpoint.name] = _Tool(
                base_url=base_url,
                plan=RequestPlan(endpoint, parts.path, operator_names(given, needed)),
                reader=ResponseReader(endpoint, reading, owns[needed], meta),
                own=owns[needed].block,
                headers=header_line("Accept", accept or _ACCEPTS.get(endpoint.response, "*/*")),
                query=query_of(needed),
            )
        self._definitions = [
            definition(one, validation=one.output_validation or config.output_validation) for one in api.endpoints
        ]
        home = origin_of(api.base_url)
        self._strangers = frozenset(
            endpoint.name
            for endpoint in api.endpoints
            if endpoint.base_url and origin_of(endpoint.base_url) != home and not self._egress.names(endpoint.base_url)
        )
        """Tools of origins that only a document names: no credentials go there."""

    def definitions(self) -> list[Raw]:
        return self._definitions

    async def call(self, name: str, params: Mapping[str, Raw]) -> bytes:
        tool = self._tools.get(name)
        if tool is None:
            raise unknown_tool(self._id, name)
        if name in self._strangers and self._has_credentials:
            raise destination_refused(
                self._id, "only the document names it, and the credentials of this server are not for it"
            )
        try:
            return await self._exchange(tool, params.get("arguments"), trace_headers(params.get("_meta")))
        except GatewayFailure as failure:
            failure.tool = failure.tool or f"{self._id}.{name}"
            raise

    async def close(self) -> None:
        for target in self._targets.values():
            self._client.abandon(target)

    async def _exchange(self, tool: _Tool, arguments: Raw | None, trace: bytes) -> bytes:
        request = tool.plan.build(messages.members(bytes(arguments)) if arguments is not None else {})
        target = self._target(tool.base_url)
        headers, tail = (
            tool.own + tool.headers + request.headers + trace,
            target.tail_of(with_query(request.path, tool.query)),
        )
        response = await self._send(request.method, target, headers, request.body, tail)
        if self._hops and response.status in _FOLLOWED:
            try:
                response = await self._follow(tool, request, target, response)
            except GatewayFailure as failure:
                failure.verdict = Verdict.MAY_HAVE_RUN  # the first request was answered
                raise
        return tool.reader.read(response.status, response.headers, response.body)

    async def _send(self, method: str, target: HttpTarget, headers: bytes, body: bytes, tail: bytes) -> HttpResponse:
        return await self._client.request(
            method.encode(), target, headers, body, tail=tail, max_body_bytes=self._max_body_bytes, takes_any=True
        )

    def _target(self, base_url: str) -> HttpTarget:
        target = self._targets.get(base_url)
        if target is None:
            target = self._targets[base_url] = self._egress.target(base_url)
        return target

    async def _follow(
        self, tool: _Tool, request: HttpRequest, start: HttpTarget, response: HttpResponse
    ) -> HttpResponse:
        """The response at the end of the redirects; itself a redirect where there are more than allowed."""
        method, body, url = request.method, request.body, start.origin + request.path
        for _ in range(self._hops):
            if response.status not in _FOLLOWED:
                break
            if response.status == 303:
                method, body = "GET" if method != "HEAD" else method, b""
            url = _location(self._id, url, response)
            target = self._hop(url, start, method, response)
            headers = tool.headers
            if target.key == start.key:
                headers = tool.own + headers + (request.headers if method == request.method else b"")
            else:
                headers = _AGENT + headers
            response = await self._send(method, target, headers, body, target.tail)
        return response

    def _hop(self, url: str, start: HttpTarget, method: str, response: HttpResponse) -> HttpTarget:
        target = self._egress.target(url)
        if start.is_tls and not target.is_tls:
            raise _unfollowed(self._id, response, "it leads from https to http")
        if method not in _SAFE and (target.key != start.key or response.status in (301, 302)):
            raise _unfollowed(self._id, response, f"a {method} can't be sent a second time to another place")
        return target


def trace_headers(meta: Raw | None) -> bytes:
    """The trace context of a call as header lines. What can't stand in a header is left out."""
    if meta is None or TRACE_PARENT.encode() not in bytes(meta):
        return b""
    lines = b""
    members = messages.members(bytes(meta))
    for name in (TRACE_PARENT, TRACE_STATE, BAGGAGE):
        value = messages.value(members[name]) if name in members else None
        if isinstance(value, str) and len(value) <= _MAX_TRACE_CHARS and value.isascii() and value.isprintable():
            lines += header_line(name, value)
    return lines


def _location(server: str, url: str, response: HttpResponse) -> str:
    where = response.header(b"location")
    if not where or not where.isprintable() or "\\" in where:
        raise _unfollowed(server, response, "it has no usable Location")
    try:
        return urldefrag(urljoin(url, where)).url
    except ValueError:
        raise destination_refused(server, "its Location can't be read") from None


def _unfollowed(server: str, response: HttpResponse, why: str) -> GatewayFailure:
    return GatewayFailure(
        Kind.HTTP_STATUS,
        f"{server} answered with a redirect (HTTP {response.status}) that is not followed: {why}.",
        server=server,
        details={"status": response.status},
    )
