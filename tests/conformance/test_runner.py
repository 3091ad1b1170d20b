"""The runner: total on every capture the reader takes, deterministic, and each rule is shown what it asked for."""

from __future__ import annotations

import copy
import json
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.capture.format import CaptureError
from pactgate.conformance.check import check_capture
from pactgate.conformance.formats import RENDER
from pactgate.conformance.rule import CheckStatus
from pactgate.conformance.rules import ALL
from tests.conformance.captures import FIXTURES, call, capture, handshake, long_capture, verdicts
from tests.support.each import each

SEEDS = sorted(FIXTURES.rglob("*.json"))

_words = st.sampled_from(
    [
        "",
        "2.0",
        "initialize",
        "tools/list",
        "notifications/progress",
        "2026-07-28",
        "-32601",
        "\ud800",
        "\u202e",
        "a__b",
    ]
)
_scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-40000, 5),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    _words,
)
values = st.recursive(
    _scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_words, inner, max_size=3)),
    max_leaves=6,
)


def places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    inner: list[Any] = list(value.items()) if isinstance(value, dict) else []
    inner += enumerate(value) if isinstance(value, list) else []
    return [path, *(place for key, below in inner for place in places(below, (*path, key)))]


def mutate(value: Any, path: tuple[str | int, ...], how: str, new: Any) -> None:
    for key in path[:-1]:
        value = value[key]
    if how == "replace":
        value[path[-1]] = new
    elif how == "remove":
        del value[path[-1]]
    elif isinstance(value, list):
        value.append(copy.deepcopy(value[int(path[-1])]))


@given(data=st.data())
def test_no_shape_of_a_capture_stops_the_judgement(data: st.DataObject) -> None:
    damaged = json.loads(data.draw(st.sampled_from(SEEDS)).read_text())
    for _ in range(data.draw(st.integers(1, 5))):
        paths = [path for path in places(damaged) if path]
        if paths:
            how = data.draw(st.sampled_from(["replace", "remove", "repeat"]))
            mutate(damaged, data.draw(st.sampled_from(paths)), how, data.draw(values))
    try:
        report = check_capture(damaged, rules="all")
    except CaptureError:
        return
    for render in RENDER.values():
        text = render(report)
        assert text == render(report)
        text.encode()


@given(
    st.lists(st.dictionaries(st.sampled_from(["request", "response", "http", "notifications", "direction"]), values))
)
def test_arbitrary_exchanges_are_judged_or_refused(exchanges: list[Any]) -> None:
    with suppress(CaptureError):
        check_capture({"server_label": "x", "exchanges": exchanges}, rules="all")


def test_a_rule_is_not_shown_traffic_of_other_revisions() -> None:
    legacy = capture(*handshake("2025-03-26"), call(2, "tools/list", {}, {"tools": []}))
    assert verdicts(legacy)["GW-031"].status is CheckStatus.NOT_APPLICABLE
    assert "2026-07-28" in verdicts(legacy)["GW-031"].message


def test_a_rule_of_some_revisions_does_not_guess_where_the_revision_is_unknown() -> None:
    unknown = capture(call(1, "initialize", {}, {}), call(2, "tools/call", {"name": "x"}, {"content": []}))
    verdict = verdicts(unknown)["GW-041"]
    assert verdict.status is CheckStatus.NOT_JUDGED
    assert "revision" in verdict.message


def test_the_order_of_the_report_is_that_of_the_rules_and_of_the_sessions() -> None:
    session = capture(*handshake(), label="b")
    report = check_capture([session, {**session, "server_label": "a"}], rules="inv")
    assert [found.label for found in report.sessions] == ["b", "a"]
    assert [result.code for result in report.sessions[0].results] == [f"INV-00{number}" for number in range(1, 8)]


def test_a_session_alone_is_no_composition() -> None:
    assert not check_capture([capture(*handshake())], rules="all").findings


@pytest.mark.skipif(sys.gettrace() is not None, reason="a tracer would be measured too")
@pytest.mark.timing
def test_ten_thousand_exchanges_are_judged_in_two_seconds(tmp_path: Path) -> None:
    path = tmp_path / "long.json"
    with path.open("wb") as file:
        file.writelines(long_capture(exchanges=10_000, row_count=1))
    started = time.process_time()
    report = check_capture(path)
    assert time.process_time() - started < 2.0
    assert report.sessions[0].exchange_count > 10_000
    assert report.passed


@each("path", [min((FIXTURES / rule.code).glob("fail_*.json")) for rule in ALL])
def test_the_same_capture_gives_the_same_report_twice(path: Path) -> None:
    first, second = (check_capture(path, rules="all") for _ in range(2))
    assert [render(first) for render in RENDER.values()] == [render(second) for render in RENDER.values()]
