from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.pages import duration, figures_page, headline
from bench.publish import DOCS, README, PublishError, newest, render_page, render_picture, render_readme


def published() -> dict[str, Any]:
    figures: dict[str, Any] = json.loads((DOCS / "performance.json").read_text())
    return figures


def with_mixed_rows(figures: dict[str, Any]) -> dict[str, Any]:
    """Figures of a run that measured the mixed workloads, the fixed shape and one aspect."""
    row = {"p50_us": 1000.0, "p99_us": 2000.0, "calls_per_s": 15_000.0, "calls": 10, "failed": 0}
    costs = {"mixed-32": 55.0, "mixed-32-modern": 58.0, "mixed-1": 140.0, "fixed-32": 50.0, "aspect-spaces": 53.5}
    workloads = {
        name: {
            "title": f"title of {name}",
            "rows": {"nginx": {"cpu_us": 20.0, **row}, "pactgate": {"cpu_us": cpu, **row}},
        }
        for name, cpu in costs.items()
    }
    return {**figures, "run": {**figures["run"], "workloads": workloads}}


def test_the_published_picture_and_pages_are_those_of_the_published_figures() -> None:
    figures, page = published(), (DOCS / "performance.md").read_text()
    assert render_page(figures, page) == page, "run `python -m bench publish`, or undo the change between its marks"
    assert render_readme(figures, README.read_text()) == README.read_text()
    assert render_picture(figures) == (DOCS / "performance.svg").read_text()


def test_the_readme_names_the_cost_of_mixed_calls_and_its_ratio_to_nginx() -> None:
    words = headline(with_mixed_rows(published()))
    assert "55.0 us of CPU time in the legacy protocol and 58.0 us in the modern one, 2.8 x and 2.9 x nginx" in words
    assert "one client alone takes 140 us" in words


def test_the_page_shows_what_one_property_of_a_request_costs() -> None:
    page = figures_page(with_mixed_rows(published()))
    assert "| title of aspect-spaces | 53.5 us | +3.5 us | 20.0 us |" in page


def test_every_aim_is_on_the_page_reached_or_not() -> None:
    figures = json.loads((DOCS / "performance.json").read_text())
    page = (DOCS / "performance.md").read_text()
    for aim in [aim for run in figures.values() if isinstance(run, dict) for aim in run.get("aims", ())]:
        word = "reached" if aim["met"] else "**not yet**"
        assert f"| {aim['title']} | {word} |" in page


def test_a_page_without_its_marks_is_left_alone() -> None:
    with pytest.raises(PublishError, match="lacks the lines"):
        render_page(published(), "# Performance\n")


def test_the_newest_whole_run_is_published_and_not_a_newer_one_of_some_workloads(tmp_path: Path) -> None:
    for name, options in {"1-run": {}, "2-run": {"only": None, "quick": False}, "3-run": {"only": "echo-1"}}.items():
        (tmp_path / f"{name}.json").write_text(json.dumps({"options": options}))
    (tmp_path / "4-run.json").write_text(json.dumps({"options": {"quick": True}}))
    (tmp_path / "5-run.json").write_text(json.dumps({"options": {"seconds": 3}}))
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
