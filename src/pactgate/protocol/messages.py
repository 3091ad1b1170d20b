"""JSON-RPC messages as values, decoded one level deep and kept as the bytes that were checked.

`decode` is the only way in: strict UTF-8, bounded depth, exact member names, no duplicate keys at any depth, ids kept
with their type. Members that are passed on (`params`, `result`) stay the bytes they arrived as, so 2**64 and
0.30000000000000004 survive. All checks take time linear in the text, whatever it says.
Must not: touch sockets, clocks or anything of ours. Enforces the wire half of F1 (parse and request errors).
"""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from pactgate.protocol.json_limits import (
    MAX_DIGITS,
    check_shape,
    count_openings,
    find_duplicate_key,
    has_duplicate_member,
    has_keys_once,
    has_long_integer,
)
from pactgate.protocol.simple_result import SimpleResult, encode_simple, read_simple_answer

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
RESOURCE_NOT_FOUND: Final = -32002  # legacy revisions only
URL_REQUIRED: Final = -32042  # 2025-11-25 only
HEADER_MISMATCH: Final = -32020
MISSING_CLIENT_CAPABILITY: Final = -32021
UNSUPPORTED_VERSION: Final = -32022

MAX_DEPTH: Final = 64
MAX_ID_BYTES: Final = 1024
MAX_METHOD_CHARS: Final = 256

REPEATED: Final = "A key stands twice in one object."

_INT_DIGITS: Final = 4000
_REQUEST_BYTES: Final = len('{"jsonrpc":"2.0","id":,"method":"","params":}')
_INT_BYTES: Final = 18
"""An id of so many digits is an integer of a machine."""
_ESCAPED_COLON: Final = b"\\u003"


class Request(Struct, eq=False):
    """`id` is the JSON text to echo, `key` the value to compare ids by; `params` is a JSON object or nothing.

    `values` are the decoded params, where the reader decoded them.
    """

    id: bytes
    key: str | int
    method: str
    params: bytes | None = None
    values: dict[str, Any] | None = None
    openings: int | None = None
    """How many opening brackets the whole message has, where its reader counted them."""

    @property
    def size(self) -> int:
        """How many bytes of the message are held, about."""
        return len(self.params or b"")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Request) and (self.id, self.method, self.params) == (
            other.id,
            other.method,
            other.params,
        )

    def __hash__(self) -> int:
        return hash((self.id, self.method, self.params))


class Notification(Struct, frozen=True, gc=False):
    method: str
    params: bytes | None = None


class Response(Struct, eq=False):
    """An answer that went well. `simple` has the parts of a tool result of the ordinary shape, read on the way."""

    key: str | int
    _result: bytes | None = None
    simple: SimpleResult | None = None
    attempts: int = 1
    """How often its request was sent: twice where the first time was refused for its token."""

    @property
    def result(self) -> bytes:
        if self._result is None:
            assert self.simple is not None, "an answer has its result or its parts"
            self._result = encode_simple(self.simple)
        return self._result

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Response) and (self.key, self.result) == (other.key, other.result)

    def __hash__(self) -> int:
        return hash((self.key, self.result))


class ErrorReply(Struct, frozen=True, gc=False):
    """An error answer. `key` is None when the sender could not read the request's id."""

    key: str | int | None
    code: int
    message: str
    data: bytes | None = None


Message = Request | Notification | Response | ErrorReply


class InvalidAnswer(Struct, frozen=True, gc=False):
    """An answer of a server that can't be used. Its request is known and ends with this."""

    key: str | int
    why: str


class Rejection(Struct, frozen=True, gc=False):
    """Why a message or a request was not admitted, ready to be written as an error reply."""

    code: int
    message: str
    id: bytes | None = None
    data: dict[str, Any] | None = None


class _Envelope(Struct, forbid_unknown_fields=True):
    jsonrpc: Raw | UnsetType = UNSET
    id: Raw | UnsetType = UNSET
    method: Raw | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class _OpenEnvelope(_Envelope, forbid_unknown_fields=False):
    """What an upstream sends: members we do not know are ignored, because we never pass an envelope on."""


