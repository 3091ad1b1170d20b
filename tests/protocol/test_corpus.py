"""Every case of the corpus gets its verdict from the protocol layer alone, in time, with an answer that can be written."""

from __future__ import annotations

import time
from collections.abc import Mapping

import pytest

from pactgate.protocol import messages, modern
from pactgate.protocol.messages import Rejection, Request
from tests.protocol import corpus
from tests.protocol.corpus import ACCEPTED, EITHER, Case
from tests.support.each import each

CALL_MEMBERS = frozenset({"name", "arguments", "_meta"})


def received(headers: corpus.Headers) -> dict[str, list[str]]:
    collected: dict[str, list[str]] = {}
    for name, value in headers:
        collected.setdefault(name.lower(), []).append(value)
    return collected


def verdict(body: bytes, headers: Mapping[str, list[str]] | None) -> Rejection | None:
    """What a modern face, which takes requests only, would refuse."""
    message = messages.decode(body)
    if isinstance(message, Rejection):
        return message
    if not isinstance(message, Request):
        return Rejection(messages.INVALID_REQUEST, "not a request")
    route = modern.classify(message, headers)
    if isinstance(route, Rejection):
        return route
    assert message.params is not None
    odd = messages.check_member_names(messages.members(message.params), CALL_MEMBERS)
    return None if odd is None else Rejection(messages.INVALID_PARAMS, odd, message.id)


def check(rejection: Rejection | None, expected: corpus.Expected) -> None:
    if rejection is not None:
        messages.value(messages.encode_rejection(rejection))
    if expected != EITHER:
        assert (ACCEPTED if rejection is None else rejection.code) == expected


@pytest.mark.requirement("S4/F1")
@each("case", corpus.ALL)
def test_a_bad_body_gets_its_code(case: Case) -> None:
    check(verdict(case.body, None), case.expected)
    check(verdict(case.body, received(case.headers)), case.over_http)


@pytest.mark.timing
@each("case", corpus.ALL)
def test_a_bad_body_is_judged_within_a_second(case: Case) -> None:
    started = time.process_time()
    verdict(case.body, received(case.headers))
    assert time.process_time() - started < 1


def test_the_names_of_the_cases_are_unique() -> None:
    assert len({case.name for case in corpus.ALL}) == len(corpus.ALL)


def test_a_good_call_passes_between_the_bad_ones() -> None:
    assert verdict(corpus.GOOD_CALL, received(corpus.CALLING)) is None
