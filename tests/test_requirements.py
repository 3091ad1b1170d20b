"""Manifest and tests hold together: nothing is claimed without a test, and no test claims what nobody asked for."""

from __future__ import annotations

import importlib
import re
from functools import reduce

import pytest

from tests.requirements import ALL, DOCUMENTS
from tests.requirements.entry import STILL_MISSING, Requirement
from tests.requirements.markers import UnreadableMarkerError, marked_ids, markers
from tests.support.each import each

EXPECTED_PER_DOCUMENT = (9, 24, 7, 12, 19)


def test_every_requirement_of_the_five_documents_is_listed_once() -> None:
    assert tuple(len(entries) for _, entries in DOCUMENTS) == EXPECTED_PER_DOCUMENT
    assert len({entry.id for entry in ALL}) == len(ALL)
    for number, (_, entries) in enumerate(DOCUMENTS):
        assert all(re.fullmatch(rf"S{number}/[A-Z0-9-]+", entry.id) for entry in entries)


@each("requirement", ALL)
def test_each_requirement_is_one_sentence_with_a_source(requirement: Requirement) -> None:
    assert requirement.statement.endswith(".")
    assert ". " not in requirement.statement
    assert ", " in requirement.source


@each("requirement", ALL)
def test_what_enforces_a_requirement_exists(requirement: Requirement) -> None:
    for target in requirement.enforced_by:
        module, _, attribute = target.partition(":")
        assert reduce(getattr, attribute.split("."), importlib.import_module(module)) is not None


@each("requirement", ALL)
def test_a_requirement_is_enforced_and_tested_or_says_what_it_waits_for(requirement: Requirement) -> None:
    tests = markers().get(requirement.id, [])
    if requirement.deferred is None:
        assert requirement.enforced_by, "nothing is deferred, so enforced_by must name what keeps the promise"
        assert tests, f'nothing is deferred, so a test must carry @pytest.mark.requirement("{requirement.id}")'
    elif tests:
        assert requirement.deferred.startswith(STILL_MISSING), (
            f"{', '.join(tests)} prove a part: clear `deferred`, or let it say {STILL_MISSING!r} and what is unproved"
        )
    else:
        assert requirement.deferred.strip()
        assert not requirement.deferred.startswith(STILL_MISSING), "no test proves any part of it"


def test_every_marked_test_names_a_known_requirement() -> None:
    assert markers().keys() <= {entry.id for entry in ALL}


def test_markers_are_found_wherever_pytest_accepts_them() -> None:
    source = (
        "pytestmark = [pytest.mark.requirement('A'), pytest.mark.other('B')]\n"
        "@pytest.mark.requirement('C', 'D')\ndef test_x(): ...\n"
        "param = pytest.param(1, marks=pytest.mark.requirement('E'))\n"
    )
    assert sorted(marked_ids(source, "test_x.py")) == ["A", "C", "D", "E"]


def test_a_marker_that_hides_its_id_is_refused() -> None:
    with pytest.raises(UnreadableMarkerError):
        list(marked_ids("@pytest.mark.requirement(NAME)\ndef test_x(): ...\n", "test_x.py"))
