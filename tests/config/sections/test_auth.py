"""Holders and their tokens: one or several, as themselves or as digests, with an end or without."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from typing import Any

import pytest

from pactgate.config.problems import ConfigurationError
from pactgate.config.sections.auth import check_token, expiry_time, token_bits
from tests.config.writing import TOKEN, loaded, paths, problems

DIGEST = "sha256:" + hashlib.sha256(TOKEN.encode()).hexdigest()
STRONG = "9f86d081884c7d659a2feaa0c55ad015"


def auth(**holders: Any) -> dict[str, Any]:
    return {"auth": {"tokens": holders}, "mcpServers": {"files": {"command": "x"}}}


@pytest.mark.parametrize("text", ["", "short", "fifteen-letters", "with spaces in between", "ünïcödeünïcöde!!"])
def test_a_short_or_unsendable_token_is_refused(text: str) -> None:
    assert check_token(text) is not None


@pytest.mark.parametrize("text", ["sha256:", "sha256:" + "0" * 63, "sha256:" + "g" * 64, "sha256:" + "0" * 65])
def test_a_digest_that_no_token_can_have_is_refused(text: str) -> None:
    assert check_token(text) is not None


def test_a_holder_may_have_one_token_or_several(tmp_path: Path) -> None:
    several = [{"token": STRONG}, {"token": DIGEST, "expires": "2099-12-31"}]
    config = loaded(tmp_path, auth(ops={"token": STRONG[::-1], "roles": ["admin"]}, ci={"tokens": several}))
    assert [value.text for value in config.auth.tokens["ci"].values()] == [STRONG, DIGEST]
    assert config.auth.tokens["ops"].values()[0].expires_at == math.inf
    assert config.warnings == ()


@pytest.mark.parametrize(
    ("holder", "wrong"),
    [
        ({}, "token"),
        ({"tokens": []}, "token"),
        ({"token": TOKEN, "tokens": [{"token": STRONG}]}, "tokens"),
        ({"tokens": [{"token": TOKEN}], "expires": "2099-01-01"}, "expires"),
        ({"tokens": [{"expires": "2099-01-01"}]}, "tokens[0].token"),
        ({"token": TOKEN, "expires": "soon"}, "expires"),
        ({"token": TOKEN, "expires": "2099-01-01T12:00"}, "expires"),
        ({"token": TOKEN, "expires": "2099-13-01"}, "expires"),
    ],
)
def test_a_holder_that_contradicts_itself_is_a_problem(holder: dict[str, Any], wrong: str, tmp_path: Path) -> None:
    assert paths(problems(tmp_path, auth(ops=holder))) == [f"auth.tokens.ops.{wrong}"]


def test_a_token_and_its_digest_are_the_same_token(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, auth(ops={"token": TOKEN}, dev={"tokens": [{"token": STRONG}, {"token": DIGEST}]}))
    assert problem.path == "auth.tokens.dev.tokens[1].token"
    assert TOKEN not in str(problem)


def test_a_date_counts_to_the_end_of_its_day_and_a_time_to_itself() -> None:
    assert expiry_time("1970-01-01") == 86400
    assert expiry_time("1970-01-01T01:00:00Z") == 3600
    assert expiry_time("1970-01-01T01:00:00+01:00") == 0
    assert math.isnan(expiry_time("1970-01-01T01:00:00"))


def test_a_token_that_has_expired_is_a_warning(tmp_path: Path) -> None:
    (warning,) = loaded(tmp_path, auth(ops={"token": STRONG, "expires": "2020-01-01"})).warnings
    assert warning.path == "auth.tokens.ops.expires"


@pytest.mark.parametrize(
    "text",
    [
        "a" * 16,
        "a" * 400,
        "0123456789abcdef",
        "abcdefghijklmnop",
        "passwordpassword",
        "test-token-12345",
        "changeme" * 40,
    ],
)
def test_a_token_that_can_be_guessed_is_a_warning(text: str, tmp_path: Path) -> None:
    (warning,) = loaded(tmp_path, auth(ops={"token": text})).warnings
    assert warning.path == "auth.tokens.ops.token"
    assert text not in str(warning)


@pytest.mark.parametrize("text", ["9f86d081884c7d659a2feaa0", "gX3kPz81VbQ0LwYt", STRONG])
def test_a_random_token_of_eighty_bits_is_none(text: str) -> None:
    assert token_bits(text) >= 80


def test_a_role_that_nothing_refers_to_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        loaded(tmp_path, auth(bob={"token": STRONG, "roles": ["admin", "readonly"]}))
    (problem,) = caught.value.problems
    assert problem.path == "auth.tokens.bob.roles[1]"
    assert 'Nothing refers to the role "readonly"' in problem.message
    assert "Roles: admin." in problem.hint
