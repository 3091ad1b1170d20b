"""Servers side by side: the two documented hazards with their edges, and how sessions become servers."""

from __future__ import annotations

from typing import Any

import pytest

from pactgate.conformance.composition import is_prefixed
from pactgate.conformance.report import ComplianceReport
from pactgate.conformance.rule import CompositionSeverity
from tests.conformance.captures import call, capture, handshake, judged, notice, request


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


def server(label: str, *names: str, first_id: Any = 1, **head: Any) -> dict[str, Any]:
    second = first_id + 1 if isinstance(first_id, int) else f"{first_id}+"
    lists = call(second, "tools/list", None, {"tools": [tool(name) for name in names]})
    return capture(*handshake(id_=first_id), lists, label=label, **head)


def conflicts(*sessions: Any, rules: str = "COMP-001,COMP-002") -> ComplianceReport:
    return judged(list(sessions), rules=rules)


def found(report: ComplianceReport) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(conflict.kind, conflict.subject, conflict.servers) for conflict in report.findings]


@pytest.mark.requirement("S3/COMP-OVERLAP")
def test_the_same_plain_tool_name_on_two_servers_is_a_hazard_that_names_both() -> None:
    report = conflicts(server("a", "search"), server("b", "search", first_id=10))
    assert found(report) == [("tool_namespace_overlap", "search", ("a", "b"))]
    assert report.exit_code == 1


@pytest.mark.requirement("S3/COMP-OVERLAP")
def test_three_servers_with_one_name_are_one_finding() -> None:
    report = conflicts(*(server(label, "search", first_id=n * 10) for n, label in enumerate("abc", 1)))
    assert found(report) == [("tool_namespace_overlap", "search", ("a", "b", "c"))]


@pytest.mark.requirement("S3/COMP-OVERLAP")
@pytest.mark.parametrize("name", ["files__search", "files.search", "My_Files__search"])
def test_names_with_either_spelling_of_a_prefix_are_told_apart(name: str) -> None:
    assert conflicts(server("a", name), server("b", name, first_id=10)).passed


@pytest.mark.requirement("S3/COMP-OVERLAP")
@pytest.mark.parametrize("name", ["search", "search_all", "__search", ".search", "search__", "se arch.x"])
def test_names_that_only_look_a_little_like_it_are_not(name: str) -> None:
    assert not conflicts(server("a", name), server("b", name, first_id=10)).passed


@pytest.mark.requirement("S3/COMP-OVERLAP")
def test_the_same_label_twice_is_one_server() -> None:
    report = conflicts(server("a", "search"), server("a", "search"))
    assert report.passed
    assert not report.findings


@pytest.mark.requirement("S3/COMP-OVERLAP")
def test_tools_on_later_pages_count() -> None:
    paged = capture(
        *handshake(id_=10),
        call(11, "tools/list", None, {"tools": [tool("x")], "nextCursor": "2"}),
        call(12, "tools/list", {"cursor": "2"}, {"tools": [tool("search")]}),
        label="b",
    )
    assert found(conflicts(server("a", "search"), paged)) == [("tool_namespace_overlap", "search", ("a", "b"))]


@pytest.mark.requirement("S3/COMP-OVERLAP")
@pytest.mark.parametrize("other", ["Search", "\uff53earch", "SEARCH"])
def test_names_that_are_equal_after_folding_are_a_softer_finding(other: str) -> None:
    report = judged([server("a", "search"), server("b", other, first_id=10)], rules="all")
    assert {conflict.kind for conflict in report.findings} == {"folded_name_overlap"}
    assert report.findings[0].severity is CompositionSeverity.WARNING
    assert report.passed


@pytest.mark.requirement("S3/COMP-ID")
def test_one_id_towards_two_servers_is_a_hazard() -> None:
    report = conflicts(server("a", "x"), server("b", "y"))
    assert found(report) == [("request_id_collision", "1, 2", ("a", "b"))]
    assert report.exit_code == 1


@pytest.mark.requirement("S3/COMP-ID")
def test_ids_of_different_types_are_different_ids() -> None:
    one = capture({"request": request(1, "initialize")}, label="a")
    other = capture({"request": request("1", "initialize")}, label="b")
    assert conflicts(one, other).passed


@pytest.mark.requirement("S3/COMP-ID")
def test_notifications_and_requests_of_the_server_have_no_ids_of_the_client() -> None:
    one = capture(notice("notifications/initialized"), label="a")
    other = capture({"request": request(7, "roots/list"), "direction": "server_to_client"}, label="b")
    third = capture({"request": request(7, "ping")}, label="c")
    assert conflicts(one, other, third).passed


@pytest.mark.requirement("S3/COMP-ID")
@pytest.mark.parametrize(
    ("one", "other", "severity"),
    [
        ("t1", "t2", CompositionSeverity.INFO),
        ("t1", "t1", CompositionSeverity.CONFLICT),
        ("t1", None, CompositionSeverity.CONFLICT),
        (None, None, CompositionSeverity.CONFLICT),
    ],
)
def test_a_transport_of_its_own_makes_shared_ids_harmless(one: Any, other: Any, severity: CompositionSeverity) -> None:
    report = conflicts(server("a", "x", transport_id=one), server("b", "y", transport_id=other))
    assert [conflict.severity for conflict in report.findings] == [severity]
    assert report.passed == (severity is CompositionSeverity.INFO)


@pytest.mark.requirement("S3/COMP-ID")
def test_a_thousand_shared_ids_are_one_finding() -> None:
    calls = [{"request": request(number, "ping"), "response": {}} for number in range(2000)]
    report = conflicts(capture(*calls, label="a"), capture(*calls, label="b"))
    assert len(report.findings) == 1
    assert report.findings[0].subject.startswith("0, 1, 2, 3, 4 and ")


def test_ids_of_the_right_servers_are_grouped() -> None:
    one, other, third = (
        capture(*({"request": request(n, "ping")} for n in ids), label=label)
        for label, ids in (("a", (1, 2)), ("b", (1, 3)), ("c", (3, 2, 1)))
    )
    groups = {conflict.servers: conflict.subject for conflict in conflicts(one, other, third).findings}
    assert groups == {("a", "b", "c"): "1", ("a", "c"): "2", ("b", "c"): "3"}


def test_an_empty_capture_has_nothing_to_fail() -> None:
    assert judged([], rules="all").passed


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("files__read", True),
        ("my-files__read__all", True),
        ("files.read", True),
        ("read", False),
        ("read_file", False),
        ("__read", False),
        ("read__", False),
        (".read", False),
        ("read.", False),
        ("", False),
    ],
)
def test_a_prefix_is_a_server_and_one_of_two_separators(name: str, expected: bool) -> None:
    assert is_prefixed(name) is expected
