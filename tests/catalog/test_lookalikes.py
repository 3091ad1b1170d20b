"""Names that programs or eyes take for one another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.catalog.lookalikes import drawn, fold, separated


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Read", "read"),
        ("READ_FILE", "read_file"),
        ("\uff52\uff45\uff41\uff44", "read"),  # fullwidth
        ("stra\u00dfe", "STRASSE"),
        ("cafe\u0301", "caf\u00e9"),
        ("\u2113ist", "list"),
        (" read ", "read"),
    ],
)
def test_case_and_forms_are_folded(one: str, other: str) -> None:
    assert fold(one) == fold(other)


@pytest.mark.parametrize(
    ("one", "other"), [("a.b", "a__b"), ("read-file", "read_file"), ("A.B", "a__b"), ("read file", "read_file")]
)
def test_what_stands_between_words_has_one_spelling(one: str, other: str) -> None:
    assert fold(one) != fold(other)
    assert separated(one) == separated(other)


def test_one_underscore_is_not_two() -> None:
    assert separated("files_read") != separated("files.read")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("r\u0435ad", "read"),  # Cyrillic
        ("\u0405\u0415ND", "SEND"),
        ("\u03c1\u03b1y", "pay"),  # Greek
        ("readFiIe", "readFile"),
        ("l0g1n", "login".replace("i", "l")),
        ("rnail", "mail"),
        ("re\ufe0fad", "read"),  # a variation selector
        ("re\u3164ad", "read"),  # a filler that is drawn as nothing
        ("read\u2010file", "read-file"),
        ("f\u0456les\u2024read", "files.read"),
    ],
)
def test_what_is_drawn_alike_is_recognised(one: str, other: str) -> None:
    assert separated(one) != separated(other)
    assert drawn(one) == drawn(other)


@pytest.mark.parametrize(("one", "other"), [("read", "write"), ("\u8aad\u3080", "\u66f8\u304f"), ("tail", "tall")])
def test_different_names_stay_different(one: str, other: str) -> None:
    assert drawn(one) != drawn(other)


@given(st.text(max_size=300))
def test_any_text_can_be_compared(name: str) -> None:
    for form in (fold, separated, drawn):
        assert form(name) == form(name)
    assert len(drawn(name)) <= 20 * len(name)


@given(st.text(alphabet=st.characters(categories=["L"]), min_size=1, max_size=20))
def test_what_is_equal_when_folded_is_equal_however_it_is_separated(name: str) -> None:
    assert fold(fold(name)) == fold(name)
    assert separated(fold(name)) == separated(name)
