"""Turns one HTTP response of a REST API into a tool result or a failure.

An empty response, unexpected content, missing fields and undecodable bytes are failures unless the endpoint or the operator says
otherwise; for a status of 400 or more the failure has the body, bounded and without the gateway's secrets. Pure. Must not: repair
a body. Enforces S4/F2, S4/R3, S4/UNDECIDED-1, S4/UNDECIDED-3 and S4/UNDECIDED-4.
"""

from __future__ import annotations

import codecs
from base64 import b64encode
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from pactgate.config.sections.endpoints import Endpoint, OutputValidation
from pactgate.core.contract import MAX_OUTPUT_ERRORS, OUTPUT_ERRORS_KEY
from pactgate.core.display import cut, visible
from pactgate.core.failures import ErrorCode, GatewayFailure, Kind, Verdict
from pactgate.core.masking import Mask
from pactgate.protocol import messages
from pactgate.protocol.json_limits import check_shape
from pactgate.protocol.messages import encode_json
from pactgate.upstreams.http.decompress import DecompressionBombError, UndecodableBodyError, decompress
from pactgate.upstreams.http.refusals import REFUSED_UNREAD, ConfiguredHeaders, retry_after_ms
from pactgate.upstreams.rest.body import essence, is_json

SHOWN_CHARS: Final = 2000
KEPT_CHARS: Final = 4000
WRAPPED: Final = "result"
"""The member that holds a response other than an object: structured content has to be an object."""
_WRAPPED: Final = encode_json(WRAPPED)
_BOM: Final = codecs.BOM_UTF8
_CODES: Final = {
    401: ErrorCode.PERMISSION_DENIED,
    403: ErrorCode.PERMISSION_DENIED,
    404: ErrorCode.NOT_FOUND,
    409: ErrorCode.CONFLICT,
    410: ErrorCode.NOT_FOUND,
    429: ErrorCode.RATE_LIMITED,
    503: ErrorCode.SERVICE_UNAVAILABLE,
}
_WITHOUT_CONTENT: Final = frozenset({204, 205})
_CHARSETS: Final = {
    **dict.fromkeys(("", "utf-8", "utf8", "us-ascii", "ascii"), "utf-8"),
    **dict.fromkeys(("iso-8859-1", "latin-1", "latin1"), "latin-1"),
    "windows-1252": "cp1252",
    "utf-16": "utf-16",
}
_TOLD_OF_HEAD: Final = (b"content-type", b"content-length", b"last-modified", b"etag")
_raw: Final = msgspec.json.Decoder(Raw)


class ResponseOptions(Struct, frozen=True):
    """The settings of one server for reading responses."""

    server: str
    allows_empty: bool = False
    takes_text_for_json: bool = False
    output_validation: OutputValidation = "enforce"
    max_bytes: int = 8 * 1024 * 1024


