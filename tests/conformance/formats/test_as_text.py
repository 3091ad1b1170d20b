"""The report in a terminal."""

from __future__ import annotations

from pactgate.conformance.check import check_capture
from pactgate.conformance.formats.as_text import as_text
from tests.conformance.captures import capture
from tests.conformance.formats.samples import bad, good, unreadable


def test_every_documented_rule_has_its_line_and_the_verdict_is_last() -> None:
    lines = as_text(good()).splitlines()
    assert lines[0] == "almanac  protocol version 2025-11-25, 3 messages"
    assert [line.split()[:2] for line in lines[1:5]] == [["pass", f"INV-00{number}"] for number in range(1, 5)]
    assert lines[5].split()[:2] == ["n/a", "INV-005"]
    assert lines[-1] == "PASSED: 4 passed, 0 failed, 3 not applicable."


def test_a_failure_says_what_and_where() -> None:
    text = as_text(bad())
    assert "  FAIL  INV-006  The code of the error is" in text
    assert "exchange 2 /response/error/code" in text
    assert "(expected)" in text
    assert (
        "                 https://modelcontextprotocol.io/specification/2025-11-25/basic#responses" in text.splitlines()
    )
    assert "stale  INV-001 is in the baseline, but did not fail." in text
    assert "hazard   COMP-001 tool_namespace_overlap" in text
    assert text.splitlines()[-1].startswith("FAILED: ")
    assert "informational finding" in text.splitlines()[-1]


def test_what_could_not_be_judged_is_named_with_the_reason() -> None:
    text = as_text(good())
    assert (
        "not judged: GW-012, GW-013, GW-014, GW-023. The capture does not say what the server sent on its own." in text
    )


def test_nothing_an_upstream_wrote_reaches_the_terminal_unescaped() -> None:
    for report in (bad(), bad(rules="all"), unreadable()):
        text = as_text(report)
        assert not {"\x1b", "\u202e", "\ud800"} & set(text)
        assert "\\x1b" in text


def test_our_own_words_are_styled_and_only_those() -> None:
    styled = as_text(bad(), lambda text, name: f"<{name}>{text}</>")
    assert "<red>FAIL</>" in styled
    assert "<red>FAILED</>" in styled
    assert "<green>pass</>" in styled


def test_a_capture_without_sessions_says_that_nothing_was_judged() -> None:
    assert as_text(check_capture([])) == "PASSED: The capture holds no session; nothing was checked.\n"


def test_many_places_are_cut_short() -> None:
    broken = [{"request": {"id": number, "method": "ping"}} for number in range(30)]
    assert "and 25 more" in as_text(check_capture(capture(*broken), rules="GW-001"))