class _Request(Struct, forbid_unknown_fields=True, gc=False):
    """A request with params. The order of its members does not matter."""

    jsonrpc: Literal["2.0"]
    id: Raw
    method: str
    params: Raw


class _Error(Struct):
    code: int
    message: str
    data: Raw | UnsetType = UNSET


_request_with_params: Final = msgspec.json.Decoder(_Request)
_params: Final = msgspec.json.Decoder(dict[str, Any])
_strict: Final = msgspec.json.Decoder(_Envelope)
_lenient: Final = msgspec.json.Decoder(_OpenEnvelope)
_error: Final = msgspec.json.Decoder(_Error)
_text: Final = msgspec.json.Decoder(str)
_any: Final = msgspec.json.Decoder()
_raw: Final = msgspec.json.Decoder(Raw)
_members: Final = msgspec.json.Decoder(dict[str, Raw])

encode_json: Final = msgspec.json.Encoder().encode

RESULT: Final = b'{"jsonrpc":"2.0","id":%b,"result":%b}'
"""An answer that went well, but for its id and its result."""


def decode(data: bytes, *, max_depth: int = MAX_DEPTH) -> Message | Rejection:
    """A caller's message: every rule applies.

    A request with params is read here, in two passes; anything else is read and explained by `_judge`. Decoding to the bottom checks UTF-8
    and types. A message as long as its four members has none of them twice: nothing that a decoder drops can make one of them shorter than
    it is counted.
    """
    openings = count_openings(data, max_depth + 1)
    if openings > max_depth:
        return _judge(data, max_depth)
    try:
        request = _request_with_params.decode(data)
        id_, method, params = bytes(request.id), request.method, bytes(request.params)
        values = _params.decode(params)
        is_exact = len(data) == _REQUEST_BYTES + len(id_) + len(method) + len(params)
        if (is_exact or _has_members_once(data, id_, method, params)) and has_keys_once(params, values):
            key = int(id_) if id_.isdigit() and len(id_) <= _INT_BYTES else id_key(id_)
            if key is not None and 0 < len(method) <= MAX_METHOD_CHARS:
                return Request(id_, key, method, params, values, openings)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass
    return _judge(data, max_depth)


def _has_members_once(data: bytes, id_: bytes, method: str, params: bytes) -> bool:
    """Whether certainly no member of a message stands twice, where its length does not say so: it has spaces or escapes."""
    colons = 4 + id_.count(b":") + method.count(":") + params.count(b":")
    return _ESCAPED_COLON not in data and data.count(b":") == colons


def _judge(data: bytes, max_depth: int) -> Message | Rejection:
    """Any message, and for what is none the exact reason."""
    if not data.strip():
        return Rejection(PARSE_ERROR, "The body is empty; send one JSON-RPC message.")
    misshapen = check_shape(data, max_depth)
    if misshapen is not None:
        return Rejection(PARSE_ERROR, misshapen)
    try:
        if not data.isascii():
            data.decode()
        envelope = _strict.decode(data)
        repeated = find_duplicate_key(data)
        if len(data) > MAX_DIGITS and has_long_integer(data):
            return Rejection(PARSE_ERROR, f"An integer in the message has more than {MAX_DIGITS} digits.")
    except UnicodeDecodeError as problem:
        return Rejection(PARSE_ERROR, f"The message is not UTF-8: byte {problem.start} can't be decoded.")
    except msgspec.ValidationError:
        return _not_an_envelope(data)
    except (msgspec.DecodeError, RecursionError) as problem:
        return Rejection(PARSE_ERROR, f"The message is not JSON: {problem}.")
    if repeated is not None:
        echo = None if repeated == "id" else _legal_id(envelope)
        return Rejection(INVALID_REQUEST, f"The key {repeated!r} stands twice in one object.", echo)
    return _message(envelope)


