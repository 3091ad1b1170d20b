"""The base classes judge a recording, and nothing else."""

from __future__ import annotations

from pactgate.conformance.gateway.checks import BY_CODE
from pactgate.conformance.gateway.recording import CheckRecording, ClientRoute, Frame, ScriptedSide
from pactgate.conformance.gateway.results import judge_one
from pactgate.conformance.rule import CheckStatus

ROUTE = ClientRoute("legacy", "lh")


def frame(side: ScriptedSide, data: str, *, is_sent: bool) -> Frame:
    who = "lh" if side is ScriptedSide.SERVER else "c"
    return Frame(0.0, side, who, is_sent, data, "gwp004_lh", "1", ROUTE if side is ScriptedSide.CLIENT else None, 200)


def judged(*frames: Frame) -> tuple[CheckStatus, str]:
    result = judge_one(BY_CODE["GWP-004"], CheckRecording("GWP-004", frames))
    return result.status, result.message


CALL = frame(ScriptedSide.CLIENT, "{}", is_sent=True)
SENT = frame(ScriptedSide.SERVER, '{"result":{"structuredContent":{"none":null}}}', is_sent=True)


def test_a_result_that_arrived_as_it_was_sent_passes_whatever_was_added_beside_it() -> None:
    got = frame(ScriptedSide.CLIENT, '{"result":{"_meta":{"x":1},"structuredContent":{"none":null}}}', is_sent=False)
    assert judged(CALL, SENT, got)[0] is CheckStatus.PASS


def test_a_member_that_was_lost_fails_and_is_named() -> None:
    got = frame(ScriptedSide.CLIENT, '{"result":{"structuredContent":{}}}', is_sent=False)
    assert judged(CALL, SENT, got) == (CheckStatus.FAIL, "legacy client to lh: null was lost")


def test_no_answer_and_no_call_at_the_server_fail_with_what_came_instead() -> None:
    silence = frame(ScriptedSide.CLIENT, "", is_sent=False)
    assert "the server never got the call" in judged(CALL, silence)[1]
    error = frame(ScriptedSide.CLIENT, '{"error":{"code":1,"message":"down"}}', is_sent=False)
    assert judged(CALL, SENT, error) == (
        CheckStatus.FAIL,
        'legacy client to lh: no result came back; HTTP 200: "down"',
    )
