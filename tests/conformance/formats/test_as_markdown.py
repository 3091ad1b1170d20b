"""The report as Markdown."""

from __future__ import annotations

from pactgate.conformance.formats.as_markdown import as_markdown
from tests.conformance.formats.samples import bad, good, unreadable


def test_a_good_report_is_one_table() -> None:
    text = as_markdown(good())
    assert text.startswith("## Passed: \\(value\\)\n")
    assert "#initialization) | pass | initialize is the first request the client sends. |  |" in text


def test_findings_hazards_and_stale_entries_are_told() -> None:
    text = as_markdown(bad())
    assert text.startswith("## Failed")
    url = "https://modelcontextprotocol.io/specification/2025-11-25/basic#responses"
    assert f"| [INV-006]({url}) | **fail** (must) |" in text
    assert "Informational:" in text
    assert "### Between servers" in text
    assert "Stale in the baseline: INV-001 did not fail." in text


def test_nothing_breaks_out_of_its_cell() -> None:
    text = as_markdown(bad(rules="all")) + as_markdown(unreadable())
    assert "<b>" not in text
    assert "\x1b" not in text
    for line in text.splitlines():
        if line.startswith("| "):
            assert line.replace("\\|", "").count("|") == 5
