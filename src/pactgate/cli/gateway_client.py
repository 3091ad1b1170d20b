"""A blocking client of the running gateway: its read-only API, and `tools/call` over modern MCP. Time and size are bounded.

Closing the connection cancels the call, so a timeout and Ctrl-C reach the upstream. Must not: print anything.
"""

from __future__ import annotations

import json
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

from pactgate import __version__
from pactgate.cli.errors import CommandError
from pactgate.protocol.versions import LATEST_MODERN

DEFAULT_URL: Final = "http://127.0.0.1:7411"
UNIX: Final = "unix:"
"""Begins the address of a Unix socket."""
MAX_ANSWER_BYTES: Final = 64 * 1024 * 1024
_CONNECT_S: Final = 5.0
_API_S: Final = 10.0
_LONGEST_CALL_S: Final = 3600.0
_PREFIX: Final = "io.modelcontextprotocol/"
_PROGRESS_TOKEN: Final = 1
_PEM_END: Final = "-----END CERTIFICATE-----"

OnProgress = Callable[[dict[str, Any]], None]


class GatewayClientError(CommandError):
    """The gateway can't be reached, or its response can't be used. The exit code is 1; 2 for an invalid address."""

    def __init__(self, message: str, hint: str = "", *, exit_code: int = 1) -> None:
        super().__init__(message, hint, exit_code=exit_code)


class GatewayClient:
    """One gateway, by its address: a URL, or `unix:PATH`. Every request opens a connection of its own.

    `ca_file` are authorities to trust beside those of the system; `certificate` is the one that this gateway has, whatever its names.
    """

    def __init__(
        self, url: str, token: str | None = None, *, ca_file: str | None = None, certificate: str | None = None
    ) -> None:
        self._socket = url.removeprefix(UNIX) if url.startswith(UNIX) else None
        parts = _split(url if self._socket is None else "http://localhost")
        self.url = url if self._socket is not None else f"{parts.scheme}://{parts.netloc}"
        self._is_https = parts.scheme == "https"
        self._host, self._port = parts.hostname or "", parts.port
        self._ca_file, self._certificate = ca_file, certificate
        self._headers = {"User-Agent": f"pactgate/{__version__}", "Accept": "application/json, text/event-stream"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"

    def get(self, path: str) -> Any:
        """The JSON of one path of the read-only API."""
        with self._request("GET", path, None, self._headers, _API_S) as (response, chunks):
            body = b"".join(chunks)
        return self._json(response, body, path)

    def rows(self, name: str, *, wanted: str = "") -> list[dict[str, Any]]:
        """The objects of a list of the API, as `/api/tools`. `wanted` is a filter of calls."""
        from urllib.parse import quote

        page = self.get(f"/api/{name}{f'?filter={quote(wanted)}' if wanted else ''}")
        found = page.get(name) if isinstance(page, dict) else None
        return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []

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
        """The JSON-RPC response to one `tools/call`, at the endpoint of `server` where it is given."""
        params = {"name": name, "arguments": arguments}
        return self.ask(
            "tools/call",
            params,
            name=name,
            server=server,
            mirrored=mirrored,
            timeout_s=timeout_s,
            on_progress=on_progress,
        )

    def ask(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        name: str | None = None,
        server: str | None = None,
        mirrored: Iterable[tuple[str, str]] = (),
        timeout_s: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> dict[str, Any]:
        """The JSON-RPC response to one request. `name` is the tool, prompt or URI that it is about."""
        meta: dict[str, Any] = {
            _PREFIX + "protocolVersion": LATEST_MODERN,
            _PREFIX + "clientCapabilities": {},
            _PREFIX + "clientInfo": {"name": "pactgate-cli", "version": __version__},
        }
        if on_progress is not None:
            meta["progressToken"] = _PROGRESS_TOKEN
        from pactgate.protocol.headers import encode_value

        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
        headers = {
            **self._headers,
            "Content-Type": "application/json",
            "MCP-Protocol-Version": LATEST_MODERN,
            "Mcp-Method": method,
            **({} if name is None else {"Mcp-Name": encode_value(name)}),
            **dict(mirrored),
        }
        path = "/mcp" if server is None else f"/mcp/{quote(server, safe='')}"
        body = json.dumps(message).encode()
        with self._request("POST", path, body, headers, timeout_s or _LONGEST_CALL_S) as (response, chunks):
            if response.headers.get_content_type() == "text/event-stream":
                answer = _read_stream(chunks, on_progress)
            else:
                answer = self._json(response, b"".join(chunks), path)
        if not isinstance(answer, dict) or not ("result" in answer or "error" in answer):
            raise GatewayClientError(f"The response of {self.url} is not MCP.", "Is it a Pactgate gateway?")
        return answer

    @contextmanager
    def _request(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str], limit_s: float
    ) -> Iterator[tuple[HTTPResponse, Iterator[bytes]]]:
        """One response and its body. Errors of the socket and of http.client become GatewayClientError."""
        connection = self._connection()
        deadline = time.monotonic() + limit_s
        try:
            connection.connect()
        except ssl.SSLError as problem:
            why = problem.verify_message if isinstance(problem, ssl.SSLCertVerificationError) else problem.reason
            hint = "Name the file of its certificate authority with --ca-file or in SSL_CERT_FILE."
            raise GatewayClientError(f"No TLS connection with {self.url}: {why}.", hint) from None
        except OSError:
            hint = "Start a gateway with `pactgate serve`, or give its address with --url."
            raise GatewayClientError(f"Nothing answers at {self.url}.", hint) from None
        channel = connection.sock
        try:
            _limit(channel, deadline)
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            yield response, _chunks(response, channel, deadline)
        except TimeoutError:
            message = f"No answer within {limit_s * 1000:.0f} ms; the call was cancelled."
            hint = "The tool may have run. --timeout-ms sets how long to wait."
            raise GatewayClientError(message, hint) from None
        except (OSError, HTTPException) as error:
            message = f"The connection to {self.url} was lost: {error or type(error).__name__}."
            raise GatewayClientError(message) from None
        finally:
            connection.close()

    def _connection(self) -> HTTPConnection:
        if self._socket is not None:
            return _LocalConnection(self._socket)
        if not self._is_https:
            return HTTPConnection(self._host, self._port, timeout=_CONNECT_S)
        context = _tls_context(self._ca_file, None if self._ca_file else self._certificate)
        return HTTPSConnection(self._host, self._port, timeout=_CONNECT_S, context=context)

    def _json(self, response: HTTPResponse, body: bytes, path: str) -> Any:
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):
            value = None
        # A JSON-RPC error is a response; any other status that is not 2xx is an error.
        if response.status >= 300 and not (isinstance(value, dict) and isinstance(value.get("error"), dict)):
            raise _status_error(self.url, path, response.status, has_token="Authorization" in self._headers)
        if response.status in (401, 403):
            raise _status_error(self.url, path, response.status, has_token="Authorization" in self._headers)
        if value is None:
            raise GatewayClientError(f"The response of {self.url}{path} is not JSON.", "Is it a Pactgate gateway?")
        return value


