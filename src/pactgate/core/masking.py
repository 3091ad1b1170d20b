"""Secrets, replaced in texts and JSON values before the gateway prints, logs or reports them.

Those of the configuration are found by value; API keys and access tokens (JWT), which the gateway does not know, by their form.

Must not: be used on results that are passed on; the gateway forwards these as they are.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from decimal import Decimal
from itertools import islice
from typing import Any, Final
from urllib.parse import quote, quote_plus

import msgspec
from msgspec import Raw

from pactgate.core.api_key import MAX_TRACE_CHARS, TRACE
from pactgate.protocol import messages

MASKED: Final = "***"
MAX_DEPTH: Final = 32
MAX_ITEMS: Final = 10_000
MAX_TEXT_CHARS: Final = 65_536
MAX_RAW_BYTES: Final = 65_536
"""Of a masked value: what is shown of a failure is bounded below all of these."""
_MAX_SECRETS: Final = 10_000
_SHORTEST_SECRET: Final = 4
"""Masking shorter values would make everything unreadable and hide nothing."""
_SHORTEST_ENCODED: Final = 8
"""Shorter ones in base64 would be found in data that has nothing to do with them."""
_SHORTEST_PASSWORD: Final = 6
_SHORTEST_LINE: Final = 16
"""A secret of several lines is masked line by line too, because logs have lines."""
_ESCAPED_BYTE: Final = re.compile("%[0-9A-F]{2}")
JWT_BEGIN: Final = "eyJ"
"""A JSON object in base64url."""
_JWT_HEADER_CHARS: Final = 11
DOTTED: Final = rf"(?<![\w-])[\w-]{{{_JWT_HEADER_CHARS},}}+(?:\.[\w-]*)+"
"""Words of a token's characters with dots behind them. Each word is read once: a pattern of tokens would read on to its end from each
`eyJ` in it, which takes minutes for 100 KB of them."""
_DOTTED: Final = re.compile(DOTTED)
_URL_SAFE: Final = str.maketrans("+/", "-_")
_IN_HTML: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})
"""As `html.escape` writes them. That module also has a table of 2,231 names, half a megabyte in each gateway."""


class Mask:
    """Replaces known secrets by value, wherever they stand in a text or in a JSON value, and however they are spelt there."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: dict[str, None] = {}
        self.know(secrets)

    def know(self, secrets: Iterable[str]) -> None:
        """Mask these too, from now on. Earlier ones stay: a server may still repeat one that a reload has replaced."""
        self._secrets = dict.fromkeys(list(self._secrets | dict.fromkeys(secrets))[-_MAX_SECRETS:])
        known = {secret for secret in self._secrets if len(secret) >= _SHORTEST_SECRET}
        known |= {
            line for secret in known if "\n" in secret for line in secret.splitlines() if len(line) >= _SHORTEST_LINE
        }
        spellings = {spelling for secret in known for spelling in spellings_of(secret)}
        self._pattern = pattern_of(spellings)
        self._longest = max(MAX_TRACE_CHARS, *map(len, spellings)) if spellings else MAX_TRACE_CHARS

    def __call__(self, text: str) -> str:
        return mask_tokens(self._pattern.sub(MASKED, text))

    def start(self, text: str, max_chars: int) -> str:
        """The masked beginning of a long text, without the end where a secret may have been cut in two."""
        if len(text) <= max_chars:
            return self(text)
        masked = self(text[:max_chars])
        return masked[: max(0, len(masked) - self._longest)]

    def end(self, text: str, max_chars: int) -> str:
        """The masked end of a long text, without the beginning where a secret may have been cut in two."""
        return self(text) if len(text) <= max_chars else self(text[-max_chars:])[self._longest :]

    def value(self, value: Any) -> Any:
        """A JSON value without secrets in its texts, keys and numbers, bounded in depth, items and texts.

        JSON that is not decoded yet stays as it is written where it is small and has no secret.
        """
        return _MaskedValue(self).of(value, 0)

    def is_in(self, number: float | Decimal) -> bool:
        """Whether the digits of a number have a secret in them, wherever its decimal point is."""
        text = str(number)
        return self._pattern.search(f"{text} {text.replace('.', '')}") is not None


