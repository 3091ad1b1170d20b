"""Tokens that come and go are masked wherever they stand, at next to no cost for one more."""

from __future__ import annotations

import json
import secrets
from urllib.parse import quote

import pytest

from pactgate.core import token_words
from pactgate.core.masking import Mask
from pactgate.core.token_words import TokenWords, is_word

TOKEN = "access-8f14e45fceea167a"


def words(*tokens: str) -> TokenWords:
    found = TokenWords()
    found.add(tokens)
    return found


@pytest.mark.parametrize(
    "text",
    [
        TOKEN,
        f"Bearer {TOKEN}",
        f"access_token={TOKEN}&x=1",
        json.dumps({"a": f"\u0001{TOKEN}"}),
        quote(f"https://a.example/?t={TOKEN}", safe=""),
        f"before{TOKEN}after",
        f"{TOKEN}{TOKEN}",
        f"some_long_parameter_name={TOKEN}",
    ],
)
def test_a_token_is_masked_wherever_it_stands(text: str) -> None:
    masked = words(TOKEN).mask(text)
    assert TOKEN not in masked
    assert masked == text.replace(TOKEN, "***")


def test_everything_else_stays_as_it_is() -> None:
    text = f"{TOKEN[:-1]} {TOKEN[1:]} and a-long-word-of-nobody-in-particular"
    assert words(TOKEN).mask(text) == text
    assert TokenWords().mask(TOKEN) == TOKEN


def test_of_two_tokens_with_one_beginning_each_is_found() -> None:
    longer = f"{TOKEN}-and-more"
    assert words(TOKEN, longer).mask(f"{longer} {TOKEN}") == "*** ***"


def test_only_what_no_format_escapes_is_a_word() -> None:
    assert is_word(TOKEN)
    assert not any(is_word(token) for token in ("", "short", f"{TOKEN}+/=", f"{TOKEN} {TOKEN}", f"{TOKEN}\n"))


def test_the_oldest_is_forgotten_and_all_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_words, "MAX_TOKENS", 2)
    first, second, third = (secrets.token_urlsafe(32).replace("_", "a") for _ in range(3))
    known = words(first, second, third)
    assert known.mask(f"{first} {second} {third}") == f"{first} *** ***"
    known.clear()
    assert known.mask(second) == second


def test_a_mask_has_them_beside_its_secrets() -> None:
    mask = Mask(["hunter22"])
    mask.know_tokens([TOKEN, f"{TOKEN}+/="])
    assert mask(f"hunter22 {TOKEN} {TOKEN}+/=") == "*** *** ***"
    assert TOKEN[:10] not in mask.start(f"{'x' * 90} {TOKEN}", 110), "one that was cut in two is not shown either"
    mask.know_tokens(["another-8f14e45fceea167a"], instead=True)
    assert mask(f"{TOKEN} another-8f14e45fceea167a") == f"{TOKEN} ***"
