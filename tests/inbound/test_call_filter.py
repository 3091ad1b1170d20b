from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.inbound.call_filter import CallFilterError, read_filter
from tests.support.facing import serving
from tests.support.raw_http import get

ROW = {
    "requestId": "5b3be830",
    "subject": "ci",
    "client": "agent/2",
    "tool": "crm.get_invoice",
    "server": "crm",
    "outcome": "timeout",
    "code": "TOOL_TIMEOUT",
    "verdict": "may_have_run",
    "durationMs": 812.5,
    "cached": False,
}


@pytest.mark.parametrize(
    ("text", "keeps"),
    [
        ("", True),
        ("tool:crm.*", True),
        ("tool:get_invoice", True),
        ("tool:get", False),
        ("tool:!crm.*", False),
        ("outcome:!ok ms:>500 caller:ci", True),
        ("outcome:!ok ms:>900", False),
        ("ms:<900", True),
        ("ms:!>500", False),
        ("code:tool_timeout", True),
        ("cached:false", True),
        ("invoice", True),
        ("INVOICE agent", True),
        ("invoice other", False),
    ],
)
def test_a_filter_keeps_the_calls_for_which_every_term_holds(text: str, keeps: bool) -> None:
    assert read_filter(text)(ROW) is keeps


def test_brackets_stand_for_themselves() -> None:
    assert read_filter("client:a[bc]*")({**ROW, "client": "a[bc]/2"})
    assert not read_filter("client:a[bc]*")({**ROW, "client": "ab/2"})


@pytest.mark.parametrize("text", ["tol:x", ":", "x:", "ms:>", "ms:>x", "tool:>5", "a " * 21, "a" * 501, "tool:!"])
def test_what_is_no_filter_is_refused_and_said(text: str) -> None:
    with pytest.raises(CallFilterError):
        read_filter(text)


def test_a_wrong_field_names_a_similar_one() -> None:
    with pytest.raises(CallFilterError, match="Did you mean tool"):
        read_filter("tol:x")


@given(st.text(max_size=200))
def test_any_text_is_a_filter_or_refused(text: str) -> None:
    try:
        keeps = read_filter(text)
    except CallFilterError:
        return
    assert keeps(ROW) in (True, False)


async def test_the_list_of_calls_takes_a_filter() -> None:
    async with serving() as served:
        assert (await served.ask(get("/api/calls?filter=tool:crm.*%20ms:%3E5"))).status == 200
        refused = await served.ask(get("/api/calls?filter=tol:x"))
        assert (refused.status, "tool" in refused.json["error"]["message"]) == (400, True)
        assert (await served.ask(get("/api/calls?filter=" + "x" * 5000))).status == 400
