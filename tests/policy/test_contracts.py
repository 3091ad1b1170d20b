"""What is read from a contract, what is taken off a result, and what is a breach."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.core.contract import (
    CONTRACT_KEY,
    ERROR_KEY,
    MAX_OPERATIONS,
    OPERATIONS_KEY,
    Contract,
    DeclaredCode,
    Effect,
    Operation,
)
from pactgate.policy.contracts import (
    envelope_members,
    read_contract,
    read_report,
    take_contract_result,
    undeclared_operations,
    without_contract,
)

READER = Contract("query", True, (Effect.READ,), (DeclaredCode("NO_NOTE", "none", True),))


def definition(**meta: Any) -> bytes:
    return json.dumps({"name": "x", "_meta": meta}).encode()


def result(**meta: Any) -> bytes:
    return json.dumps({"content": [], "_meta": meta}).encode()


def test_a_contract_is_read_from_a_definition() -> None:
    held = {"category": "query", "idempotent": True, "effects": [], "errorCodes": []}
    assert read_contract(definition(**{CONTRACT_KEY: held})) == Contract("query", True, ())
    assert read_contract(definition(other=1)) is None
    assert read_contract(b'{"name":"x","_meta":7}') is None
    assert read_contract(b'{"name":"x"}') is None


def test_a_contract_that_can_not_be_read_is_said_and_not_guessed() -> None:
    why = read_contract(definition(**{CONTRACT_KEY: {"category": "query", "effects": []}}))
    assert isinstance(why, str)
    assert "idempotent" in why


@pytest.mark.requirement("S2/MCP-002")
def test_only_what_the_contract_does_not_name_is_a_breach() -> None:
    done = (Operation("filesystem.read", "/a"), Operation("network", "b:1"), Operation(more=4))
    assert undeclared_operations(READER, done) == (Operation("network", "b:1"),)
    assert undeclared_operations(Contract("mutation", False, (Effect.WRITE, Effect.NETWORK)), done) == ()


def test_what_is_for_the_gateway_is_taken_off_the_result_and_the_rest_stays() -> None:
    account = take_contract_result(
        READER, result(**{OPERATIONS_KEY: [{"kind": "network", "target": "a"}], "theirs": 1})
    )
    assert json.loads(account.result) == {"content": [], "_meta": {"theirs": 1}}
    assert account.operations == (Operation("network", "a"),)
    bare = take_contract_result(READER, result(**{OPERATIONS_KEY: []}))
    assert json.loads(bare.result) == {"content": []}
    assert bare.operations == ()


@pytest.mark.parametrize("text", [b'{"content":[]}', b'{"content":[],"_meta":3}', b'{"content":[],"_meta":{"a":1}}'])
def test_a_result_without_our_words_is_not_touched(text: bytes) -> None:
    account = take_contract_result(READER, text)
    assert account.result is text
    assert account.operations is None


@pytest.mark.requirement("S2/MCP-003")
@pytest.mark.parametrize(
    ("said", "code", "is_transient", "undeclared"),
    [
        ("NO_NOTE", "NO_NOTE", True, None),
        ("NOT_FOUND", "NOT_FOUND", False, None),
        ("SERVICE_UNAVAILABLE", "SERVICE_UNAVAILABLE", True, None),
        ("MADE_UP", "OPERATION_FAILED", False, "MADE_UP"),
        ("", "OPERATION_FAILED", False, None),
    ],
)
def test_a_standard_or_declared_code_is_kept_and_any_other_is_mapped_and_named(
    said: str, code: str, is_transient: bool, undeclared: str | None
) -> None:
    fault = take_contract_result(
        READER, result(**{ERROR_KEY: {"code": said, "message": "m", "details": {"id": 1}}})
    ).fault
    assert fault is not None
    assert fault.details == {"id": 1}
    if said:
        assert (fault.code, fault.is_transient, fault.undeclared) == (code, is_transient, undeclared)


def test_what_can_not_be_read_is_nothing() -> None:
    account = take_contract_result(READER, result(**{ERROR_KEY: "no", OPERATIONS_KEY: "no"}))
    assert (account.fault, account.operations) == (None, ())
    assert read_report(b"[]") is None
    assert read_report(None) is None


@given(st.lists(st.tuples(st.text(max_size=60), st.text(max_size=600)), max_size=300), st.integers(0, 20_000))
def test_operations_are_bounded_and_so_is_what_the_envelope_shows(done: list[tuple[str, str]], room: int) -> None:
    said = [{"kind": kind, "target": target} for kind, target in done]
    operations = take_contract_result(READER, result(**{OPERATIONS_KEY: said})).operations
    assert operations is not None
    assert len(operations) <= MAX_OPERATIONS + 1
    counted = sum(one.more or 1 for one in operations)
    assert counted == len(done)
    members = envelope_members(operations, undeclared_operations(READER, operations), room)
    assert len(members) <= max(room, 60)
    json.loads(b'{%b"end":1}' % members)


def test_a_report_is_read_within_bounds() -> None:
    report = read_report(json.dumps({"what": "crashed", "tool": "x", "text": "y" * 9000}).encode())
    assert report is not None
    assert (report.what, report.tool, len(report.text)) == ("crashed", "x", 4000)


def test_callers_see_a_definition_without_its_contract_and_with_everything_else() -> None:
    held = {"category": "query", "idempotent": True, "effects": []}
    assert json.loads(without_contract(definition(**{CONTRACT_KEY: held, "example/other": 1})))["_meta"] == {
        "example/other": 1
    }
    assert "_meta" not in json.loads(without_contract(definition(**{CONTRACT_KEY: held})))
