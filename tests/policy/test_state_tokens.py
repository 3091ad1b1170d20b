"""A seal opens for the call it was made for, in time, and for nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.policy.state_tokens import StateBinding, StateSigner, owner_of_state
from tests.support.facing import Clock

CALL = StateBinding("ada", "files", "tools/call", {"name": Raw(b'"x"'), "arguments": Raw(b'{"a":1,"b":[2.5,null]}')})


def made(life_s: float = 10.0, content: str = "content") -> tuple[StateSigner, str, Clock]:
    clock = Clock()
    seals = StateSigner(clock)
    return seals, seals.seal("kind", content, CALL, life_s), clock


def refusal_of(seals: StateSigner, sealed: str, binding: StateBinding = CALL) -> GatewayFailure:
    with pytest.raises(GatewayFailure) as caught:
        seals.open(sealed, binding)
    assert caught.value.kind is Kind.INVALID_PARAMS
    return caught.value


def test_a_state_is_remembered_for_as_long_as_any_replica_accepts_it() -> None:
    """Its clock is as far behind as is allowed, and it allows for the clock of whoever sealed the state."""
    now, slack_s = Clock(), 60.0
    here, behind = (StateSigner(clock, (b"k" * 32,), slack_s) for clock in (now, lambda: now() - slack_s))
    sealed = here.seal("kind", "content", CALL, 10.0)
    left_s = here.life_left_s(here.open(sealed, CALL))
    now.now += left_s - 1
    assert behind.open(sealed, CALL).content == "content"
    now.now += 1
    refusal_of(behind, sealed)


@given(st.text())
def test_what_was_sealed_is_what_is_opened(content: str) -> None:
    if any(0xD800 <= ord(letter) <= 0xDFFF for letter in content):
        return
    seals, sealed, _ = made(content=content)
    opened = seals.open(sealed, CALL)
    assert (opened.kind, opened.content) == ("kind", content)


def test_the_same_parameters_spelt_otherwise_are_the_same_call() -> None:
    seals, sealed, _ = made()
    seals.open(
        sealed, replace(CALL, params={"arguments": Raw(b'{ "b":[2.50,null], "a":1 }'), "name": Raw(b'"\\u0078"')})
    )


@pytest.mark.parametrize(
    "change",
    [
        {"subject": "eve"},
        {"server": "mail"},
        {"method": "prompts/get"},
        {"params": {"name": Raw(b'"x"')}},
        {"params": {**CALL.params, "arguments": Raw(b'{"a":2,"b":[2.5,null]}')}},
        {"params": {**CALL.params, "more": Raw(b"1")}},
    ],
)
def test_it_does_not_open_for_another_call_or_caller(change: dict[str, Any]) -> None:
    seals, sealed, _ = made()
    refusal_of(seals, sealed, replace(CALL, **change))


@given(st.data())
def test_no_altered_text_opens(data: st.DataObject) -> None:
    seals, sealed, _ = made()
    at = data.draw(st.integers(0, len(sealed) - 1))
    letter = data.draw(st.characters(codec="utf-8"))
    altered = sealed[:at] + letter + sealed[at + 1 :]
    if altered != sealed:
        refusal_of(seals, altered)


@pytest.mark.parametrize("junk", ["", "a", "====", "\u00e9", "x" * 100, "A" * 64])
def test_junk_does_not_open(junk: str) -> None:
    refusal_of(made()[0], junk)


def test_it_expires() -> None:
    seals, sealed, clock = made(life_s=10)
    clock.now += 9.99
    seals.open(sealed, CALL)
    clock.now += 0.01
    assert "expired" in refusal_of(seals, sealed).message


def test_another_process_does_not_open_it() -> None:
    _, sealed, clock = made()
    refusal_of(StateSigner(clock), sealed)


def test_numbers_beyond_any_machine_are_part_of_the_binding() -> None:
    seals = StateSigner(Clock())
    big = replace(CALL, params={"arguments": Raw(b'{"n":1e999,"m":18446744073709551616}')})
    sealed = seals.seal("kind", "c", big, 1)
    seals.open(sealed, big)
    refusal_of(seals, sealed, replace(CALL, params={"arguments": Raw(b'{"n":1e998,"m":18446744073709551616}')}))


@pytest.mark.parametrize("skew_s", [-30.0, 30.0])
def test_a_replica_whose_clock_differs_by_half_a_minute_opens_what_another_sealed(skew_s: float) -> None:
    here, there = Clock(), Clock()
    there.now = here.now + skew_s
    sealed = StateSigner(here, (b"k" * 32,), slack_s=60).seal("k", "content", CALL, 10, owner="aa")
    assert StateSigner(there, (b"n" * 32, b"k" * 32), slack_s=60).open(sealed, CALL).content == "content"
    assert owner_of_state(sealed) == "aa"


@pytest.mark.parametrize("text", ["", "x", "é", "A" * 64, "=" * 8])
def test_a_text_that_is_no_state_has_no_owner(text: str) -> None:
    assert owner_of_state(text) is None
