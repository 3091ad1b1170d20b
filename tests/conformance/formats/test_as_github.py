"""The report as workflow commands of GitHub Actions."""

from __future__ import annotations

import re

from msgspec.structs import replace

from pactgate.conformance.check import check_capture
from pactgate.conformance.formats.as_github import as_github
from tests.conformance.captures import call, capture, handshake
from tests.conformance.formats.samples import bad, good, unreadable

COMMAND = re.compile(r"::(error|warning|notice) file=([^,:]*),line=1,title=([^,:]*)::(.*)")


def commands(text: str) -> list[tuple[str, ...]]:
    lines = text.splitlines()[:-1]
    found = [COMMAND.fullmatch(line) for line in lines]
    assert all(found), lines
    return [match.groups() for match in found if match is not None]


def test_what_counts_is_an_error_at_the_file_that_is_named() -> None:
    found = commands(as_github(replace(bad(), location="server.py")))
    assert {file for _, file, _, _ in found} == {"server.py"}
    kinds = {title.partition(" ")[0]: kind for kind, _, title, _ in found}
    assert kinds["INV-006"] == "error"
    assert kinds["INV-002"] == "warning", "the baseline expects it"
    assert kinds["GW-040"] == "warning", "it does not decide"
    assert kinds["COMP-001"] == "error"
    assert kinds["INV-001"] == "error", "it is stale in the baseline"


def test_the_last_line_is_the_verdict() -> None:
    assert as_github(good()) == "PASSED: 4 passed, 0 failed, 3 not applicable.\n"
    assert as_github(bad()).splitlines()[-1].startswith("FAILED: ")


def test_advice_is_a_notice_with_the_rule_and_its_address() -> None:
    tool = {"name": "sun.times", "description": "x", "inputSchema": {"type": "object"}}
    report = check_capture(capture(*handshake(), call(2, "tools/list", None, {"tools": [tool]})), rules="LINT-002")
    ((kind, _, title, text),) = commands(as_github(report))
    assert (kind, title) == ("notice", "LINT-002 tool_name_refused")
    assert text.endswith("https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool-names")


def test_nothing_a_server_wrote_begins_another_command() -> None:
    for report in (bad(rules="all"), unreadable()):
        for line in as_github(report).splitlines():
            assert not {"\x1b", "\r", "\u202e"} & set(line)
    evil = capture(*handshake(), label="a\n::error file=x::owned")
    text = as_github(check_capture(evil, rules="GW-015", unjudged_fails=True))
    assert len(commands(text)) == 1
    assert "::error file=x::owned" not in text.splitlines()


def test_a_capture_that_can_not_be_read_is_an_error() -> None:
    ((kind, _, title, text),) = commands(as_github(unreadable()))
    assert (kind, title) == ("error", "The capture can't be checked")
    assert "not JSON" in text
