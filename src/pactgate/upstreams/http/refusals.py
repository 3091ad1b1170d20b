"""Parts that both HTTP transports share: the configured headers of a server, and failures for HTTP statuses.

Must not: let a credential, an unbounded text or a control character from a server into a message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from pactgate.core.display import flat
from pactgate.core.failures import ErrorCode, GatewayFailure, Kind, Verdict
from pactgate.core.masking import Mask
from pactgate.upstreams.http.request_message import HttpTarget, UnsafeHeaderError, header_block, header_line
from pactgate.upstreams.http.response import HttpResponse

ACCEPT_BOTH: Final = b"Accept: application/json, text/event-stream\r\n"
ACCEPT_EVENTS: Final = b"Accept: text/event-stream\r\n"
JSON_CONTENT: Final = b"Content-Type: application/json\r\n"

_NO_CREDENTIALS: Final = frozenset({"accept", "accept-language", "user-agent"})
_RESERVED: Final = frozenset(
    {
        *("accept", "accept-encoding", "content-encoding", "content-length", "content-type", "host"),
        *("connection", "expect", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"),
        *("last-event-id", "mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id"),
    }
)
REFUSED_UNREAD: Final = frozenset({400, 401, 403, 404, 405, 406, 411, 413, 414, 415, 421, 429, 431})
"""Statuses that say that the server did not act on the request."""
_MAX_RETRY_AFTER_MS: Final = 3_600_000
_SNIPPET_CHARS: Final = 200
_MIN_SECRET_CHARS: Final = 6


class ConfiguredHeaders:
    """The headers an operator configured for one server, encoded once. Keeps their values out of messages."""

    def __init__(self, server: str, headers: Mapping[str, str], also_secret: Iterable[str] = ()) -> None:
        taken = sorted(name for name in headers if name.lower() in _RESERVED or name.lower().startswith("mcp-param-"))
        if taken:
            raise _unusable(server, f"{', '.join(taken)} is set by the gateway itself; remove it")
        self.has_credentials = any(name.lower() not in _NO_CREDENTIALS for name in headers)
        """Whether the operator configured any header that may be one."""
        self.is_signed_in = False
        given = dict(headers)
        if not any(name.lower() == "user-agent" for name in headers):
            given["User-Agent"] = "pactgate"
        try:
            self._configured = self.block = header_block(given.items())
        except UnsafeHeaderError as problem:
            raise _unusable(server, str(problem)) from problem
        parts = (part for value in headers.values() for part in (value, value.rpartition(" ")[2]))
        self._secrets = [part for part in (*parts, *also_secret) if len(part) >= _MIN_SECRET_CHARS]
        self.mask = Mask(self._secrets)
        """Masks configured header values, because a server may repeat them."""

    def sign_in(self, token: str) -> None:
        """Send this token from now on, instead of the one before; an empty one: none."""
        self.is_signed_in = bool(token)
        self.block = self._configured + (header_line("Authorization", f"Bearer {token}") if token else b"")
        self.mask.know_tokens([token] if token else [], instead=True)

    def quote(self, body: bytes) -> str:
        """The beginning of a response body for a message: one line, printable, configured header values masked."""
        return flat(self.mask(body[: _SNIPPET_CHARS * 8].decode("utf-8", "replace")), _SNIPPET_CHARS)


def _unusable(server: str, why: str) -> GatewayFailure:
    return GatewayFailure(
        Kind.INVALID_CONFIG,
        f"The `headers` of {server} can't be used: {why}.",
        server=server,
        details={"permanent": True},
    )


def invalid_response(target: HttpTarget, what: str, said: str = "") -> GatewayFailure:
    """The failure for a response that is no MCP message. `said` quotes it."""
    public = f"{target} {what}."
    message = f"{target} {what}: {said!r}." if said else public
    return GatewayFailure(Kind.INVALID_FRAME, message, server=target.server, public=public)


def status_failure(target: HttpTarget, response: HttpResponse, own: ConfiguredHeaders) -> GatewayFailure:
    """The failure for a status that is no success, with a hint what to do."""
    status = response.status
    details: dict[str, Any] = {"status": status}
    code: ErrorCode | None = None
    said = own.quote(response.body)
    public = f"{target} answered HTTP {status}."
    message = f"{target} answered HTTP {status}: {said}." if said else public
    if status in (401, 403):
        details["permanent"] = True
        message = public = _credentials_refused(target, response, own)
    elif status == 429:
        code = ErrorCode.RATE_LIMITED
    elif status == 503:
        code = ErrorCode.SERVICE_UNAVAILABLE
    return GatewayFailure(
        Kind.HTTP_STATUS,
        message,
        server=target.server,
        code=code,
        is_transient=False if status in (401, 403) else None,  # the operator has to act first
        verdict=Verdict.DID_NOT_RUN if status in REFUSED_UNREAD else None,
        retry_after_ms=retry_after_ms(response.header(b"retry-after")) if code is not None else None,
        details=details,
        public=public,
    )


def _credentials_refused(target: HttpTarget, response: HttpResponse, own: ConfiguredHeaders) -> str:
    """What to do about a 401 or 403 that no sign-in mends."""
    server, status = target.server, response.status
    if own.has_credentials:
        return (
            f"{target} did not accept our credentials (HTTP {status}). Check `headers` of {server}: wrong or expired?"
        )
    if own.is_signed_in:
        return (
            f"{target} does not allow this to whoever is signed in (HTTP {status}). `pactgate auth status` says more."
        )
    return f"{target} wants credentials (HTTP {status}). Put them into `headers` of {server}."


def retry_after_ms(value: str) -> int | None:
    """`Retry-After` in seconds or as a date, at most an hour; None if it is absent or unreadable."""
    value = value.strip()
    if value.isascii() and value.isdigit():
        return min(int(value[:9]) * 1000, _MAX_RETRY_AFTER_MS)
    from email.utils import parsedate_to_datetime  # here: most servers send no dates

    try:
        moment = parsedate_to_datetime(value)
    except (TypeError, ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    wait_ms = int((moment - datetime.now(UTC)).total_seconds() * 1000)
    return max(0, min(wait_ms, _MAX_RETRY_AFTER_MS))