class ResponseReader:
    """Reads the responses of one endpoint. `meta` is the encoded `_meta` of every result."""

    def __init__(self, endpoint: Endpoint, reading: ResponseOptions, own: ConfiguredHeaders, meta: bytes = b"") -> None:
        self._endpoint = endpoint
        self._reading = reading
        self._own = own
        self._meta = meta
        self._end = b',"_meta":%b}' % meta if meta else b"}"
        mode = endpoint.output_validation or reading.output_validation
        self._is_lenient = mode == "warn"
        self._has_schema = endpoint.output_schema is not None and mode == "enforce"
        self._wraps = wraps(endpoint)
        self._required = endpoint.expect.required if endpoint.expect and mode != "off" else ()
        self._allows_empty = endpoint.allow_empty or reading.allows_empty
        self._readers = {"json": self._json, "text": self._text, "binary": self._binary, "none": self._none}

    def read(self, status: int, headers: Mapping[bytes, bytes], body: bytes) -> bytes:
        """The encoded tool result. Raises an upstream failure."""
        if not 200 <= status < 300 or status == HTTPStatus.PARTIAL_CONTENT:
            raise self._refusal(status, headers, body)
        if b"content-encoding" in headers and body:
            body = self._unpacked(headers, body)
        if status in _WITHOUT_CONTENT:
            return self._without_content(status)
        if self._endpoint.response != "none" and not body.strip():
            if not self._allows_empty:
                raise self._empty(status, "nothing at all")
            return self._without_content(status)
        return self._readers[self._endpoint.response](status, headers, body)

    def _json(self, status: int, headers: Mapping[bytes, bytes], body: bytes) -> bytes:
        declared = headers.get(b"content-type", b"")
        problem = None
        if declared not in (b"", b"application/json") and not is_json(essence(declared.decode("latin-1"))):
            problem = f"{essence(declared.decode('latin-1'))[:100]!r} instead of JSON"
        text = body.removeprefix(_BOM).strip()
        problem = problem or _why_not_json(text)
        if problem is not None:
            return self._not_json(headers, body, problem)
        if not self._has_schema and not self._allows_empty and _is_hollow(text):
            raise self._empty(status, "an empty object" if text != b"null" else "null")
        end = self._require_members(text) if self._required else self._end
        is_wrapped = self._wraps if self._has_schema else not text.startswith(b"{")
        structured = b"{%b:%b}" % (_WRAPPED, text) if is_wrapped else text
        shown = encode_json(text.decode())
        return b'{"content":[{"type":"text","text":%b}],"structuredContent":%b%b' % (shown, structured, end)

    def _text(self, status: int, headers: Mapping[bytes, bytes], body: bytes) -> bytes:
        return self._with_content({"type": "text", "text": self._decoded(headers, body)})

    def _binary(self, status: int, headers: Mapping[bytes, bytes], body: bytes) -> bytes:
        kind = essence(headers.get(b"content-type", b"").decode("latin-1")) or "application/octet-stream"
        data = b64encode(body).decode("ascii")
        family = kind.partition("/")[0]
        if family in ("image", "audio"):
            return self._with_content({"type": family, "data": data, "mimeType": kind})
        uri = f"rest://{self._reading.server}/{self._endpoint.name}"
        return self._with_content({"type": "resource", "resource": {"uri": uri, "mimeType": kind, "blob": data}})

    def _none(self, status: int, headers: Mapping[bytes, bytes], body: bytes) -> bytes:
        told = [
            f"{name.decode()}: {headers[name].decode('latin-1')[:200]}" for name in _TOLD_OF_HEAD if name in headers
        ]
        if self._endpoint.method == "HEAD":
            return self._with_content({"type": "text", "text": "\n".join([f"HTTP {status}", *told])})
        if body.strip():
            why = f"HTTP {status}. {len(body)} bytes of content were skipped: the endpoint declares none."
            return self._with_content({"type": "text", "text": why})
        return self._without_content(status)

    def _not_json(self, headers: Mapping[bytes, bytes], body: bytes, problem: str) -> bytes:
        if self._reading.takes_text_for_json:
            return self._text(0, headers, body)
        raise self._failure(
            Kind.NON_JSON_RESPONSE,
            f"answered with {problem}. Set `response` of the endpoint to what it really sends.",
            {"body": self._kept(body), "bodyBytes": len(body)},
        )

    def _without_content(self, status: int) -> bytes:
        return self._with_content({"type": "text", "text": f"No content (HTTP {status})."})

    def _with_content(self, content: dict[str, Any]) -> bytes:
        return b'{"content":[%b]%b' % (encode_json(content), self._end)

    def _unpacked(self, headers: Mapping[bytes, bytes], body: bytes) -> bytes:
        try:
            return decompress(body, headers[b"content-encoding"].decode("latin-1"), self._reading.max_bytes)
        except DecompressionBombError as problem:
            raise self._failure(Kind.RESPONSE_TOO_LARGE, f"answered with {problem}.", {}) from None
        except UndecodableBodyError as problem:
            raise self._failure(Kind.UNDECODABLE_RESPONSE, f"answered with {problem}.", {}) from None

    def _decoded(self, headers: Mapping[bytes, bytes], body: bytes) -> str:
        named = headers.get(b"content-type", b"").decode("latin-1").lower().partition("charset=")[2]
        charset = _CHARSETS.get(named.partition(";")[0].strip(' "'))
        try:
            if charset is None:
                raise LookupError
            return body.removeprefix(_BOM).decode(charset)
        except (UnicodeDecodeError, LookupError):
            what = f"{named[:40]!r} text" if charset is None else f"bytes that are not {charset}"
            why = f"answered with {what}, which can't be read. If it is not text, set `response` to binary."
            raise self._failure(Kind.UNDECODABLE_RESPONSE, why, {"bodyBytes": len(body)}) from None

    def _require_members(self, text: bytes) -> bytes:
        """The end of the result: with the missing members where the response is passed on without them."""
        value = messages.value(text)
        missing = [pointer for name in self._required if not _has(value, pointer := _as_pointer(name))]
        if not missing:
            return self._end
        errors = [
            {"pointer": pointer, "keyword": "required", "message": f"{pointer} is missing"} for pointer in missing
        ]
        if self._is_lenient:
            told = encode_json({OUTPUT_ERRORS_KEY: errors[:MAX_OUTPUT_ERRORS]})
            return b',"_meta":%b,%b}' % (self._meta[:-1], told[1:]) if self._meta else b',"_meta":%b}' % told
        raise self._failure(
            Kind.SCHEMA_MISMATCH,
            f"answered without {', '.join(missing)[:500]}, which the endpoint expects.",
            {"errors": errors, "body": self._kept(text)},
        )

    def _refusal(self, status: int, headers: Mapping[bytes, bytes], body: bytes) -> GatewayFailure:
        code = _CODES.get(status)
        details: dict[str, Any] = {"status": status}
        if body:
            body = self._shown_body(headers, body)
            details |= {"body": self._kept(body), "bodyBytes": len(body)}
        failure = self._failure(Kind.HTTP_STATUS, f"answered HTTP {_named(status)}{self._said(status, body)}", details)
        failure.code = code or failure.code
        if status in REFUSED_UNREAD:
            failure.verdict = Verdict.DID_NOT_RUN
        if status in (429, 503):
            failure.retry_after_ms = retry_after_ms(headers.get(b"retry-after", b"").decode("latin-1"))
        return failure

    def _shown_body(self, headers: Mapping[bytes, bytes], body: bytes) -> bytes:
        """The decoded body of an error, empty if it can't be decoded."""
        try:
            return self._unpacked(headers, body) if b"content-encoding" in headers else body
        except GatewayFailure:
            return b""

    def _said(self, status: int, body: bytes) -> str:
        if 300 <= status < 400:
            return ". The redirect is not followed: see `followRedirects`."
        if status == HTTPStatus.PARTIAL_CONTENT:
            return ", a part of the content, although no range was requested."
        hint = f" Check the credentials in `headers` of {self._reading.server}." if status in (401, 403) else ""
        said = _readable(body, SHOWN_CHARS, self._own.mask)
        return f": {said}{'' if said.endswith('.') else '.'}{hint}" if said else f".{hint}"

    def _kept(self, body: bytes) -> str:
        return _readable(body, KEPT_CHARS, self._own.mask)

    def _empty(self, status: int, what: str) -> GatewayFailure:
        why = f"answered HTTP {status} with {what}. If that is valid, set `allowEmpty` of the endpoint."
        return self._failure(Kind.EMPTY_RESPONSE, why, {"status": status})

    def _failure(self, kind: Kind, what: str, details: dict[str, Any]) -> GatewayFailure:
        server, name = self._reading.server, self._endpoint.name
        return GatewayFailure(
            kind,
            f"{server}.{name} {what}",
            server=server,
            tool=f"{server}.{name}",
            operation="tools/call",
            details=details,
        )


