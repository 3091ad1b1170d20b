"""Variables in texts: filled in once, named when they are missing, escaped when they are meant literally."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.config.expand import expand

ENVIRON = {"TOKEN": "s3cr3t", "EMPTY": "", "NESTED": "${TOKEN}", "_x1": "under"}


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("plain $TOKEN $ {TOKEN}", "plain $TOKEN $ {TOKEN}"),
        ("${TOKEN}", "s3cr3t"),
        ("Bearer ${TOKEN}/${TOKEN}", "Bearer s3cr3t/s3cr3t"),
        ("${env:TOKEN}", "s3cr3t"),
        ("${_x1}", "under"),
        ("${MISSING:-fallback}", "fallback"),
        ("${MISSING:-}", ""),
        ("${MISSING:-a:-b $c}", "a:-b $c"),
        ("${EMPTY:-fallback}", "fallback"),
        ("${EMPTY}", ""),
        ("${TOKEN:-fallback}", "s3cr3t"),
        ("$${TOKEN}", "${TOKEN}"),
        ("$${TOKEN} ${TOKEN}", "${TOKEN} s3cr3t"),
    ],
)
def test_a_variable_is_filled_in(text: str, expanded: str) -> None:
    expansion = expand(text, ENVIRON)
    assert (expansion.text, expansion.faults) == (expanded, ())


def test_what_a_variable_holds_is_not_expanded_again() -> None:
    assert expand("${NESTED}", ENVIRON).text == "${TOKEN}"


def test_a_missing_variable_is_named_with_what_to_do() -> None:
    (fault,) = expand("a ${MISSING} b", ENVIRON).missing
    assert "MISSING" in fault.message
    assert "${MISSING:-" in fault.hint


def test_every_fault_of_a_text_is_found() -> None:
    expansion = expand("${A} ${B} ${} ${C:-x}", {})
    assert (len(expansion.faults), len(expansion.missing)) == (1, 2)


@pytest.mark.parametrize("text", ["${", "${A", "${}", "${1A}", "${A-B}", "${A:+x}", "${A:-${TOKEN}}"])
def test_what_looks_like_a_variable_and_is_none_is_a_fault(text: str) -> None:
    assert expand(text, ENVIRON | {"A": "set"}).faults


def test_what_came_from_the_environment_is_told_and_defaults_are_not() -> None:
    assert expand("${TOKEN}${MISSING:-default}", ENVIRON).taken == (("TOKEN", "s3cr3t"),)


@given(st.text())
def test_a_text_can_always_be_written_so_that_it_stays_as_it_is(text: str) -> None:
    if "$${" not in text:
        assert expand(text.replace("${", "$${"), {}).text == text


@given(st.text(alphabet="${}:-AB env"), st.dictionaries(st.sampled_from("AB"), st.text()))
def test_expanding_never_fails(text: str, environ: dict[str, str]) -> None:
    assert isinstance(expand(text, environ).text, str)
