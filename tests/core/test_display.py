"""Foreign text can't do anything to whoever looks at it."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from pactgate.core.display import cut, flat, visible
from tests.support.each import each

CONTROLS = [*range(0x20), *range(0x7F, 0xA0)]
REORDERING = [0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
anything = st.text(st.characters(codec=None, exclude_categories=()), max_size=200)


@each("code", [code for code in CONTROLS if chr(code) not in "\t\n"] + REORDERING)
def test_a_control_or_reordering_character_is_spelt_out(code: int) -> None:
    shown = visible(f"a{chr(code)}b")
    assert shown.startswith("a\\")
    assert shown.endswith("b")
    assert shown.isascii()
    assert shown.isprintable()


def test_what_is_harmless_stays_as_it_is() -> None:
    text = "naïve café, 東京 👩‍🚀 100 %\n\tindented \\x1b"
    assert visible(text) == text


@given(anything)
def test_whatever_comes_in_what_goes_out_can_be_printed(text: str) -> None:
    shown = visible(text)
    assert isinstance(shown.encode(), bytes)
    assert all(character in "\t\n" or unicodedata.category(character) not in ("Cc", "Cs") for character in shown)
    assert visible(shown) == shown


@given(anything, st.integers(1, 50))
def test_a_flat_text_is_one_line_of_bounded_length(text: str, max_chars: int) -> None:
    shown = flat(text, max_chars)
    assert len(shown) <= max_chars
    assert not set(shown) & set("\t\n\r")


def test_line_breaks_become_single_spaces() -> None:
    assert flat("  one\n\n   two\tthree  ", 50) == "one two three"


def test_a_cut_text_says_so() -> None:
    assert (cut("four", 4), cut("longer", 4)) == ("four", "lon…")
