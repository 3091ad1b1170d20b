"""Problems are shown with their place, all of them, and can do no harm to the terminal that shows them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.config.problems import (
    ConfigFindings,
    ConfigProblem,
    ConfigurationError,
    FilePosition,
    LineIndex,
    UnreadableError,
    ValuePosition,
    nearest,
    require_encodable,
    show,
    spell,
)
from pactgate.core.failures import Category, EcosystemCode, GatewayFailure, Kind, Verdict


@pytest.mark.requirement("S4/F4")
def test_a_bad_configuration_is_one_failure_of_the_one_taxonomy() -> None:
    failure = ConfigurationError(
        [ConfigProblem("listen.port", "99999 is more than 65535.", line=3, column=7, file="p.json")]
    )
    assert isinstance(failure, GatewayFailure)
    assert (failure.kind, failure.category) == (Kind.INVALID_CONFIG, Category.CONFIGURATION_ERROR)
    assert (failure.ecosystem, failure.verdict) == (EcosystemCode.INVALID_CONFIG, Verdict.DID_NOT_RUN)
    assert failure.record()["problems"] == [
        {"path": "listen.port", "message": "99999 is more than 65535.", "line": 3, "column": 7, "file": "p.json"}
    ]


def test_a_problem_reads_as_place_setting_fault_and_advice() -> None:
    found = ConfigFindings("pactgate.json")
    path = ("mcpServers", "files", "maxRetries")
    found.add_at(FilePosition(12, 5), path, "99 is more than 10.", "Use a number from 0 to 10.")
    assert str(ConfigurationError(found.problems)) == (
        "pactgate.json:12:5 mcpServers.files.maxRetries: 99 is more than 10. Use a number from 0 to 10."
    )


def test_parts_that_are_not_known_are_left_out_of_the_text() -> None:
    assert str(ConfigProblem("", "The file is empty.", file="a.json")) == "a.json: The file is empty."
    assert str(ConfigProblem("listen.port", "Wrong.")) == "listen.port: Wrong."
    assert str(ConfigProblem("", "Wrong.")) == "Wrong."


def test_problems_are_listed_in_the_order_of_the_file() -> None:
    listed = ConfigurationError(
        [ConfigProblem("b", "x", line=2, column=1), ConfigProblem("a", "x", line=1, column=9)]
    ).problems
    assert [problem.path for problem in listed] == ["a", "b"]


def test_a_flood_of_problems_is_cut_and_counted() -> None:
    failure = ConfigurationError([ConfigProblem(f"key{number}", "Wrong.") for number in range(1000)])
    assert len(failure.problems) == 1000
    assert str(failure).splitlines()[-1] == "and 950 more."
    assert len(failure.record()["problems"]) == 50


def test_keys_that_are_not_plain_words_are_quoted_in_a_path() -> None:
    assert spell(("mcpServers", "my.server", "args", 2)) == 'mcpServers["my.server"].args[2]'


def test_text_of_a_file_can_not_move_the_cursor_and_is_cut() -> None:
    assert show("\x1b[2J\u202e") == '"\\u001b[2J\\u202e"'
    assert spell(("\x1b]0;owned\x07",)) == '["\\u001b]0;owned\\u0007"]'
    assert len(show("x" * 10_000)) <= 60
    assert len(spell(("x" * 10_000,))) <= 64


@pytest.mark.parametrize(
    ("word", "meant"),
    [("maxretries", "maxRetries"), ("MaxRetrys", "maxRetries"), ("headres", "headers"), ("zzz", None), ("", None)],
)
def test_the_nearest_known_word_is_found_whatever_its_case(word: str, meant: str | None) -> None:
    assert nearest(word, ["maxRetries", "headers", "url"]) == meant


@given(st.text(alphabet="ab\nü\r"), st.data())
def test_an_offset_is_a_line_and_a_column(text: str, data: st.DataObject) -> None:
    offset = data.draw(st.integers(0, len(text)))
    before = text[:offset].split("\n")
    assert LineIndex(text).place(offset) == FilePosition(len(before), len(before[-1]) + 1)


def test_a_problem_is_at_its_key_or_at_its_value_or_at_what_is_around_it() -> None:
    found = ConfigFindings("")
    found.lines = LineIndex('{\n "a": [7]}')
    found.positions = {("a",): ValuePosition(8, 11, key_start=3), ("a", 0): ValuePosition(9, 10)}
    assert found.place_of(("a",)) == FilePosition(2, 2)
    assert found.place_of(("a",), at_value=True) == FilePosition(2, 7)
    assert found.place_of(("a", 0)) == FilePosition(2, 8)
    assert found.place_of(("a", "b", "c")) == FilePosition(2, 2)
    assert found.place_of(("b",)) is None


@given(st.text())
def test_every_text_that_can_be_written_is_accepted(text: str) -> None:
    require_encodable(text, None)


@pytest.mark.parametrize("text", ["\ud800", "a\udfff", "\ude00\ud83d"])
def test_half_a_surrogate_pair_is_refused_at_its_place(text: str) -> None:
    with pytest.raises(UnreadableError) as raised:
        require_encodable(text, FilePosition(1, 2))
    assert raised.value.place == FilePosition(1, 2)
