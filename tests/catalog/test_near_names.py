"""Whoever asks for a name that nobody offers hears what was probably meant."""

from __future__ import annotations

import pytest

from pactgate.catalog.near_names import advice, near_names

OFFERED = ["almanac.sun_times", "almanac.date_facts", "files.read_file", "notes.read_files"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sun_time", ["almanac.sun_times"]),
        ("almanac.sun_time", ["almanac.sun_times"]),
        ("SUN_TIMES", ["almanac.sun_times"]),
        ("read_file", ["files.read_file", "notes.read_files"]),
        ("completely-different", []),
        ("", []),
    ],
)
def test_names_that_look_alike_are_found(name: str, expected: list[str]) -> None:
    assert near_names(name, OFFERED) == expected


def test_servers_that_are_away_may_have_it() -> None:
    assert advice("x", OFFERED, ["files"]) == "Not available at the moment, and may have it: files."
    assert advice("x", [], [f"s{number}" for number in range(9)]).endswith("s4 and 4 more.")
    assert advice("x", [], []) == ""


def test_a_name_of_any_length_among_many_is_answered() -> None:
    assert near_names("x" * 1_000_000, (f"server.tool_{number}" for number in range(1_000_000))) == []
