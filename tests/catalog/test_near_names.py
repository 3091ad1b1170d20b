"""Whoever asks for a name that nobody offers hears what was probably meant."""

from __future__ import annotations

import time

import pytest

from pactgate.catalog.near_names import Adviser, near_names

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
    assert Adviser()("x", OFFERED, ["files"]) == "Not available at the moment, and may have it: files."
    assert Adviser()("x", [], [f"s{number}" for number in range(9)]).endswith("s4 and 4 more.")
    assert Adviser()("x", [], []) == ""


def test_among_many_names_alike_it_takes_no_time_to_find_the_nearest() -> None:
    offered = [f"files.get_the_object_of_kind_{number:03d}_from_the_remote_storage_area" for number in range(500)]
    began = time.process_time()
    assert near_names("get_the_object_of_kind_4711_from_the_remote_storage_area", offered)
    assert near_names("gte_teh_ojbect_fo_knid_abc_form_teh_rmeote_sotrage_raea" * 2, offered) == []
    assert time.process_time() - began < 0.05


def test_a_name_of_any_length_among_many_is_answered() -> None:
    assert near_names("x" * 1_000_000, (f"server.tool_{number}" for number in range(1_000_000))) == []


def test_who_asks_again_and_again_is_soon_told_of_no_names_but_still_of_servers() -> None:
    advise, offered = Adviser(), [f"server.tool_{number}" for number in range(500)]
    answers = [advise("server.tool_x", offered, ["files"]) for _ in range(500)]
    assert all("Did you mean" in answer for answer in answers[:2])
    assert "Did you mean" not in answers[-1]
    assert all("may have it: files." in answer for answer in answers)


def test_asking_without_end_takes_a_tenth_of_the_processor() -> None:
    advise, offered = Adviser(), [f"server.tool_{number}" for number in range(500)]
    helped, until = 0.0, time.monotonic() + 0.5
    while time.monotonic() < until:
        began = time.thread_time()
        if "Did you mean" in advise("server.tool_x", offered, []):
            helped += time.thread_time() - began
    assert helped < 0.05 + 0.05 + 0.02, "what was saved up, a tenth of half a second, and one search too many"
