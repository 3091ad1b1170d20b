"""A request that was begun tells its sink exactly one thing, once, whatever its channel and its peer say afterwards."""

from __future__ import annotations

import asyncio

import pytest

from pactgate.core.failures import GatewayFailure, Kind
from pactgate.protocol.messages import Response
from pactgate.upstreams.pending import Awaited, Sent

LOST = GatewayFailure(Kind.CONNECTION_LOST, "gone")


class Sink:
    def __init__(self) -> None:
        self.told: list[bytes | GatewayFailure] = []

    def answered(self, response: Response) -> None:
        self.told.append(response.result)

    def failed(self, failure: GatewayFailure) -> None:
        self.told.append(failure)


class Ledger:
    def __init__(self) -> None:
        self.given_up: list[int] = []

    def gave_up(self, id_: int) -> None:
        self.given_up.append(id_)

    def unanswered(self, id_: int, failure: GatewayFailure | None) -> GatewayFailure:
        return failure or GatewayFailure(Kind.INVALID_FRAME, f"{id_} was not answered")


def begun() -> tuple[Sent, Sink, Ledger]:
    sink, ledger = Sink(), Ledger()
    return Sent(ledger, sink, 7), sink, ledger


def test_an_answer_is_told_once_and_the_end_of_its_exchange_not_at_all() -> None:
    sent, sink, ledger = begun()
    sent.answered(Response(7, b"{}"))
    sent.answered(Response(7, b"again"))
    sent.ended(None)
    sent.ended(LOST)
    sent.refused(LOST)
    assert sink.told == [b"{}"]
    assert ledger.given_up == []


def test_an_exchange_that_ends_without_the_answer_is_a_failure() -> None:
    sent, sink, _ = begun()
    sent.ended(None)
    assert [str(told) for told in sink.told] == ["7 was not answered"]


@pytest.mark.parametrize("way", ["ended", "refused"])
def test_a_failure_is_told_as_it_is(way: str) -> None:
    sent, sink, _ = begun()
    getattr(sent, way)(LOST)
    sent.answered(Response(7, b"late"))
    assert sink.told == [LOST]


def test_a_request_that_is_given_up_tells_nothing() -> None:
    sent, sink, ledger = begun()
    sent.give_up()
    sent.answered(Response(7, b"late"))
    sent.ended(LOST)
    assert ledger.given_up == [7]
    assert sink.told == []


async def test_who_awaits_a_request_gets_its_answer_or_its_failure() -> None:
    answered, failed, forgotten = Awaited("ping"), Awaited("ping"), Awaited("ping")
    answered.answered(Response(7, b"{}"))
    answered.refused(LOST)
    failed.refused(LOST)
    failed.answered(Response(7, b"{}"))
    forgotten.forget()
    forgotten.answered(Response(7, b"{}"))
    assert await answered.answer == b"{}"
    with pytest.raises(GatewayFailure, match="gone"):
        await failed.answer
    assert forgotten.answer.cancelled()


async def test_a_failure_nobody_awaits_any_more_is_no_warning() -> None:
    failed = Awaited("ping")
    failed.refused(LOST)
    failed.forget()
    del failed
    await asyncio.sleep(0)
