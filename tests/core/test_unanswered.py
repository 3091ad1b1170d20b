"""What is said of a question without an answer."""

from __future__ import annotations

import pytest

from pactgate.core.failures import Kind
from pactgate.core.unanswered import CannotAsk, UnansweredError
from pactgate.core.values import Silence
from pactgate.protocol.messages import ErrorReply


def test_a_callers_own_error_is_kept_for_the_server_and_in_the_record() -> None:
    reply = ErrorReply("q", -1, "no", b'{"why":1}')
    failure = UnansweredError("The client refused.", reply)
    assert failure.kind is Kind.INPUT_UNANSWERED
    assert failure.reply is reply
    assert failure.record()["caller"]["code"] == -1


def test_without_one_the_server_is_told_why() -> None:
    failure = UnansweredError("gone", code=-32601)
    assert (failure.reply.code, failure.reply.message) == (-32601, "gone")
    assert "caller" not in failure.details


async def test_a_channel_that_can_not_ask_says_so() -> None:
    assert Silence().can_ask is CannotAsk().can_ask is False
    with pytest.raises(UnansweredError):
        await Silence().ask("roots/list", b"{}")
