"""A key is its caller; what is no key is refused without a look-up, and in other words than no key at all."""

from __future__ import annotations

import time

import pytest

from pactgate.core.api_key import write_key
from pactgate.core.principal import Principal, PrincipalKind
from pactgate.inbound.api_keys import ApiKeys
from pactgate.inbound.auth import Guard
from pactgate.inbound.credentials import Admission, AuthError
from pactgate.state.key_file import KeyRing, add_key, rotate_key
from tests.support.facing import modern, serving

NOW = time.time()
CI = Principal(
    "key:ci", frozenset({"admin"}), PrincipalKind.KEY, issuer="keys", subject="ci", groups=frozenset({"dev"})
)


def ring_of_ci(expires: float | None = None) -> tuple[KeyRing, str]:
    return add_key(KeyRing(pepper="1" * 64), "ci", now=NOW, expires=expires, groups=("dev",), roles=("admin",))


def asked(keys: ApiKeys, token: str) -> Principal | AuthError | None:
    found = keys.find(token, b"", {})
    return found.principal if isinstance(found, Admission) else found


def test_a_key_and_the_one_that_replaces_it_are_the_same_caller() -> None:
    ring, first = ring_of_ci()
    ring, second = rotate_key(ring, "ci", now=NOW, expires=None, overlap_s=60)
    keys = ApiKeys(ring, lambda: NOW)
    assert asked(keys, first) == asked(keys, second) == CI
    assert keys.used == {key.id for key in ring.keys}
    assert keys.holders() == {CI}
    assert keys.expiries() == [int(NOW + 60)]


def test_what_is_not_a_key_is_left_to_other_sources() -> None:
    assert asked(ApiKeys(ring_of_ci()[0], time.time), "9f86d081884c7d659a2feaa0c55ad015") is None


@pytest.mark.parametrize("wrong", ["typo", "other secret", "other id", "cut", "long"])
def test_a_wrong_key_is_not_accepted(wrong: str) -> None:
    ring, text = ring_of_ci()
    fake = write_key(0, 0)
    changed = {
        "typo": text[:-1] + ("a" if text[-1] != "a" else "b"),
        "other secret": _with_id(text[3:11]),
        "other id": fake,
        "cut": text[:20],
        "long": text + "0",
    }
    keys = ApiKeys(ring, time.time)
    found = asked(keys, changed[wrong])
    assert isinstance(found, AuthError)
    assert (found.status, found.is_guess, "not accepted" in found.message) == (401, True, True)
    assert keys.used == set()


def _with_id(id_: str) -> str:
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    return write_key(sum(digits.index(one) * 62**place for place, one in enumerate(id_)), 1)


def test_an_expired_key_says_so_and_is_no_guess() -> None:
    ring, text = ring_of_ci(expires=NOW + 10)
    assert asked(ApiKeys(ring, lambda: NOW + 9), text) == CI
    found = asked(ApiKeys(ring, lambda: NOW + 10), text)
    assert isinstance(found, AuthError)
    assert (found.is_guess, "expired" in found.message) == (False, True)


async def test_a_missing_key_is_wanted_and_a_wrong_one_not_accepted() -> None:
    ring, text = ring_of_ci()
    guard = Guard(host="127.0.0.1", sources=[ApiKeys(ring, time.time)])
    async with serving(guard=guard) as served:
        messages = []
        for headers in ({}, {"authorization": f"Bearer {text}x"}, {"authorization": f"Bearer {text}"}):
            answer = await served.ask(modern("tools/call", name="echo", **headers))
            messages.append((answer.status, answer.json.get("error", {}).get("message", "")))
        assert [status for status, _ in messages] == [401, 401, 200]
        assert "wanted" in messages[0][1]
        assert "not accepted" in messages[1][1]
