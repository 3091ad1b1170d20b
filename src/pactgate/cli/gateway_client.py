"""A caller of the running gateway: its read-only API, and `tools/call` as a modern MCP client. Blocking, small, bounded.

Closing the connection cancels the call, so giving up, a timeout and Ctrl-C all reach the upstream. Must not: print anything.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, Final
from urllib.parse import quote, urlsplit

from pactgate import __version__
from pactgate.protocol.versions import LATEST_MODERN

DEFAULT_URL: Final = "http://127.0.0.1:7411"
MAX_ANSWER_BYTES: Final = 64 * 1024 * 1024
_CONNECT_S: Final = 5.0
_API_S: Final = 10.0
_LONGEST_CALL_S: Final = 3600.0
_PREFIX: Final = "io.modelcontextprotocol/"
_PROGRESS_TOKEN: Final = 1

OnProgress = Callable[[dict[str, Any]], None]


class GatewayProblem(Exception):  # noqa: N818 - it names what happened
    """The gateway can't be talked to; `hint` says what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class BadAddressError(GatewayProblem):
    """The URL given is not one of a gateway: a wrong invocation."""


class GatewayClient:
    def __init__(self, url: str, token: str | None = None) -> None:
        parts = _split(url)
        self.url = f"{parts.scheme}://{parts.netloc}"
        self._is_https = parts.scheme == "https"
        self._host, self._port = parts.hostname or "", parts.port
        self._headers = {"User-Agent": f"pactgate/{__version__}", "Accept": "application/json, text/event-stream"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"

    def get(self, path: str) -> Any:
        """The JSON of a page of the read-only API."""
        with _Exchange(self._connection(), self.url, _API_S) as exchange:
            response = exchange.send("GET", path, None, self._headers)
            body = exchange.read(response)
        return self._json(response, body, path)

    def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        server: str | None = None,
        mirrored: Iterable[tuple[str, str]] = (),
        timeout_s: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> dict[str, Any]:
        """The JSON-RPC answer of one `tools/call`. With `server`, at that server's own endpoint."""
        meta: dict[str, Any] = {
            _PREFIX + "protocolVersion": LATEST_MODERN,
            _PREFIX + "clientCapabilities": {},
            _PREFIX + "clientInfo": {"name": "pactgate-cli", "version": __version__},
        }
        if on_progress is not None:
            meta["progressToken"] = _PROGRESS_TOKEN
        from pactgate.protocol.headers import encode_value

        params = {"name": name, "arguments": arguments, "_meta": meta}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {
            **self._headers,
            "Content-Type": "application/json",
            "MCP-Protocol-Version": LATEST_MODERN,
            "Mcp-Method": "tools/call",
            "Mcp-Name": encode_value(name),
            **dict(mirrored),
        }
        path = "/mcp" if server is None else f"/mcp/{quote(server, safe='')}"
        with _Exchange(self._connection(), self.url, timeout_s or _LONGEST_CALL_S) as exchange:
            response = exchange.send("POST", path, json.dumps(message).encode(), headers)
            if response.headers.get_content_type() == "text/event-stream":
                answer = _read_stream(exchange.chunks(response), on_progress)
            else:
                answer = self._json(response, exchange.read(response), path)
        if not isinstance(answer, dict) or not ("result" in answer or "error" in answer):
            raise GatewayProblem(f"The answer of {self.url} is not one of MCP.", "Is it a Pactgate gateway?")
        return answer

    def _connection(self) -> HTTPConnection:
        kind = HTTPSConnection if self._is_https else HTTPConnection
        return kind(self._host, self._port, timeout=_CONNECT_S)

    def _json(self, response: HTTPResponse, body: bytes, path: str) -> Any:
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):
            value = None
        # A refusal in the protocol's own words is an answer; everything else that is not 2xx is a problem.
        if response.status >= 300 and not (isinstance(value, dict) and isinstance(value.get("error"), dict)):
            raise _refusal(self.url, path, response.status)
        if response.status in (401, 403):
            raise _refusal(self.url, path, response.status)
        if value is None:
            raise GatewayProblem(f"What answers at {self.url}{path} does not speak JSON.", "Is it a Pactgate gateway?")
        return value