def decode_from_upstream(data: bytes) -> Message | InvalidAnswer | Rejection:
    """An upstream's message: unknown members beside the known ones are ignored, large results are not walked.

    An answer with a member twice, in the message or in its result or error, is refused: a client might read the other one.
    """
    try:
        if not data.isascii():
            data.decode()
        simple = read_simple_answer(data)
        if simple is not None:
            return Response(simple[0], simple=simple[1])
        envelope = _lenient.decode(data)
        if envelope.method is UNSET:
            return _upstream_answer(data, envelope)
    except UnicodeDecodeError as problem:
        return Rejection(PARSE_ERROR, f"not UTF-8 at byte {problem.start}")
    except (msgspec.DecodeError, RecursionError) as problem:
        return Rejection(PARSE_ERROR, f"not a JSON-RPC message: {problem}")
    return _message(envelope)


def _upstream_answer(data: bytes, envelope: _Envelope) -> Message | InvalidAnswer | Rejection:
    said = bytes(envelope.result or envelope.error or b"")
    if has_duplicate_member(data) or (said.startswith(b"{") and has_duplicate_member(said)):
        message: Message | Rejection = Rejection(INVALID_REQUEST, REPEATED)
    else:
        message = _message(envelope)
    if isinstance(message, Rejection) and envelope.id is not UNSET:
        key = id_key(bytes(envelope.id))
        return message if key is None else InvalidAnswer(key, message.message)
    return message


def _message(envelope: _Envelope) -> Message | Rejection:
    identity = envelope.id
    raw_id = None if identity is UNSET else bytes(identity)
    key = None if raw_id is None else id_key(raw_id)
    echo = raw_id if key is not None else None
    if envelope.jsonrpc is UNSET or bytes(envelope.jsonrpc) != b'"2.0"':
        return Rejection(INVALID_REQUEST, 'The member "jsonrpc" must be "2.0".', echo)
    if envelope.method is not UNSET:
        return _request(envelope, envelope.method, raw_id, key)
    if envelope.result is UNSET and envelope.error is UNSET:
        return Rejection(INVALID_REQUEST, 'A message needs a "method", a "result" or an "error".', echo)
    return _answer(envelope, raw_id, key)


def _request(envelope: _Envelope, raw_method: Raw, raw_id: bytes | None, key: str | int | None) -> Message | Rejection:
    echo = raw_id if key is not None else None
    if envelope.result is not UNSET or envelope.error is not UNSET:
        return Rejection(INVALID_REQUEST, "A message is a request or an answer, not both.", echo)
    try:
        method = _text.decode(raw_method)
    except msgspec.ValidationError:
        return Rejection(INVALID_REQUEST, 'The member "method" must be a string.', echo)
    if not method or len(method) > MAX_METHOD_CHARS:
        return Rejection(INVALID_REQUEST, f'The member "method" must have 1 to {MAX_METHOD_CHARS} characters.', echo)
    params = None if envelope.params is UNSET else bytes(envelope.params)
    if params is not None and not params.startswith(b"{"):
        return Rejection(INVALID_REQUEST, 'The member "params" must be an object.', echo)
    if raw_id is None:
        return Notification(method, params)
    if key is None:
        return Rejection(INVALID_REQUEST, 'The member "id" must be a non-empty string or an integer.')
    return Request(raw_id, key, method, params)


def _answer(envelope: _Envelope, raw_id: bytes | None, key: str | int | None) -> Message | Rejection:
    """The id of a malformed answer is not echoed: it names one of our own requests."""
    if envelope.error is not UNSET:
        if envelope.result is not UNSET:
            return Rejection(INVALID_REQUEST, "An answer is a result or an error, not both.")
        try:
            error = _error.decode(envelope.error)
        except msgspec.ValidationError:
            return Rejection(INVALID_REQUEST, 'The member "error" needs an integer "code" and a string "message".')
        if raw_id not in (None, b"null") and key is None:
            return Rejection(INVALID_REQUEST, "An answer's id must be a string or an integer.")
        return ErrorReply(key, error.code, error.message, None if error.data is UNSET else bytes(error.data))
    if key is None:
        return Rejection(INVALID_REQUEST, "An answer needs the id of its request.")
    assert not isinstance(envelope.result, UnsetType)
    return Response(key, bytes(envelope.result))


