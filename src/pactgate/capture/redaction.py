"""What must not be in a capture is taken out before anything is written: credentials in headers, and known secrets by value.

A session id opens a session, so it is a secret too: it is written as a digest, which still tells two sessions apart. Digests are
salted anew in every run. Most of what passes holds no secret, so that is found out first, for many messages at once, and a block of
headers that comes again is not read again. Must not: change a message that has no secret in it by a single byte.
Enforces T28 for captures.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

import msgspec
from msgspec import Struct

from pactgate.capture.headers import identity, pairs
from pactgate.core.recording import Headers
from pactgate.protocol import messages

MASKED: Final = "***"
_SHORTEST: Final = 4
_MAX_LEARNED: Final = 256
_LEARNED_CHARS: Final = 8
_SESSION: Final = "mcp-session-id"
_VERSION: Final = "mcp-protocol-version"
_VISIBLE: Final = re.compile(r"[!-~]+")
_CREDENTIALS: Final = re.compile(r"auth|cookie|credential|key|passw|secret|token|signature", re.IGNORECASE)
_HARMLESS: Final = frozenset({"www-authenticate"})
_ODD_ESCAPES: Final = (b"\\u", b"\\/")
_MAX_BLOCKS: Final = 256


class HeaderBlock(Struct, frozen=True):
    """A block of headers, read. Only `shown` and `auth`, which are JSON, may be written."""

    source: Headers
    shown: bytes
    auth: bytes | None
    session: str | None
    version: str | None
    is_json: bool


class Redaction:
    """Shared by all recordings of one run."""

    def __init__(self, known: Iterable[str] = (), *, salt: bytes | None = None) -> None:
        self._salt = salt or secrets.token_bytes(16)
        self._known: dict[str, None] = {}
        self._pattern: re.Pattern[str] | None = None
        self._spellings: tuple[bytes, ...] = ()
        self.ahead: Callable[[bytes], bytes] | None = self.message
        self._blocks: dict[Hashable, HeaderBlock] = {}
        self.know(known)

    def know(self, values: Iterable[str]) -> None:
        """From now on these values are masked too."""
        fresh = [value for value in values if len(value) >= _SHORTEST and value not in self._known]
        if not fresh:
            return
        self._known |= dict.fromkeys(fresh)
        longest_first = sorted(self._known, key=lambda value: (-len(value), value))
        self._pattern = re.compile("|".join(map(re.escape, longest_first)))
        spellings = {text for value in longest_first for text in (json.dumps(value)[1:-1], _plain(value))}
        self._spellings = tuple(sorted(text.encode("utf-8", "surrogatepass") for text in spellings))
        self.ahead = self.message
        self._blocks.clear()

    def look_ahead(self, texts: Sequence[bytes]) -> None:
        """Search what comes next all at once: where that is clean, `ahead` is None until `know` learns more, and for these texts alone."""
        is_clean = bool(texts) and not self._is_suspect(b"\n".join(texts))
        self.ahead = None if is_clean else self.message

    def message(self, text: bytes) -> bytes:
        """A JSON text without the secrets that are known. Untouched, byte for byte, where there is none."""
        pattern = self._pattern
        if pattern is None or not self._is_suspect(text):
            return text
        value = messages.value(text)
        masked = _masked(value, pattern)
        return text if masked == value else msgspec.json.encode(masked)

    def block(self, headers: Headers) -> HeaderBlock:
        """A block of headers, read once. A token in it is known from now on, wherever it shows up."""
        key = headers if type(headers) is bytes else identity(headers)
        block = self._blocks.get(key)
        if block is None:
            block = self._read(headers)
            if len(self._blocks) >= _MAX_BLOCKS:
                self._blocks.clear()
            self._blocks[key] = block
        return block

    def headers(self, headers: Headers) -> dict[str, list[str]]:
        """Every header by its name in lower case, credentials masked."""
        found: dict[str, list[str]] = {}
        for name, value in pairs(headers):
            found.setdefault(name, []).append(self._header(name, value))
        return found

    def credentials(self, headers: Headers) -> str | None:
        """A digest of who asks; and the token itself is known from now on, wherever it shows up."""
        given = [value for name, value in pairs(headers) if name == "authorization"]
        if not given:
            return None
        if len(self._known) < _MAX_LEARNED:
            words = [word for value in given for word in value.split() if len(word) >= _LEARNED_CHARS]
            self.know(words)
        return self.digest("\n".join(given))

    def digest(self, text: str) -> str:
        return blake2b(text.encode("utf-8", "surrogatepass"), key=self._salt, digest_size=6).hexdigest()

    def _read(self, headers: Headers) -> HeaderBlock:
        auth = self.credentials(headers)
        given = dict(reversed(pairs(headers)))
        return HeaderBlock(
            source=headers,
            shown=msgspec.json.encode(self.headers(headers)),
            auth=None if auth is None else msgspec.json.encode(auth),
            session=given.get(_SESSION),
            version=given.get(_VERSION),
            is_json="json" in given.get("content-type", ""),
        )

    def _is_suspect(self, text: bytes) -> bool:
        """Whether a secret may be in it: it stands there, or escapes may hide it."""
        if not self._known:
            return False
        has_escapes = b"\\" in text and any(escape in text for escape in _ODD_ESCAPES)
        return has_escapes or any(spelling in text for spelling in self._spellings)

    def _header(self, name: str, value: str) -> str:
        if name == _SESSION:
            # What is wrong with an id must still be visible: a blank stands for characters that may not be in one.
            return f"session-{self.digest(value)}" + ("" if _VISIBLE.fullmatch(value) else " ")
        if _CREDENTIALS.search(name) and name not in _HARMLESS:
            scheme, blank, _ = value.partition(" ")
            return f"{scheme} {MASKED}" if blank and name == "authorization" else MASKED
        return self._pattern.sub(MASKED, value) if self._pattern is not None else value


def _plain(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)[1:-1]


def _masked(value: Any, pattern: re.Pattern[str]) -> Any:
    if isinstance(value, str):
        return pattern.sub(MASKED, value)
    if isinstance(value, dict):
        return {pattern.sub(MASKED, name): _masked(member, pattern) for name, member in value.items()}
    if isinstance(value, list):
        return [_masked(item, pattern) for item in value]
    if isinstance(value, int | float) and not isinstance(value, bool) and pattern.search(str(value)):
        return MASKED
    return value


def secrets_of(environment: Mapping[str, str]) -> list[str]:
    """The values of variables whose names say that they are secret."""
    return [
        value for name, value in environment.items() if _CREDENTIALS.search(name) and len(value) >= 2 * _LEARNED_CHARS
    ]
