"""How a verdict comes about, and how findings are told."""

from __future__ import annotations

import pytest

from pactgate.conformance.rule import SHOWN_EVIDENCE, CheckStatus, RequirementLevel, pointer, quoted
from pactgate.conformance.rules.gw.gw001_malformed_message import MalformedMessage
from tests.conformance.captures import call, capture, handshake, notice, verdicts


def test_a_rule_tells_its_name_its_promise_and_its_sections() -> None:
    assert MalformedMessage.slug() == "malformed_message"
    assert MalformedMessage.title().startswith("Every message is JSON-RPC 2.0")
    assert MalformedMessage.sections()["Reference"] == "Base protocol, Messages; all revisions."


def test_places_beyond_the_first_are_counted() -> None:
    broken = [{"request": {"id": number, "method": "ping"}} for number in range(SHOWN_EVIDENCE + 5)]
    verdict = verdicts(capture(*broken))["GW-001"]
    assert (len(verdict.evidence), verdict.count) == (SHOWN_EVIDENCE, SHOWN_EVIDENCE + 5)
    assert "25 places" in verdict.message


def test_the_gravest_finding_gives_the_level_and_the_message() -> None:
    tools = [{"name": "bad name", "inputSchema": {"type": "object"}}, {"name": "x", "inputSchema": 7}]
    verdict = verdicts(capture(*handshake(), call(2, "tools/list", None, {"tools": tools})))["GW-040"]
    assert (verdict.level, verdict.count) == (RequirementLevel.MUST, 2)
    assert "inputSchema" in verdict.message


@pytest.mark.parametrize("code", ["GW-015", "GW-016", "GW-017", "GW-018", "GW-019", "GW-020", "GW-021", "GW-022"])
def test_without_http_in_the_capture_rules_about_it_do_not_judge(code: str) -> None:
    session = capture(*handshake(), call(2, "tools/list", None, {"tools": []}))
    assert verdicts(session)[code].status is CheckStatus.NOT_JUDGED
    assert "HTTP" in verdicts(session)[code].message
    assert verdicts({**session, "transport": "stdio"})[code].status is CheckStatus.NOT_APPLICABLE


@pytest.mark.parametrize("code", ["GW-012", "GW-013", "GW-014", "GW-023"])
def test_without_the_servers_own_messages_rules_about_them_do_not_judge(code: str) -> None:
    session = capture(*handshake(), call(2, "tools/list", None, {"tools": []}))
    assert verdicts(session)[code].status is CheckStatus.NOT_JUDGED
    assert verdicts({**session, "capture_version": 1})[code].status is CheckStatus.NOT_APPLICABLE


def test_what_was_judged_in_part_says_so() -> None:
    changed = [
        call(n, "tools/list", None, {"tools": [{"name": name, "inputSchema": {}}]}) for n, name in enumerate("aab", 2)
    ]
    verdict = verdicts(capture(*handshake(), *changed))["GW-044"]
    assert verdict.status is CheckStatus.PASS
    assert "Not judged in part" in verdict.notes[0]


def test_a_signal_between_two_lists_makes_the_change_legal() -> None:
    lists = [
        call(n, "tools/list", None, {"tools": [{"name": name, "inputSchema": {}}]}) for n, name in enumerate("ab", 2)
    ]
    signal = notice("notifications/tools/list_changed", direction="server_to_client")
    assert verdicts(capture(*handshake(), *lists, signal))["GW-044"].status is CheckStatus.FAIL
    assert verdicts(capture(*handshake(), lists[0], signal, lists[1]))["GW-044"].status is CheckStatus.NOT_APPLICABLE


def test_values_of_a_capture_are_told_on_one_short_line() -> None:
    assert quoted("a\nb") == '"a\\nb"'
    assert quoted({"a": 1}) == "an object"
    assert quoted([1]) == "an array"
    assert len(quoted("x" * 10_000)) <= 60
    assert quoted(None) == "null"


def test_a_pointer_escapes_its_own_signs() -> None:
    assert pointer("a/b", "c~d", 3) == "/a~1b/c~0d/3"
    assert pointer() == ""
