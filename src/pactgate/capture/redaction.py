"""Removes secrets before a capture is written: credentials in headers, known secrets by value, and API keys by their form.

A session id opens a session, so it is a secret too: it is written as a digest, which still distinguishes two sessions. Digests get a new
salt in every run. Most messages hold no secret, so many are searched at once, and a block of headers that comes again is not read
again. Must not: change a message without a secret by a single byte.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from pactgate.core.api_key import PREFIX, TRACE
from pactgate.core.masking import DOTTED, JWT_BEGIN, mask_tokens, pattern_of, spellings_of
from pactgate.core.recording import Headers
from pactgate.core.token_words import MASKED, TokenWords
from pactgate.protocol import messages

_SHORTEST: Final = 4
_MAX_LEARNED: Final = 256
_LEARNED_CHARS: Final = 8
_SESSION: Final = "mcp-session-id"
_LENGTH: Final = "content-length"
_VERSION: Final = "mcp-protocol-version"
_VISIBLE: Final = re.compile(r"[!-~]+")
_CREDENTIALS: Final = re.compile(r"auth|cookie|credential|key|passw|secret|token|signature", re.IGNORECASE)
_HARMLESS: Final = frozenset({"www-authenticate"})
_FORMS: Final = {
    beginning.encode(): re.compile(form.encode()) for beginning, form in ((PREFIX, TRACE), (JWT_BEGIN, DOTTED))
}
_ODD_ESCAPES: Final = (b"\\u", b"\\/")
_MAX_BLOCKS: Final = 256
_MAX_NAMES: Final = 256
_MAX_TOKENS: Final = 1000


class HeaderBlock(Struct, frozen=True):
    """A block of headers that was read, but for `content-length`, which changes with each body.

    Only `shown` and `auth` may be written to a capture.
    """

    source: Headers
    without_length: Raw
    has_length: bool
    auth: str | None
    session: str | None
    version: str | None
    is_json: bool

    def shown(self, body: bytes | None) -> Raw:
        """The headers as JSON, with the length of the body. A stream, whose body is None, has no length."""
        if not self.has_length or body is None:
            return self.without_length
        members = bytes(self.without_length)[1:]
        return Raw(b'{"content-length":["%d"]%b%b' % (len(body), b"," if len(members) > 1 else b"", members))


class Redaction:
    """Knows the secrets of one run. All recordings share it."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._salt = secrets.token_bytes(16)
        self._known: dict[str, None] = {}
        self._pattern = pattern_of(())
        self._spellings: tuple[bytes, ...] = ()
        self._words = TokenWords()
        self._tokens: dict[bytes, None] = {}
        self.ahead: Callable[[bytes], bytes] | None = self.message
        self._blocks: dict[Hashable, HeaderBlock] = {}
        self.know(known)

    def know(self, values: Iterable[str]) -> None:
        """Mask these values from now on."""
        fresh = [value for value in values if len(value) >= _SHORTEST and value not in self._known]
        if not fresh:
            return
        self._known |= dict.fromkeys(fresh)
        # Not in base64: each spelling costs every recorded message a search.
        spellings = {spelling for value in self._known for spelling in spellings_of(value, in_base64=False)}
        self._pattern = pattern_of(spellings)
        written = {text for spelling in spellings for text in (json.dumps(spelling)[1:-1], _plain(spelling))}
        self._spellings = tuple(sorted(text.encode("utf-8", "surrogatepass") for text in written))
        self.ahead = self.message
        self._blocks.clear()

    def know_tokens(self, tokens: Iterable[str]) -> None:
        """Mask these tokens of sign-ins from now on, which are words."""
        fresh = tuple(tokens)
        self._words.add(fresh)
        self._tokens |= dict.fromkeys(token.encode() for token in fresh)
        for oldest in list(self._tokens)[:-_MAX_TOKENS]:
            del self._tokens[oldest]
        self.ahead = self.message
        self._blocks.clear()

    def look_ahead(self, batch: Sequence[bytes]) -> None:
        """Search the next messages all at once. While they hold no secret `ahead` is None, until `know` learns a new one."""
        is_clean = bool(batch) and not self._is_suspect(b"\n".join(batch))
        self.ahead = None if is_clean else self.message

    def message(self, data: bytes) -> bytes:
        """A JSON message without the known secrets. The same bytes where there is none."""
        if not self._is_suspect(data):
            return data
        value = messages.value(data)
        masked = self._masked(value)
        return data if masked == value else msgspec.json.encode(masked)

    def block(self, headers: Headers) -> HeaderBlock:
        """Read a block of headers, each block once. A token in it is masked from now on, wherever it occurs."""
        key = headers if type(headers) is bytes else block_identity(headers)
        block = self._blocks.get(key)
        if block is None:
            block = self._read(headers)
            if len(self._blocks) >= _MAX_BLOCKS:
                self._blocks.clear()
            self._blocks[key] = block
        return block

    def _credentials(self, given: Sequence[str]) -> str | None:
        """A digest of the credentials. The token itself is masked from now on, wherever it occurs."""
        if not given:
            return None
        if len(self._known) < _MAX_LEARNED:
            self.know(word for value in given for word in value.split() if len(word) >= _LEARNED_CHARS)
        return self.digest("\n".join(given))

    def digest(self, text: str) -> str:
        return blake2b(text.encode("utf-8", "surrogatepass"), key=self._salt, digest_size=6).hexdigest()

    def _read(self, headers: Headers) -> HeaderBlock:
        given = header_values(headers)
        has_length = not isinstance(headers, bytes) and given.pop(_LENGTH, None) is not None
        auth = self._credentials(given.get("authorization", ()))  # first: a token in it may occur in other headers
        masked = {
            name: [self._masked_header(name, value) for value in given[name]] for name in given if _is_secret(name)
        }
        return HeaderBlock(
            source=headers,
            without_length=Raw(self.message(msgspec.json.encode(given | masked))),
            has_length=has_length,
            auth=auth,
            session=given.get(_SESSION, [None])[0],
            version=given.get(_VERSION, [None])[0],
            is_json="json" in given.get("content-type", [""])[0],
        )

    def _is_suspect(self, data: bytes) -> bool:
        """Whether a secret may be in the data: in plain sight, or behind escapes."""
        has_escapes = b"\\" in data and any(escape in data for escape in _ODD_ESCAPES)
        has_form = any(beginning in data and form.search(data) for beginning, form in _FORMS.items())
        return has_form or has_escapes or any(known in data for known in (*self._spellings, *self._tokens))

    def _masked(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._masked_text(value)
        if isinstance(value, dict):
            return {self._masked_text(name): self._masked(member) for name, member in value.items()}
        if isinstance(value, list):
            return [self._masked(item) for item in value]
        if isinstance(value, int | float) and not isinstance(value, bool) and self._pattern.search(str(value)):
            return MASKED
        return value

    def _masked_text(self, text: str) -> str:
        return mask_tokens(self._words.mask(self._pattern.sub(MASKED, text)))

    def _masked_header(self, name: str, value: str) -> str:
        if name == _SESSION:
            # A fault of the id must stay visible to the checker: a space stands for characters that an id may not have.
            return f"session-{self.digest(value)}" + ("" if _VISIBLE.fullmatch(value) else " ")
        scheme, blank, _ = value.partition(" ")
        return f"{scheme} {MASKED}" if blank and name == "authorization" else MASKED


@lru_cache(maxsize=_MAX_NAMES)
def _is_secret(name: str) -> bool:
    return name == _SESSION or (_CREDENTIALS.search(name) is not None and name not in _HARMLESS)


def _plain(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)[1:-1]


def secrets_of(environment: Mapping[str, str]) -> list[str]:
    """The values of environment variables whose names suggest a secret."""
    return [
        value for name, value in environment.items() if _CREDENTIALS.search(name) and len(value) >= 2 * _LEARNED_CHARS
    ]


def header_values(headers: Headers) -> dict[str, list[str]]:
    """The values of each header by its name in lower case. A new dictionary."""
    values: dict[str, list[str]] = {}
    if isinstance(headers, bytes):
        for line in headers.decode("latin-1").split("\r\n"):
            shown, found, text = line.partition(":")
            if found:
                values.setdefault(shown.strip().lower(), []).append(text.strip())
        return values
    for name, value in headers.items():
        if isinstance(name, bytes) and isinstance(value, bytes):
            values[name.decode("latin-1").lower()] = [value.decode("latin-1")]
        elif isinstance(name, str) and isinstance(value, list):
            values[name] = value
    return values


def block_identity(headers: Headers) -> Hashable:
    """Equal for blocks that differ in nothing but `content-length`, as long as the first one lives. Saves reading a block twice."""
    if isinstance(headers, bytes):
        return headers
    for name in headers:
        if isinstance(name, bytes):
            return tuple([pair for pair in headers.items() if pair[0] != b"content-length"])
        return id(headers)
    return None
