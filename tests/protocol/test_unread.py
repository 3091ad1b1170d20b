"""The id and the arguments of a message, without decoding it."""

from __future__ import annotations

import pytest

from pactgate.protocol.unread import arguments_of, id_of

CALL = b'{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"t","arguments":{"x":[1, 2]}}}'


def test_the_id_of_a_request_is_found_as_it_is_written() -> None:
    assert id_of(CALL) == b'"a"'
    assert id_of(b'{"id": 17, "params": [[[]]]}') == b"17"


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"{}", b'{"id":null}', b'{"id":{}}', b'{"id":1.5}', b"\xff", b'{"id":' + b"[" * 100_000]
)
def test_where_there_is_no_legible_id_there_is_none(data: bytes) -> None:
    assert id_of(data) is None


def test_the_arguments_of_a_call_are_cut_out_as_they_are_written() -> None:
    assert arguments_of(CALL) == b'{"x":[1, 2]}'


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        CALL[:-1],
        CALL.replace(b"tools/call", b"prompts/get"),
        b'{"method":"tools/call"}',
        b'{"params":{"arguments":{}}}',
        b'{"method":"tools/call","params":[]}',
        b'{"method":"tools/call","params":{}}',
        b'{"method":"tools/call","params":' + b"[" * 100_000,
    ],
)
def test_no_other_message_has_arguments(data: bytes) -> None:
    assert arguments_of(data) is None