def id_key(raw: bytes) -> str | int | None:
    """The value of a legal id (a non-blank string or an integer), or None."""
    if len(raw) > MAX_ID_BYTES:
        return None
    try:
        value = _any.decode(raw)
    except msgspec.DecodeError:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    if isinstance(value, str) and not value.strip():
        return None
    return value


def members(raw: bytes) -> dict[str, Raw]:
    """The members of a JSON object, each as the bytes it arrived as.

    Raises msgspec.DecodeError for anything but an object.
    """
    return _members.decode(raw)


def value(raw: bytes | Raw) -> Any:
    """The decoded value. Numbers too large for a machine stay exact."""
    try:
        return _any.decode(raw)
    except msgspec.ValidationError:
        return json.loads(bytes(raw), parse_int=_exact_int, parse_float=_exact_float)


def check_member_names(present: Mapping[str, Any], known: frozenset[str]) -> str | None:
    """Why a member's name can't stand: it is none of the (ASCII) known ones but a laxer reader takes it for one (`Name`).

    Names that resemble none of the known ones pass; they are somebody's extension.
    """
    if present.keys() <= known:
        return None
    longest, spellings = _folded(known)
    for name in present:
        # Folding never shortens a text to ASCII, so a longer name can't collide; and folding long names can be slow.
        if name not in known and len(name) <= longest and _fold(name) in spellings:
            return f"The member {name!r} must be spelt {spellings[_fold(name)]!r}."
    return None


def one_line(raw: bytes) -> bytes:
    """The same JSON on one line. A raw line break in valid JSON can only be white space between tokens."""
    if b"\n" in raw or b"\r" in raw:
        return raw.replace(b"\r", b" ").replace(b"\n", b" ")
    return raw


def encode_request(id_: bytes, method: str, params: bytes | None) -> bytes:
    if params is None:
        return b'{"jsonrpc":"2.0","id":%b,"method":%b}' % (id_, encode_json(method))
    return b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":%b}' % (id_, encode_json(method), params)


def encode_notification(method: str, params: bytes | None = None) -> bytes:
    if params is None:
        return b'{"jsonrpc":"2.0","method":%b}' % encode_json(method)
    return b'{"jsonrpc":"2.0","method":%b,"params":%b}' % (encode_json(method), params)


def encode_result(id_: bytes, result: bytes) -> bytes:
    return RESULT % (id_, result)


def encode_error(id_: bytes | None, code: int, message: str, data: Any = None) -> bytes:
    error: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (id_ or b"null", encode_json(error))


def encode_rejection(rejection: Rejection) -> bytes:
    return encode_error(rejection.id, rejection.code, rejection.message, rejection.data)


def _exact_int(digits: str) -> int | Decimal:
    """Python refuses to build integers beyond a few thousand digits; a decimal of the same value is as exact."""
    return int(digits) if len(digits) < _INT_DIGITS else Decimal(digits)


def _exact_float(digits: str) -> float | Decimal:
    number = float(digits)
    return Decimal(digits) if math.isinf(number) else number


def _fold(name: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


@lru_cache(maxsize=64)
def _folded(known: frozenset[str]) -> tuple[int, dict[str, str]]:
    return max(map(len, known), default=0), {_fold(name): name for name in known}


def _legal_id(envelope: _Envelope) -> bytes | None:
    if envelope.id is UNSET or id_key(bytes(envelope.id)) is None:
        return None
    return bytes(envelope.id)


def _not_an_envelope(data: bytes) -> Rejection:
    """Why: the strict decoder stops at the first odd member, so whether the rest is JSON at all is still open."""
    try:
        _raw.decode(data)
    except (msgspec.DecodeError, RecursionError) as problem:
        return Rejection(PARSE_ERROR, f"The message is not JSON: {problem}.")
    start = data.lstrip()[:1]
    if start == b"[":
        return Rejection(INVALID_REQUEST, "Send one message at a time: only revision 2025-03-26 has batches.")
    if start != b"{":
        return Rejection(INVALID_REQUEST, "A message must be a JSON object.")
    allowed = "A message may only have the members jsonrpc, id, method, params, result and error, spelt exactly so."
    return Rejection(INVALID_REQUEST, allowed, _legal_id(_lenient.decode(data)))
