"""Composition hazards in the sentences a person reads: what is said of the same servers again and again is said once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from pactgate.catalog.conflicts import Conflict, ConflictSeverity
from pactgate.core.display import cut

_ALIKE: Final = 3
"""More of a kind between the same servers than this are summed up."""
_SUBJECTS: Final = 8
_SUBJECT_CHARS: Final = 40


class Sentence(NamedTuple):
    severity: ConflictSeverity
    text: str


def sentences(hazards: Iterable[Conflict]) -> list[Sentence]:
    groups: dict[tuple[str, str, tuple[str, ...]], list[Conflict]] = {}
    for hazard in hazards:
        groups.setdefault((hazard.severity, hazard.kind, hazard.servers), []).append(hazard)
    return [sentence for alike in groups.values() for sentence in _sum_up(alike)]


def is_hazardous(hazards: Iterable[Conflict]) -> bool:
    """Whether anything should be looked at; notes are only worth knowing."""
    return any(hazard.severity is ConflictSeverity.HAZARD for hazard in hazards)


def _sum_up(alike: list[Conflict]) -> list[Sentence]:
    if len(alike) <= _ALIKE:
        return [Sentence(hazard.severity, hazard.message) for hazard in alike]
    first, *others = alike
    subjects = ", ".join(cut(hazard.subject, _SUBJECT_CHARS) for hazard in others[:_SUBJECTS])
    rest = f" and {len(others) - _SUBJECTS} more" if len(others) > _SUBJECTS else ""
    return [Sentence(first.severity, f"{first.message} The same is so for {subjects}{rest}.")]