class _Exchange:
    """One request and its answer under one deadline; what http.client and the socket raise leaves as GatewayProblem."""

    def __init__(self, connection: HTTPConnection, url: str, limit_s: float) -> None:
        self._connection = connection
        self._url = url
        self._limit_s = limit_s
        self._deadline = time.monotonic() + limit_s
        self._socket: socket.socket | None = None

    def __enter__(self) -> _Exchange:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._connection.close()
        if isinstance(error, TimeoutError):
            if self._socket is None:
                raise _nothing_answers(self._url) from None
            raise GatewayProblem(
                f"No answer within {self._limit_s * 1000:.0f} ms; the call was cancelled.",
                "It may have run all the same. --timeout-ms sets how long to wait.",
            ) from None
        if isinstance(error, OSError) and self._socket is None:
            raise _nothing_answers(self._url) from None
        if isinstance(error, OSError | HTTPException):
            raise GatewayProblem(f"The connection to {self._url} broke: {error or type(error).__name__}.") from None

    def send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> HTTPResponse:
        self._connection.connect()
        self._socket = self._connection.sock
        self._tick()
        self._connection.request(method, path, body, dict(headers))
        return self._connection.getresponse()

    def chunks(self, response: HTTPResponse) -> Iterable[bytes]:
        taken = 0
        while True:
            self._tick()
            chunk = response.read1(65536)
            if not chunk:
                return
            taken += len(chunk)
            if taken > MAX_ANSWER_BYTES:
                raise GatewayProblem(f"The answer is longer than {MAX_ANSWER_BYTES} bytes.")
            yield chunk

    def read(self, response: HTTPResponse) -> bytes:
        return b"".join(self.chunks(response))

    def _tick(self) -> None:
        left_s = self._deadline - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        assert self._socket is not None
        if self._socket.fileno() >= 0:
            self._socket.settimeout(left_s)


def _read_stream(chunks: Iterable[bytes], on_progress: OnProgress | None) -> Any:
    """The answer at the end of an event stream; what comes before it is progress, or not for us."""
    from pactgate.protocol.framing import EventDecoder, Oversized

    events = EventDecoder(MAX_ANSWER_BYTES)
    try:
        for chunk in chunks:
            for event in events.feed(chunk):
                message = json.loads(event.data) if event.data else {}
                if "id" in message:
                    return message
                if on_progress is not None and message.get("method") == "notifications/progress":
                    on_progress(message.get("params", {}))
    except (ValueError, RecursionError, Oversized):
        raise GatewayProblem("The gateway's event stream can't be read.") from None
    raise GatewayProblem("The gateway ended the stream without an answer.", "The call may have run all the same.")


def address_of(host: str, port: int) -> str:
    """Where to find, from this machine, a gateway that listens there."""
    near = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{near}]:{port}" if ":" in near else f"http://{near}:{port}"


def _split(url: str) -> Any:
    text = url if "://" in url else f"http://{url}"
    try:
        parts = urlsplit(text)
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        parts, has_port = urlsplit(""), False
    if parts.scheme not in ("http", "https") or not parts.hostname or not has_port or parts.username:
        raise BadAddressError(f"{url!r} is not the address of a gateway.", f"It looks like {DEFAULT_URL}.")
    return parts


def _nothing_answers(url: str) -> GatewayProblem:
    return GatewayProblem(f"Nothing answers at {url}.", "Start one with `pactgate serve`, or name another with --url.")


def _refusal(url: str, path: str, status: int) -> GatewayProblem:
    if status == 401:
        return GatewayProblem(f"{url} wants a token.", "Give it with --token or in PACTGATE_TOKEN.")
    if status == 403:
        return GatewayProblem(f"{url} refuses this caller.", "Is the token the right one?")
    if status == 404:
        return GatewayProblem(
            f"{url} has no {path}.", "Is it a Pactgate gateway? `pactgate servers` lists its servers."
        )
    return GatewayProblem(f"{url} answered {path} with HTTP {status}.")
