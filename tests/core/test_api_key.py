"""The form of an API key tells a typo before anything is looked up, and lets it be masked wherever it stands."""

from __future__ import annotations

import string

from hypothesis import given
from hypothesis import strategies as st

from pactgate.core.api_key import MAX_TRACE_CHARS, write_key
from pactgate.core.api_key import read_id as id_of
from pactgate.core.masking import Mask

keys = st.builds(write_key, st.integers(0, 62**8 - 1), st.integers(0, 2**256 - 1))


@given(keys)
def test_a_key_has_its_id_256_bits_and_a_checksum(text: str) -> None:
    prefix, id_, secret, checksum = text.split("_")
    assert (prefix, id_of(text), len(secret), len(checksum)) == ("pg", id_, 43, 6)
    assert len(text) <= MAX_TRACE_CHARS


@given(keys, st.integers(0, 63), st.sampled_from(string.ascii_letters + string.digits + "_"))
def test_one_wrong_character_is_noticed(text: str, place: int, wrong: str) -> None:
    place %= len(text)
    if text[place] != wrong:
        assert id_of(text[:place] + wrong + text[place + 1 :]) is None


@given(keys, st.integers(0, 30))
def test_a_key_is_masked_wherever_it_stands_also_cut_or_mistyped(text: str, lost: int) -> None:
    secret = text.split("_")[2]
    for shown in (
        f"Bearer {text}!",
        f'{{"a":"{text}"}}',
        f"?token={text[: len(text) - lost]}&b=1",
        text[:40] + "X" + text[41:],
    ):
        assert not any(secret[at : at + 8] in Mask()(shown) for at in range(len(secret) - 8))


def test_what_only_resembles_a_key_is_left_alone() -> None:
    text = "pg_dump pg_stat_activity pg_catalog_12345678 pg_12345678_short"
    assert Mask()(text) == text
