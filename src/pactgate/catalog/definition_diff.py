"""How two definitions of the same name differ, for a person who decides whether to approve the new one.

Says which members differ and how: words of texts, what a schema accepts, hints that turned round; and what nobody should miss: invisible
characters, letters that imitate others, new addresses. Bounded. Pure.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from pactgate.catalog.lookalikes import drawn
from pactgate.catalog.schema_change import compare_schemas
from pactgate.core.display import flat
from pactgate.core.hidden_characters import hidden_in
from pactgate.protocol import messages
from pactgate.protocol.messages import encode_json

_MAX_WORDS: Final = 3000
_CONTEXT_WORDS: Final = 3
_SHOWN_CHARS: Final = 600
_MAX_SHOWN: Final = 10
_SCHEMAS: Final = ("inputSchema", "outputSchema")
_ADDRESS: Final = re.compile(r"https?://[^\s\"'<>)\\]{1,200}|[\w.+-]{1,64}@[\w-]{1,63}\.[\w.-]{1,100}")
_WORD: Final = re.compile(r"\w+")
_ABSENT: Final = object()


class DefinitionChange(NamedTuple):
    """One thing to know about a new definition. `member` is where it is; `is_alarming` marks what a reader can't see by himself."""

    member: str
    text: str
    is_alarming: bool = False


def differences(old: bytes | None, new: bytes) -> list[DefinitionChange]:
    """What to know about a new definition; of one that nobody approved before, everything it says."""
    now = messages.value(new)
    before = {} if old is None else messages.value(old)
    if not isinstance(before, dict) or not isinstance(now, dict):
        before, now = {"text": before or ""}, {"text": now}
    found: list[DefinitionChange] = []
    for member in dict.fromkeys([*before, *now]):
        if member not in before or member not in now or before[member] != now[member]:
            found += _member(member, before.get(member), now.get(member), is_new=old is None)
    return [*found, *_alarms(before, now)]


def _member(member: str, before: Any, now: Any, *, is_new: bool) -> Iterator[DefinitionChange]:
    if is_new or before is None:
        yield DefinitionChange(member, f"new: {_shown(now)}")
    elif now is None:
        yield DefinitionChange(member, f"removed: {_shown(before)}")
    elif isinstance(before, str) and isinstance(now, str):
        yield DefinitionChange(member, word_diff(before, now))
    elif member in _SCHEMAS:
        change = compare_schemas(before, now)
        text = (
            "texts only"
            if change == "equal"
            else change
            if change == "other"
            else f"accepts {_SAID[change]} ({change})"
        )
        yield DefinitionChange(member, f"{text}: {_places(before, now)}")
    else:
        yield DefinitionChange(member, _places(before, now))


_SAID: Final = {"wider": "more than before", "narrower": "less than before"}


def word_diff(before: str, now: str) -> str:
    """The changed words with some around them, as `git diff --word-diff` marks them: [-removed-]{+added+}."""
    old, new = before.split(), now.split()
    if old == new:
        return "white space only"
    if len(old) + len(new) > _MAX_WORDS:
        return f"{len(old)} words become {len(new)}: {_shown(now)}"
    parts: list[str] = []
    for what, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if what == "equal":
            kept = old[i:j]
            parts += kept if len(kept) <= 2 * _CONTEXT_WORDS else [*kept[:_CONTEXT_WORDS], "…", *kept[-_CONTEXT_WORDS:]]
        else:
            parts.append(
                (f"[-{' '.join(old[i:j])}-]" if j > i else "") + (f"{{+{' '.join(new[k:m])}+}}" if m > k else "")
            )
    return flat(" ".join(parts), _SHOWN_CHARS)


def _places(before: Any, now: Any) -> str:
    """The places that differ, with old and new values."""
    found = list(_leaves(before, now, ""))
    more = f"; and {len(found) - _MAX_SHOWN} more" if len(found) > _MAX_SHOWN else ""
    return "; ".join(leaf.shown() for leaf in found[:_MAX_SHOWN]) + more


class _Leaf(NamedTuple):
    """A place that differs. Its words are compared only when it is shown, as a server decides how many there are."""

    place: str
    before: Any
    now: Any

    def shown(self) -> str:
        if self.before is _ABSENT:
            return f"{self.place} added: {_shown(self.now)}"
        if self.now is _ABSENT:
            return f"{self.place} removed"
        if isinstance(self.before, str) and isinstance(self.now, str):
            return f"{self.place}: {word_diff(self.before, self.now)}"
        return f"{self.place} {_shown(self.before)} → {_shown(self.now)}".strip()


def _leaves(before: Any, now: Any, place: str) -> Iterator[_Leaf]:
    if before == now and type(before) is type(now):
        return
    if isinstance(before, dict) and isinstance(now, dict):
        for key in dict.fromkeys([*before, *now]):
            at = flat(f"{place}.{key}" if place else str(key), _SHOWN_CHARS)
            yield from _leaves(before.get(key, _ABSENT), now.get(key, _ABSENT), at)
    else:
        yield _Leaf(place, before, now)


def _alarms(before: dict[str, Any], now: dict[str, Any]) -> Iterator[DefinitionChange]:
    hidden = hidden_in(now)
    if hidden is not None:
        place = ".".join(map(str, hidden.place)) or "definition"
        yield DefinitionChange(place, f"has the invisible character {hidden.code_point}", is_alarming=True)
    old_words, new_words = (set(_WORD.findall(" ".join(texts_in(one)))) for one in (before, now))
    for word in sorted(new_words - old_words)[:_MAX_WORDS]:
        if not word.isascii() and drawn(word).isascii():
            points = " ".join(f"U+{ord(letter):04X}" for letter in word if not letter.isascii())
            text = f"the word {flat(word, 60)!r} imitates {drawn(word)!r}: {points}"
            yield DefinitionChange("look-alike", text, is_alarming=True)
    old_addresses, addresses = (set(_ADDRESS.findall(" ".join(texts_in(one)))) for one in (before, now))
    for address in sorted(addresses - old_addresses)[:_MAX_SHOWN]:
        yield DefinitionChange("address", f"new: {flat(address, _SHOWN_CHARS)}", is_alarming=bool(before))


def texts_in(value: Any) -> Iterable[str]:
    """Every text in a decoded value."""
    waiting = [value]
    while waiting:
        held = waiting.pop()
        if isinstance(held, str):
            yield held
        elif isinstance(held, dict):
            waiting += held.values()
        elif isinstance(held, list):
            waiting += held


def _shown(value: Any) -> str:
    return flat(value if isinstance(value, str) else encode_json(value).decode(), _SHOWN_CHARS)
