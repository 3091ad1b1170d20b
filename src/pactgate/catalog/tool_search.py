"""Finds tools by words: BM25 over names, descriptions, arguments and enum values, in memory, the same for the same tools and query.

Fields count by weight (name 3, title and description 2, arguments 1), each saturated by itself; k1 and b are for short texts. Words that
mean the same count less than the word itself; a name that the query covers, and a server that it names, count more. Ties keep the order of
the list. Bounded by the definitions, of which each gives so many terms at most. Must not: know callers, or what was asked before.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice, pairwise
from typing import Any, Final, NamedTuple

from pactgate.core.values import Tool
from pactgate.protocol import messages

K1: Final = 0.9
B: Final = 0.4
WEIGHTS: Final = (3, 2, 1)
"""Of the name, of title and description, and of the arguments."""
LENGTHS: Final = (0.75, B, B)
"""How much the length of each field counts: every word of a name that the query does not have makes it another tool."""
SYNONYM_SHARE: Final = 0.75
COVER_GAIN: Final = 0.6
SERVER_GAIN: Final = 1.5
_SAME: Final = (
    "create add make new open post insert register",
    "delete remove cancel drop forget clear",
    "update edit change modify set rename",
    "list all which show",
    "get show read view display see look what",
    "find search lookup",
    "folder directory",
    "repository repo",
    "picture image photo png",
    "pr pull",
    "run dispatch trigger start execute",
    "download fetch",
    "person user people member",
    "issue bug ticket",
    "big large size",
    "several multiple",
    "login sign log",
    "alive ping health",
    "page url web website",
    "compare diff difference",
    "ask request",
    "link relation relationship connection",
    "article entry record item row",
    "remember memory note observation",
    "repeat echo",
    "text content",
    "cancel abort stop",
)
"""Words that people and tools use for the same: verbs of every API, and a few nouns."""
MAX_TERMS: Final = 2000
"""Of one field of one tool."""
_MAX_WORD_CHARS: Final = 40
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_STOP: Final = frozenset(
    _WORD.findall(
        "a an and any are as at be by called can do does for from has have how i in into is it its me my named of on one or our please so "
        "that the their them there these this to us want was we when where who will with you your"
    )
)
_MIN_STEM: Final = 3


class Posting(NamedTuple):
    place: int
    weight: float


class ToolSearch:
    """An index of some tools."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self.tools = tuple(tools)
        self._postings: dict[str, list[Posting]] = {}
        self._names = [frozenset(terms_of(tool.exposed_name.removeprefix(tool.server))) for tool in self.tools]
        fields = [_fields(tool) for tool in self.tools]
        averages = [sum(map(Counter.total, field)) / max(len(fields), 1) or 1.0 for field in zip(*fields, strict=True)]
        for place, counted in enumerate(fields):
            weights: dict[str, float] = {}
            for terms, weight, b, average in zip(counted, WEIGHTS, LENGTHS, averages, strict=False):
                norm = K1 * (1 - b + b * terms.total() / average)
                for term, count in terms.items():
                    weights[term] = weights.get(term, 0.0) + weight * count * (K1 + 1) / (count + norm)
            for term, value in weights.items():
                self._postings.setdefault(term, []).append(Posting(place, value))

    def find(self, query: str) -> list[Tool]:
        """The tools that have a word of the query or one that means the same, the best first."""
        scores: dict[int, float] = {}
        meanings = list(_meanings(query))
        for words in meanings:
            best: dict[int, float] = {}
            for word, share in words.items():
                postings = self._postings.get(word, ())
                rarity = math.log(1 + (len(self.tools) - len(postings) + 0.5) / (len(postings) + 0.5))
                for place, weight in postings:
                    gain = share * rarity * weight
                    best[place] = max(best.get(place, 0.0), gain)
            for place, gain in best.items():
                scores[place] = scores.get(place, 0.0) + gain
        meant = {word for words in meanings for word in words}
        named = set(terms_of(query))
        for place in scores:
            name = self._names[place]
            scores[place] *= 1 + COVER_GAIN * len(name & meant) / (len(name) or 1)
            if stem(self.tools[place].server) in named:
                scores[place] *= SERVER_GAIN
        return [self.tools[place] for place in sorted(scores, key=lambda place: (-scores[place], place))]


def _meanings(query: str) -> Iterator[dict[str, float]]:
    """Each word of a query, with the words that mean the same and what they count."""
    for term in dict.fromkeys((*terms_of(query), *_joined(query))):
        yield {**dict.fromkeys(SYNONYMS.get(term, ()), SYNONYM_SHARE), term: 1.0}


def _joined(query: str) -> Iterator[str]:
    """Neighbouring words as one: `log in` is the tool `login`."""
    words = [match[0][:_MAX_WORD_CHARS].lower() for match in _WORD.finditer(query)]
    for first, second in pairwise(words):
        yield stem(first + second)


def terms_of(text: str) -> Iterator[str]:
    """The words of a text, without those that say nothing: split at case, digits and punctuation, in lower case, without endings."""
    for match in _WORD.finditer(text):
        word = match[0][:_MAX_WORD_CHARS].lower()
        if word not in _STOP:
            yield stem(word)


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """A word without its English ending, roughly: `branches`, `branch` and `branching` are one."""
    for ending, instead in (
        ("ies", "y"),
        ("sses", "ss"),
        ("ches", "ch"),
        ("shes", "sh"),
        ("xes", "x"),
        ("ees", ""),
        ("ee", ""),
        ("ers", ""),
        ("er", ""),
        ("ing", ""),
        ("ed", ""),
        ("s", ""),
    ):
        if word.endswith(ending) and len(word) - len(ending) >= _MIN_STEM and not word.endswith("ss"):
            return _undoubled(word[: -len(ending)] + instead)
    return word[:-1] if word.endswith("e") and len(word) > _MIN_STEM + 1 else word


def _undoubled(word: str) -> str:
    """`running` is `run`, and `creates` and `creating` are one."""
    if len(word) > _MIN_STEM and word[-1] == word[-2] and word[-1] not in "lsz":
        return word[:-1]
    return word[:-1] if word.endswith("e") and len(word) > _MIN_STEM + 1 else word


SYNONYMS: Final = {
    stem(word): tuple(
        dict.fromkeys(stem(other) for same in _SAME if word in same.split() for other in same.split() if other != word)
    )
    for word in dict.fromkeys(" ".join(_SAME).split())
}


def _fields(tool: Tool) -> tuple[Counter[str], ...]:
    """The terms of the name, of title and description, and of the arguments."""
    definition: dict[str, Any] = messages.value(tool.exposed_definition)
    name = f"{tool.server} {tool.exposed_name.removeprefix(tool.server)}"
    text = f"{definition.get('title') or ''} {definition.get('description') or ''}"
    arguments = " ".join(_argument_texts(definition.get("inputSchema")))
    return tuple(Counter(islice(terms_of(field), MAX_TERMS)) for field in (name, text, arguments))


def _argument_texts(schema: Any) -> Iterator[str]:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    for name, one in properties.items() if isinstance(properties, dict) else ():
        yield name
        if isinstance(one, dict):
            yield str(one.get("description") or "")
            choices = one.get("enum")
            yield from (
                (str(choice) for choice in choices if isinstance(choice, str)) if isinstance(choices, list) else ()
            )
