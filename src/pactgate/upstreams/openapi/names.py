"""Assigns names to operations: legal for every client, readable, and derived from the document alone.

The name of an operation is its id, or else its method and the words of its path. Where several operations want one name, all of them
take a longer one, so that neither their order nor the operator's choice of operations matters. Must not: number anything.
Serves D3 for REST tools.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

MAX_NAME_CHARS: Final = 64
MAX_ARGUMENT_CHARS: Final = 64
_SHORTEST_LIMIT: Final = 24
_SEPARATOR_CHARS: Final = 2
_MARK_CHARS: Final = 8
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_-]+")
_UNSAFE_ARGUMENT: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_SAFE_ARGUMENT: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")


class OperationKey(NamedTuple):
    """Identifies an operation: method and path are unique in a document; the id may be missing or used twice."""

    method: str
    path: str
    operation_id: str | None = None


def limit_for(server: str) -> int:
    """The longest name for which `server__name` is short enough."""
    return max(_SHORTEST_LIMIT, MAX_NAME_CHARS - _SEPARATOR_CHARS - len(server))


def assign_names(subjects: Collection[OperationKey], limit: int = MAX_NAME_CHARS) -> dict[OperationKey, str]:
    """One name each, whatever their order. Names differ by more than case."""
    names: dict[OperationKey, str] = {}
    taken: set[str] = set()
    waiting = sorted(set(subjects), key=lambda subject: (subject.path, subject.method, subject.operation_id or ""))
    for candidates in (_by_id, _by_words, _by_all_words):
        offered = {subject: _fitted(candidates(subject), subject, limit) for subject in waiting}
        wanted = Counter(name.casefold() for name in offered.values() if name)
        granted = {
            subject: name
            for subject, name in offered.items()
            if name and wanted[name.casefold()] == 1 and name.casefold() not in taken
        }
        names |= granted
        taken |= {name.casefold() for name in granted.values()}
        waiting = [subject for subject in waiting if subject not in granted]
    for subject in waiting:
        name = _marked(_by_words(subject), subject, limit, taken)
        names[subject] = name
        taken.add(name.casefold())
    return names


def argument_names(wire_names: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """The tool's argument for each (place, name) of a request: the name itself where it is legal and unique.

    Of several with one name, the first in the order path, query, header, body keeps it; the others get their place as a prefix.
    """
    order = {"path": 0, "query": 1, "header": 2, "cookie": 3, "body": 4}
    names: dict[tuple[str, str], str] = {}
    taken: set[str] = set()
    for place, wire in sorted(set(wire_names), key=lambda key: (order.get(key[0], 9), key[1])):
        plain = wire if _SAFE_ARGUMENT.fullmatch(wire) else _UNSAFE_ARGUMENT.sub("_", _folded(wire)).strip("_.-")
        choices = [plain[:MAX_ARGUMENT_CHARS], f"{place}_{plain}"[:MAX_ARGUMENT_CHARS]]
        name = next((choice for choice in choices if choice and choice.casefold() not in taken), None)
        if name is None:
            mark = hashlib.sha256(f"{place} {wire}".encode()).hexdigest()[:_MARK_CHARS]
            name = f"{plain[: MAX_ARGUMENT_CHARS - _MARK_CHARS - 1]}_{mark}"
        names[place, wire] = name
        taken.add(name.casefold())
    return names


def is_legal_argument(name: str) -> bool:
    return _SAFE_ARGUMENT.fullmatch(name) is not None


def definition_names(keys: Mapping[str, str]) -> dict[str, str]:
    """A name in `$defs` for each definition, by its key; `keys` gives the name each would like."""
    liked = {key: _UNSAFE_ARGUMENT.sub("_", _folded(wish)).strip("_") or "schema" for key, wish in keys.items()}
    shared = Counter(liked.values())
    marks = {key: hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()[:_MARK_CHARS] for key in keys}
    return {key: name if shared[name] == 1 else f"{name}_{marks[key]}" for key, name in liked.items()}


def _by_id(subject: OperationKey) -> str:
    return _safe(subject.operation_id or "")


def _by_words(subject: OperationKey) -> str:
    """`get_users_by_id` for GET /users/{id}; of the placeholders only those of the last segment are part of the name."""
    segments = [segment for segment in subject.path.split("/") if segment]
    words = [subject.method.lower()]
    for number, segment in enumerate(segments, 1):
        placeholders = _PLACEHOLDER.findall(segment)
        fixed = _PLACEHOLDER.sub(" ", segment).strip()
        words += [fixed] if fixed else []
        if placeholders and number == len(segments):
            words += ["by", *placeholders]
    return "_".join(filter(None, map(_safe, words)))


def _by_all_words(subject: OperationKey) -> str:
    return _safe(subject.method.lower() + _PLACEHOLDER.sub(r"by_\1", subject.path))


def _safe(text: str) -> str:
    return _UNSAFE.sub("_", _folded(text)).strip("_-")


def _folded(text: str) -> str:
    if text.isascii():
        return text
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")


def _fitted(name: str, subject: OperationKey, limit: int) -> str:
    return name if len(name) <= limit else f"{name[: limit - _MARK_CHARS - 1].rstrip('_-')}_{_mark(subject)}"


def _marked(name: str, subject: OperationKey, limit: int, taken: set[str]) -> str:
    """The name with a hash of the operation, a longer one if the short one collides."""
    for chars in range(_MARK_CHARS, _SHORTEST_LIMIT):
        mark = _mark(subject, chars)
        shown = f"{name[: limit - chars - 1].rstrip('_-')}_{mark}"
        if shown.casefold() not in taken:
            return shown
    raise AssertionError("two operations have one digest")


def _mark(subject: OperationKey, chars: int = _MARK_CHARS) -> str:
    text = "\n".join((subject.method, subject.path, subject.operation_id or ""))
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:chars]