def wraps(endpoint: Endpoint) -> bool:
    """Whether the output schema describes something other than an object, which is wrapped in one."""
    return endpoint.output_schema is not None and endpoint.output_schema.get("type") != "object"


def _why_not_json(text: bytes) -> str | None:
    try:
        text.decode()
        if check_shape(text, messages.MAX_DEPTH - 2) is not None:
            return "JSON that is nested too deep or has too many values"
        _raw.decode(text)
    except UnicodeDecodeError:
        return "bytes that are not UTF-8"
    except (msgspec.DecodeError, RecursionError):
        return "something that is not JSON"
    return None


def _is_hollow(text: bytes) -> bool:
    """Whether JSON is null or an empty object. An empty array is a valid response."""
    return text == b"null" or (text.startswith(b"{") and not text[1:-1].strip())


def _as_pointer(name: str) -> str:
    return name if name.startswith("/") else "/" + name.replace("~", "~0").replace("/", "~1")


def _has(value: Any, pointer: str) -> bool:
    for token in pointer.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isascii() and key.isdecimal() and len(key) < 10 and int(key) < len(value):
            value = value[int(key)]
        else:
            return False
    return True


def _named(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _readable(body: bytes, chars: int, mask: Mask) -> str:
    """The beginning of a body as printable text, with its line breaks. Masked before it is cut, so that no half secret stays."""
    text = body[: chars * 8].decode("utf-8", "replace").strip()
    return cut(visible(mask.start(text, chars * 4)), chars)
