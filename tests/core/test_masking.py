"""Secrets of the configuration are found in every spelling, and nothing else is hidden."""

from __future__ import annotations

import base64
import html
import json
import re
import time
from decimal import Decimal
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from pactgate.capture.redaction import Redaction
from pactgate.core.masking import Mask

anything = st.text(st.characters(codec=None, exclude_categories=()), max_size=200)


def test_a_secret_is_masked_wherever_it_stands() -> None:
    mask = Mask(["s3cret", "s3cret-longer", "a.b*c+"])
    assert mask("x s3cret s3cret-longer a.b*c+ aXb*c+") == "x *** *** *** aXb*c+"


def test_without_secrets_or_with_trivial_ones_nothing_is_masked() -> None:
    assert Mask()("text") == "text"
    assert Mask(["", "a", "on"])("a lion on a mat") == "a lion on a mat"


@given(st.integers(0, 60), st.integers(10, 60), st.text("ab", max_size=30))
def test_cutting_never_bares_part_of_a_secret(before: int, bound: int, after: str) -> None:
    secret = "SECRETVALUE"
    text = "-" * before + secret + after
    mask = Mask([secret])
    for shown in (mask.start(text, bound), mask.end(text, bound)):
        assert len(shown) <= len(text)
        assert not any(secret[start : start + 2] in shown for start in range(len(secret) - 1))


PASSWORD = 'CANARY"quote\\back9'
SPELLINGS = {
    "json": json.dumps(PASSWORD),
    "json in json": json.dumps(json.dumps(PASSWORD)),
    "percent": quote(PASSWORD, safe=""),
    "percent in lower case": quote(PASSWORD, safe="").lower().replace("canary", "CANARY"),
    "form": quote_plus(PASSWORD),
    "html": html.escape(PASSWORD),
    "base64": base64.b64encode(PASSWORD.encode()).decode(),
    "basic credentials": base64.b64encode(f"ops:{PASSWORD}".encode()).decode(),
    "basic credentials of another name": base64.b64encode(f"admin:{PASSWORD}".encode()).decode(),
    "base64 for URLs": base64.urlsafe_b64encode(f"x:{PASSWORD}".encode()).decode().rstrip("="),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_secret_is_masked_in_the_spelling_of_another_format(spelling: str) -> None:
    said = SPELLINGS[spelling]
    shown = Mask([PASSWORD])(f"before {said} after")
    assert "***" in shown
    assert (
        len(shown) <= len("before *** after") + 10
    )  # of base64, the characters that the secret shares with its neighbours


def test_the_password_in_configured_basic_credentials_is_masked() -> None:
    mask = Mask(["Basic " + base64.b64encode(b"ops:hunter2hunter2").decode()])
    assert mask("login of ops with hunter2hunter2 failed") == "login of ops with *** failed"
    assert mask("login of ops:hunter2hunter2 failed") == "login of *** failed"


def test_a_value_is_masked_in_its_texts_keys_and_numbers() -> None:
    mask = Mask(["123456789", PASSWORD])
    said = {
        "n": 123456789,
        "f": 123456789.0,
        "d": Decimal("123456789e400"),
        PASSWORD: [f"x {PASSWORD}", 12, True, None],
    }
    assert mask.value(said) == {"n": "***", "f": "***", "d": "***", "***": ["x ***", 12, True, None]}


def test_json_that_is_not_decoded_is_masked_as_a_value() -> None:
    mask = Mask(["123456789", PASSWORD])
    said = json.dumps({"n": 123456789, "given": PASSWORD}).replace("CANARY", "\\u0043ANARY").encode()
    assert mask.value({"data": Raw(said)}) == {"data": {"n": "***", "given": "***"}}
    kept = Raw(b'{"exact":1e400}')
    assert mask.value([kept]) == [kept]


def test_a_masked_value_is_bounded_whatever_it_was() -> None:
    mask = Mask(["a secret"])
    deep: list[object] = []
    for _ in range(10_000):
        deep = [deep]
    wide = [[1] * 1000] * 1000
    shown = mask.value(
        {"deep": deep, "wide": wide, "long": "x" * 10_000_000, "raw": Raw(b"[%b1]" % (b"1," * 1_000_000))}
    )
    assert len(json.dumps(shown)) < 200_000
    assert mask.value(Raw(b"not json")) == "8 bytes that are not JSON, left out"


def test_a_mask_of_many_secrets_takes_little_time() -> None:
    mask = Mask(f"secret-{number}-{number * number}" for number in range(2000))
    text = "secret-17 is none, but secret-1999-3996001 is one. " * 200
    started = time.process_time()
    assert mask(text).count("***") == 200
    assert time.process_time() - started < 0.5


@given(st.lists(st.sampled_from(["eyJ", "e", "aaaa", "é", "-", "_", ".", " ", "\n", "%"]), max_size=40).map("".join))
def test_a_token_is_masked_wherever_it_begins_and_to_its_end(text: str) -> None:
    assert Mask()(text) == re.sub(r"eyJ[\w-]{8,}(?:\.[\w-]*)+", "***", text)


@pytest.mark.parametrize("text", ["eyJ" * 30_000, "eyJ." * 20_000, "a." * 40_000 + "eyJ", "eyJhbGciOi-" * 8_000])
def test_looking_for_tokens_takes_no_time_in_a_text_made_of_their_beginnings(text: str) -> None:
    began = time.process_time()
    assert Mask()(text) == text
    assert Redaction().message(b'"%b"' % text.encode()) == b'"%b"' % text.encode()
    assert time.process_time() - began < 0.5
