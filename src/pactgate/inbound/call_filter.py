"""The filter language of the console: `tool:crm.* outcome:!ok ms:>500 caller:ci` keeps the calls for which every term holds.

A term is `field:value`, or a word that one of the names of the call contains. A value is a pattern with `*` and `?`, a number with `>` or
`<`, and negated by `!`. Must not: accept a field that does not exist, which would keep or drop everything in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import parse_qs

from pactgate.config.problems import nearest
from pactgate.config.selectors import compiled
from pactgate.inbound.http_exchange import HttpExchange

Row = Mapping[str, Any]
CallFilter = Callable[[Row], bool]

FIELDS: Final = {
    "tool": "tool",
    "server": "server",
    "caller": "subject",
    "client": "client",
    "outcome": "outcome",
    "code": "code",
    "verdict": "verdict",
    "cached": "cached",
    "ms": "durationMs",
    "id": "requestId",
}
_WORDS: Final = ("tool", "server", "subject", "client", "outcome", "code", "requestId")
MAX_CHARS: Final = 500
MAX_TERMS: Final = 20
_MAX_QUERY_BYTES: Final = 4096


class CallFilterError(ValueError):
    """The text is no filter; the message says why."""


def filter_of(exchange: HttpExchange) -> str:
    """The text of the parameter `filter` of the target, or nothing. Raises CallFilterError."""
    query = exchange.head.url.partition(b"?")[2]
    if len(query) > _MAX_QUERY_BYTES:
        raise CallFilterError("The query is too long.")
    try:
        return " ".join(parse_qs(query.decode("ascii"), max_num_fields=10).get("filter", []))
    except ValueError:
        raise CallFilterError("The query can't be read.") from None


def keep_all(row: Row) -> bool:
    """The filter without terms."""
    return True


def read_filter(text: str) -> CallFilter:
    """Raises CallFilterError."""
    if len(text) > MAX_CHARS or len(text.split()) > MAX_TERMS:
        raise CallFilterError(f"A filter has at most {MAX_CHARS} characters and {MAX_TERMS} terms.")
    if not text.strip():
        return keep_all
    terms = [_term(word) for word in text.split()]
    return lambda row: all(term(row) for term in terms)


def _term(word: str) -> CallFilter:
    name, colon, value = word.partition(":")
    if not colon:
        wanted = word.lower()
        return lambda row: any(wanted in _text(row.get(member)) for member in _WORDS)
    if name not in FIELDS:
        similar = nearest(name, FIELDS)
        hint = f"Did you mean {similar}?" if similar else f"Fields: {', '.join(FIELDS)}."
        raise CallFilterError(f"There is no field {name!r}. {hint}")
    member, negates = FIELDS[name], value.startswith("!")
    value = value.removeprefix("!").lower()
    if not value:
        raise CallFilterError(f"{name}: needs a value.")
    test = _number(name, value) if value[0] in "<>" else _pattern(value, is_tool=name == "tool")
    return lambda row: test(row.get(member)) is not negates


def _number(name: str, value: str) -> Callable[[Any], bool]:
    if name != "ms":
        raise CallFilterError(f"{name} is no number; write ms:>500.")
    try:
        limit = float(value[1:])
    except ValueError:
        raise CallFilterError(f"{value[1:]!r} is no number; write ms:>500.") from None
    is_more = value[0] == ">"
    return lambda held: isinstance(held, int | float) and (held > limit if is_more else held < limit)


def _pattern(value: str, *, is_tool: bool) -> Callable[[Any], bool]:
    """A tool is meant by its full name or by the part after the server."""
    fits = compiled(value).match
    if is_tool:
        return lambda held: any(fits(name) for name in (_text(held), _text(held).partition(".")[2]))
    return lambda held: fits(_text(held)) is not None


def _text(held: Any) -> str:
    return "" if held is None else str(held).lower()
