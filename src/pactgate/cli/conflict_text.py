"""Conflicts between servers as sentences. Conflicts of one kind between the same servers are summed up in one sentence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from pactgate.catalog.conflicts import Conflict, ConflictSeverity
from pactgate.core.display import cut

_ALIKE: Final = 3
"""More conflicts than this of one kind between the same servers are summed up."""
_SUBJECTS: Final = 8
_SUBJECT_CHARS: Final = 40


class ConflictSentence(NamedTuple):
    """One line of output."""

    severity: ConflictSeverity
    text: str


def sentences(hazards: Iterable[Conflict]) -> list[ConflictSentence]:
    groups: dict[tuple[str, str, tuple[str, ...]], list[Conflict]] = {}
    for hazard in hazards:
        groups.setdefault((hazard.severity, hazard.kind, hazard.servers), []).append(hazard)
    return [sentence for alike in groups.values() for sentence in _sum_up(alike)]


def has_conflict(hazards: Iterable[Conflict]) -> bool:
    """Whether there is a conflict that should be resolved; notes are informational."""
    return any(hazard.severity is ConflictSeverity.HAZARD for hazard in hazards)


def _sum_up(alike: list[Conflict]) -> list[ConflictSentence]:
    if len(alike) <= _ALIKE:
        return [ConflictSentence(hazard.severity, hazard.message) for hazard in alike]
    first, *others = alike
    subjects = ", ".join(cut(hazard.subject, _SUBJECT_CHARS) for hazard in others[:_SUBJECTS])
    rest = f" and {len(others) - _SUBJECTS} more" if len(others) > _SUBJECTS else ""
    return [ConflictSentence(first.severity, f"{first.message} The same applies to {subjects}{rest}.")]
