"""Selectors: the words by which permissions and views name tools, prompts and resources.

`crm.get_*` is a pattern of full names (tools and prompts) and full URIs (resources, `crm+file:///*`); `server:crm` is everything of a
server; `category:query`, `annotation:readOnly` and `effect:network` are tools of a kind. Must not: know what is served.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from enum import StrEnum
from fnmatch import translate
from functools import lru_cache
from typing import Final, NamedTuple

from pactgate.config.problems import ValueFault, nearest, show
from pactgate.config.value_checks import OWN_SERVER_ID
from pactgate.core.contract import CATEGORIES, Effect


class SelectorKind(StrEnum):
    """What a selector looks at."""

    NAME = "name"
    SERVER = "server"
    CATEGORY = "category"
    ANNOTATION = "annotation"
    EFFECT = "effect"


ANNOTATIONS: Final = ("readOnly", "destructive", "idempotent", "openWorld")
_WORDS: Final = {
    SelectorKind.CATEGORY: CATEGORIES,
    SelectorKind.ANNOTATION: ANNOTATIONS,
    SelectorKind.EFFECT: tuple(effect.value for effect in Effect),
}
_PREFIX: Final = re.compile(r"([A-Za-z]+):([^+]*)")
_SPECIAL: Final = re.compile(r"[*?]")
_SUBSTITUTES: Final = ("", "\0", "\0\0\0")


class Selector(NamedTuple):
    """One selector; `value` is a pattern of names, a server id, or a word of its kind."""

    kind: SelectorKind
    value: str

    @property
    def is_everything(self) -> bool:
        return self.kind is SelectorKind.NAME and not self.value.strip("*")

    def covers(self, other: Selector) -> bool:
        """Whether it certainly selects everything that the other one selects."""
        if self.is_everything or self == other:
            return True
        if self.kind is SelectorKind.SERVER:
            return other.kind is SelectorKind.NAME and servers_of(other, (self.value,), is_certain=True) == (
                self.value,
            )
        if self.kind is not SelectorKind.NAME or other.kind is not SelectorKind.NAME:
            return False
        examples = (other.value.replace("*", text).replace("?", "\0") for text in _SUBSTITUTES)
        return all(matches(self.value, example) for example in examples)

    def may_meet(self, other: Selector) -> bool:
        """Whether there may be something that both select."""
        if self.kind is not SelectorKind.NAME or other.kind is not SelectorKind.NAME:
            return True
        one, two = (_SPECIAL.split(each.value, maxsplit=1)[0] for each in (self, other))
        return one.startswith(two) or two.startswith(one)

    def __str__(self) -> str:
        return self.value if self.kind is SelectorKind.NAME else f"{self.kind}:{self.value}"


EVERYTHING: Final = Selector(SelectorKind.NAME, "*")


def read_selector(text: str) -> Selector:
    """The selector of a text that `check_selector` accepts."""
    prefix = _PREFIX.fullmatch(text)
    return Selector(SelectorKind(prefix[1]), prefix[2]) if prefix else Selector(SelectorKind.NAME, text)


def check_selector(text: str) -> ValueFault | None:
    prefix = _PREFIX.fullmatch(text)
    if prefix is None:
        if text.partition(".")[0] == OWN_SERVER_ID:
            return ValueFault(
                "The gateway's own tools are for the role admin.", "Give a token this role in auth.tokens."
            )
        return None
    kinds = [kind.value for kind in SelectorKind if kind is not SelectorKind.NAME]
    if prefix[1] not in kinds:
        return ValueFault(f"{show(prefix[1])} is no kind of selector.", _did_you_mean(prefix[1], kinds))
    words = _WORDS.get(SelectorKind(prefix[1]))
    if words is not None and prefix[2] not in words:
        return ValueFault(f"There is no {prefix[1]} {show(prefix[2])}.", _did_you_mean(prefix[2], words))
    return None


def servers_of(selector: Selector, servers: Collection[str], *, is_certain: bool = False) -> tuple[str, ...]:
    """The servers that can have something of a selector; with `is_certain`, those that have everything of it."""
    if selector.kind is SelectorKind.SERVER:
        return tuple(server for server in servers if server == selector.value)
    if selector.kind is not SelectorKind.NAME:
        return () if is_certain else tuple(servers)
    start = _SPECIAL.split(selector.value, maxsplit=1)[0]
    named = re.split(r"[.+]", start, maxsplit=1)
    if len(named) > 1:
        return tuple(server for server in servers if server == named[0])
    if is_certain:
        return ()
    is_open = start != selector.value
    return tuple(server for server in servers if is_open and server.startswith(start))


def matches(pattern: str, name: str) -> bool:
    """`*` stands for any characters, `?` for one; every other character for itself."""
    return _compiled(pattern).match(name) is not None


def compiled(pattern: str) -> re.Pattern[str]:
    """The whole name has to match. No star is tried a second time, so the name may be anybody's."""
    return re.compile(translate(pattern.replace("[", "[[]")))


_compiled: Final = lru_cache(maxsize=4096)(compiled)


def _did_you_mean(word: str, known: Collection[str]) -> str:
    close = nearest(word, known)
    return f'Did you mean "{close}"?' if close else f"There are: {', '.join(known)}."
