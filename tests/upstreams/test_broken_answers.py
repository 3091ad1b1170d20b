"""A broken answer is found to be the answer to one request, or to none."""

from __future__ import annotations

import time

import pytest

from pactgate.upstreams.broken_answers import find_request


@pytest.mark.parametrize(
    "frame",
    [
        b'{"jsonrpc":"2.0","id":3,"result":{"content":[',
        b'{"jsonrpc": "2.0", "id": 3, "resu',
        b'{"jsonrpc":"2.0","id":3,',
        b'{"id":3,"error":"no object"}',
        b'{"jsonrpc":"2.0","id":3,"result":{}}{"jsonrpc":"2.0","id":4,"result":{}}',
        b'{"jsonrpc":"2.0","id":3,"result":"\xff"}',
    ],
)
def test_a_broken_answer_with_its_id_at_the_beginning_is_for_the_request_it_names(frame: bytes) -> None:
    assert find_request(frame, [2, 3, 4]) == 3


def test_a_broken_answer_without_an_id_at_the_beginning_is_for_the_only_request_that_waits() -> None:
    frame = b'{"jsonrpc":"2.0","result":{"id":4'
    assert find_request(frame, [3]) == 3
    assert find_request(frame, [3, 4]) is None
    assert find_request(frame, []) is None


def test_a_broken_answer_that_names_another_request_ends_none() -> None:
    assert find_request(b'{"jsonrpc":"2.0","id":9,"result":{', [3]) is None


@pytest.mark.parametrize(
    "frame",
    [
        b'{"jsonrpc":"2.0","id":3,"method":"sampling/createMessage","params":{',
        b'{"jsonrpc":"2.0","id":3,"meth',
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"result":',
        b'{"level":"info","jsonrpc":"in a log line","id":3,"result":1',
        b'{"jsonrpc":"1.0","id":3,"result":{}',
    ],
)
def test_a_broken_request_notification_or_log_line_ends_no_call(frame: bytes) -> None:
    assert find_request(frame, [3]) is None


@pytest.mark.parametrize("head", [b"{", b'{"jsonrpc":"2.0"', b'{"jsonrpc":"2.0","id":3'])
def test_reading_a_broken_answer_full_of_blanks_takes_no_time(head: bytes) -> None:
    began = time.process_time()
    assert find_request(head + b" " * 20_000 + b'x"', [3]) is None
    assert time.process_time() - began < 0.5
