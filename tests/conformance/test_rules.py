"""Every rule: listed once, named for its fault, explained in fixed sections, seen to pass and seen to fail."""

from __future__ import annotations

import json
from inspect import getfile
from pathlib import Path
from typing import Any

import pytest

from pactgate.conformance import rules
from pactgate.conformance.rule import SECTIONS, CheckStatus, CompositionRule, Rule, SessionRule
from pactgate.conformance.rules import ALL
from pactgate.protocol.versions import KNOWN_VERSIONS
from tests.conformance.captures import FIXTURES, judged
from tests.support.each import each

FILES = sorted(path for path in Path(rules.__file__).parent.glob("*/*.py") if path.stem != "__init__")
CASES = [(rule, path) for rule in ALL for path in sorted((FIXTURES / rule.code).glob("*.json"))]
MAX_LINES = 120
NAMES_A_MISSING_MEMBER = {
    ("GW-001", "/request/jsonrpc"),
    ("GW-004", "/response/id"),
    ("GW-025", "/request/params/_meta"),
    ("GW-031", "/response/result/ttlMs"),
    ("GW-031", "/response/result/cacheScope"),
    ("GW-035", "/response/error/data/supported"),
    ("GW-037", "/response/result/_meta"),
}
"""Evidence whose pointer ends with the member that is missing: the object without it is there."""


@each(("rule", "path"), CASES)
def test_a_rule_passes_what_is_right_and_fails_what_is_wrong(rule: type[Rule], path: Path) -> None:
    report = judged(path, rules=rule.code)
    if issubclass(rule, CompositionRule):
        outcome = "fail" if report.findings else "pass"
        assert all(conflict.kind == rule.kind and len(conflict.servers) > 0 for conflict in report.findings)
    else:
        statuses = {result.status for session in report.sessions for result in session.results}
        outcome = "fail" if CheckStatus.FAIL in statuses else "pass"
        assert statuses <= {CheckStatus.FAIL, CheckStatus.PASS}, "a capture for a rule must be one that it can judge"
    assert outcome == path.stem.partition("_")[0]


@each("rule", ALL)
def test_every_rule_has_captures_of_both_kinds(rule: type[Rule]) -> None:
    kinds = {path.stem.partition("_")[0] for path in (FIXTURES / rule.code).glob("*.json")}
    assert kinds == {"pass", "fail"}


def test_no_capture_is_for_a_rule_that_does_not_exist() -> None:
    assert {path.name for path in FIXTURES.iterdir()} == {rule.code for rule in ALL}


def test_every_rule_file_is_listed_once_in_the_order_of_the_codes() -> None:
    assert sorted(Path(getfile(rule)) for rule in ALL) == FILES
    families = [rule.code.partition("-")[0] for rule in ALL]
    assert families == sorted(families, key=["INV", "COMP", "GW", "LINT"].index)
    for family in ("INV", "COMP", "GW", "LINT"):
        codes = [rule.code for rule in ALL if rule.code.startswith(family)]
        assert codes == sorted(set(codes))


def test_the_forty_core_invariants_are_numbered_through() -> None:
    assert {f"GW-{number:03}" for number in range(1, 41)} <= {rule.code for rule in ALL}


@each("rule", ALL)
def test_a_rule_file_is_named_for_its_code_and_fault(rule: type[Rule]) -> None:
    path = Path(getfile(rule))
    assert path.stem == f"{rule.code.replace('-', '').lower()}_{rule.slug()}"
    assert len(path.read_text().splitlines()) <= MAX_LINES


@each("rule", ALL)
def test_a_rule_says_what_must_hold_why_and_how_to_mend_it(rule: type[Rule]) -> None:
    assert rule.title().endswith(".")
    assert tuple(rule.sections()) == SECTIONS
    assert all(text.endswith(".") for text in rule.sections().values())
    assert rule.since in KNOWN_VERSIONS
    assert rule.revisions()


@each("rule", ALL)
def test_a_rule_links_to_the_section_that_it_rests_on(rule: type[Rule]) -> None:
    url = rule.url()
    if rule.code == "GW-107":
        assert url is None, "it is about the capture format, which is ours"
        return
    assert url is not None
    assert url.startswith(
        (
            "https://modelcontextprotocol.io/specification/20",
            "https://www.jsonrpc.org/specification#",
            "https://www.rfc-editor.org/rfc/rfc",
        )
    )


@each("rule", [rule for rule in ALL if issubclass(rule, SessionRule)])
def test_a_rule_has_no_verdict_on_an_empty_session(rule: type[Rule]) -> None:
    report = judged({"server_label": "x", "exchanges": []}, rules=rule.code)
    assert report.sessions[0].results[0].status in (CheckStatus.NOT_APPLICABLE, CheckStatus.NOT_JUDGED)


@pytest.mark.requirement(
    "S3/INV-001", "S3/INV-002", "S3/INV-003", "S3/INV-004", "S3/INV-005", "S3/INV-006", "S3/INV-007"
)
def test_the_documented_family_has_its_ids_categories_and_wording() -> None:
    documented = [(rule.code, rule.category, rule.title()) for rule in ALL if rule.code.startswith("INV")]
    assert documented == [
        ("INV-001", "lifecycle", "initialize is the first request the client sends."),
        ("INV-002", "lifecycle", "The notifications/initialized notification follows the initialize response."),
        (
            "INV-003",
            "capability",
            "A server that answers tools/list, resources/list, or prompts/list advertised the matching capability "
            "at initialize.",
        ),
        ("INV-004", "capability", "A server that advertised a capability does not error on every call to it."),
        (
            "INV-005",
            "result-shape",
            "A successful tools/call result carries a content array or a structuredContent object, and a boolean "
            "isError when present.",
        ),
        ("INV-006", "error-envelope", "Every JSON-RPC error envelope carries an integer code and a string message."),
        ("INV-007", "error-envelope", "A method-not-found error uses JSON-RPC code -32601."),
    ]


def resolve(document: Any, pointer: str) -> Any:
    """The value a JSON pointer (RFC 6901) leads to. Raises KeyError, IndexError or ValueError where it leads nowhere."""
    for token in pointer.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        document = document[int(name)] if isinstance(document, list) else document[name]
    return document


@each(("rule", "path"), [case for case in CASES if issubclass(case[0], SessionRule)])
def test_evidence_leads_to_the_place_it_names(rule: type[Rule], path: Path) -> None:
    recorded = json.loads(path.read_text())
    recorded = recorded if isinstance(recorded, list) else [recorded]
    for number, session in enumerate(judged(path, rules=rule.code).sessions):
        for result in session.results:
            assert bool(result.evidence) is (result.status is CheckStatus.FAIL)
            for evidence in result.evidence:
                assert evidence.pointer == "" or evidence.pointer.startswith("/")
                exchange = recorded[number]["exchanges"][evidence.exchange]
                try:
                    resolve(exchange, evidence.pointer)
                except KeyError:
                    assert (rule.code, evidence.pointer) in NAMES_A_MISSING_MEMBER
                    resolve(exchange, evidence.pointer.rpartition("/")[0])
