from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.pages import duration
from bench.publish import DOCS, PublishError, newest, render


def test_the_published_picture_and_tables_are_those_of_the_published_figures() -> None:
    page = (DOCS / "performance.md").read_text()
    picture, text = render(json.loads((DOCS / "performance.json").read_text()), page)
    assert text == page, "run `python -m bench publish`, or undo what was changed by hand between its marks"
    assert picture == (DOCS / "performance.svg").read_text()


def test_every_aim_is_on_the_page_reached_or_not() -> None:
    figures = json.loads((DOCS / "performance.json").read_text())
    page = (DOCS / "performance.md").read_text()
    for aim in [*figures["run"]["aims"], *figures["peers"]["aims"]]:
        word = "reached" if aim["met"] else "**not yet**"
        assert f"| {aim['title']} | {word} |" in page


def test_a_page_without_its_marks_is_left_alone() -> None:
    with pytest.raises(PublishError, match="lacks the lines"):
        render(json.loads((DOCS / "performance.json").read_text()), "# Performance\n")


def test_the_newest_whole_run_is_published_and_not_a_newer_one_of_some_workloads(tmp_path: Path) -> None:
    for name, options in {"1-run": {}, "2-run": {"only": None, "quick": False}, "3-run": {"only": "echo-1"}}.items():
        (tmp_path / f"{name}.json").write_text(json.dumps({"options": options}))
    (tmp_path / "4-run.json").write_text(json.dumps({"options": {"quick": True}}))
    assert newest("run", tmp_path) == tmp_path / "2-run.json"
    assert newest("soak", tmp_path) is None


def test_durations_are_written_as_people_say_them() -> None:
    assert [duration(us) for us in (9.96, 99.94, 123.4, 1234.0, 27_900.0, 1_526_100.0)] == [
        "10.0 us",
        "99.9 us",
        "123 us",
        "1.23 ms",
        "27.9 ms",
        "1.53 s",
    ]