class _MaskedValue:
    """One walk through a value. `_left` is how many items may still be shown."""

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self._left = MAX_ITEMS

    def of(self, value: Any, depth: int) -> Any:
        self._left -= 1
        if isinstance(value, str):
            return self._mask.start(value, MAX_TEXT_CHARS)
        if isinstance(value, Raw):
            return self._of_raw(value, depth)
        if isinstance(value, dict):
            shown = islice(value.items(), self._room(depth))
            return {self._mask.start(str(key), MAX_TEXT_CHARS): self.of(item, depth + 1) for key, item in shown}
        if isinstance(value, list | tuple):
            return [self.of(item, depth + 1) for item in islice(value, self._room(depth))]
        is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
        return MASKED if is_number and self._mask.is_in(value) else value

    def _room(self, depth: int) -> int:
        """How many items of an array or object are looked at."""
        return 0 if depth >= MAX_DEPTH else max(0, self._left)

    def _of_raw(self, raw: Raw, depth: int) -> Any:
        if len(raw) > MAX_RAW_BYTES:
            return f"JSON of {len(raw)} bytes, left out"
        try:
            value = messages.value(raw)
        except (ValueError, RecursionError, msgspec.DecodeError):
            return f"{len(raw)} bytes that are not JSON, left out"
        masked = self.of(value, depth)
        return raw if masked == value else masked


def spellings_of(secret: str, *, in_base64: bool = True) -> set[str]:
    """The secret as it is written inside other formats: JSON, HTML, URLs, and base64 as in Basic credentials."""
    found = {secret, secret.translate(_IN_HTML)}
    for is_ascii in (True, False):
        escaped = json.dumps(secret, ensure_ascii=is_ascii)[1:-1]
        found |= {escaped, json.dumps(escaped)[1:-1]}  # JSON in a string of JSON
    for quoted in (quote(secret, safe=""), quote(secret), quote_plus(secret)):
        found |= {quoted, _ESCAPED_BYTE.sub(lambda escape: escape[0].lower(), quoted)}
    if in_base64 and len(secret) >= _SHORTEST_ENCODED:
        found |= _in_base64(secret.encode("utf-8", "surrogatepass"))
    if secret[:6].lower() == "basic ":
        found |= _basic_credentials(secret[6:])
    return {spelling for spelling in found if len(spelling) >= _SHORTEST_SECRET}


def _in_base64(secret: bytes) -> set[str]:
    """What of a longer text in base64 is made of the secret alone, wherever the secret begins in it."""
    found = set()
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + secret)
        whole = encoded[-(-before * 4 // 3) : (before + len(secret)) * 4 // 3].decode()
        found |= {whole, whole.translate(_URL_SAFE)}
    return found


def _basic_credentials(encoded: str) -> set[str]:
    try:
        decoded = base64.b64decode(encoded, validate=True).decode()
    except ValueError:
        return set()
    password = decoded.partition(":")[2]
    return {decoded, password} if len(password) >= _SHORTEST_PASSWORD else {decoded}


def pattern_of(spellings: Iterable[str]) -> re.Pattern[str]:
    """Matches any of the spellings, and what has the form of an API key.

    They are grouped by their first character, so that most places of a text fail after one look.
    """
    groups: dict[str, list[str]] = {}
    for spelling in sorted(
        spellings, key=lambda each: (-len(each), each)
    ):  # longest first: a secret may contain another one
        groups.setdefault(spelling[0], []).append(re.escape(spelling[1:]))
    known = [f"{re.escape(first)}(?:{'|'.join(rest)})" for first, rest in groups.items()]
    return re.compile("|".join([*known, TRACE]))


def mask_tokens(text: str) -> str:
    """Mask what has the form of an access token; one without its signature is worth nothing, so parts may stay."""
    return _DOTTED.sub(_without_token, text) if JWT_BEGIN in text else text


def _without_token(words: re.Match[str]) -> str:
    text: str = words[0]
    at = text.find(JWT_BEGIN)
    while at >= 0 and (dot := text.find(".", at)) >= 0:
        if dot - at >= _JWT_HEADER_CHARS:
            return text[:at] + MASKED
        at = text.find(JWT_BEGIN, at + 1)
    return text