class _LocalConnection(HTTPConnection):
    """A connection to a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_CONNECT_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(_CONNECT_S)
        self.sock.connect(self._path)


def _tls_context(ca_file: str | None, certificate: str | None) -> ssl.SSLContext:
    """Trust the authorities of the system and of `ca_file`; or one certificate alone, which may be for any name."""
    try:
        if certificate is None:
            context = ssl.create_default_context()
            if ca_file is not None:
                context.load_verify_locations(ca_file)
            return context
        text = Path(certificate).read_text(encoding="ascii")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=text[: text.index(_PEM_END) + len(_PEM_END)])  # without its chain
    except (OSError, ValueError) as problem:
        name = ca_file or certificate
        raise GatewayClientError(f"The certificate in {name} can't be read: {problem}.", exit_code=2) from None
    context.check_hostname = False
    context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    return context


def _chunks(response: HTTPResponse, channel: socket.socket, deadline: float) -> Iterator[bytes]:
    taken = 0
    while True:
        _limit(channel, deadline)
        chunk = response.read1(65536)
        if not chunk:
            return
        taken += len(chunk)
        if taken > MAX_ANSWER_BYTES:
            raise GatewayClientError(f"The response is longer than {MAX_ANSWER_BYTES} bytes.")
        yield chunk


def _limit(channel: socket.socket, deadline: float) -> None:
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    if channel.fileno() >= 0:
        channel.settimeout(left_s)


def _read_stream(chunks: Iterable[bytes], on_progress: OnProgress | None) -> Any:
    """The response at the end of an event stream. Progress notifications before it are passed on."""
    from pactgate.protocol.framing import EventDecoder, OversizedError

    events = EventDecoder(MAX_ANSWER_BYTES)
    try:
        for chunk in chunks:
            for event in events.feed(chunk):
                message = json.loads(event.data) if event.data else {}
                if "id" in message:
                    return message
                if on_progress is not None and message.get("method") == "notifications/progress":
                    on_progress(message.get("params", {}))
    except (ValueError, RecursionError, OversizedError):
        raise GatewayClientError("The event stream of the gateway is invalid.") from None
    raise GatewayClientError("The gateway ended the stream without a response.", "The tool may have run.")


def address_of(host: str, port: int, *, has_tls: bool = False) -> str:
    """The URL of a gateway on this machine that listens on that host."""
    near = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"{'https' if has_tls else 'http'}://{f'[{near}]' if ':' in near else near}:{port}"


def _split(url: str) -> Any:
    text = url if "://" in url else f"http://{url}"
    try:
        parts = urlsplit(text)
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        parts, has_port = urlsplit(""), False
    if parts.scheme not in ("http", "https") or not parts.hostname or not has_port or parts.username:
        raise GatewayClientError(f"{url!r} is not an address.", f"An address looks like {DEFAULT_URL}.", exit_code=2)
    return parts


def _status_error(url: str, path: str, status: int, *, has_token: bool) -> GatewayClientError:
    if status == 401:
        if has_token:
            return GatewayClientError(f"{url} did not accept the token.", "Has it expired, or was it revoked?")
        return GatewayClientError(f"{url} needs a token.", "Give it with --token or in PACTGATE_TOKEN.")
    if status == 403:
        return GatewayClientError(f"{url} refuses access.", "Is the token the right one?")
    if status == 404:
        return GatewayClientError(
            f"{url} has no {path}.", "Is it a Pactgate gateway? `pactgate servers` lists its servers."
        )
    return GatewayClientError(f"{url} answered {path} with HTTP {status}.")
