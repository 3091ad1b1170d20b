"""The words of a contract, and what they cover."""

from __future__ import annotations

import json

import msgspec
import pytest

from pactgate.core.contract import Contract, DeclaredCode, Effect, Operation, covers


def test_a_contract_on_the_wire_has_the_agreed_members_and_no_cache_time_unless_there_is_one() -> None:
    contract = Contract("query", True, (Effect.READ,), (DeclaredCode("NO_NOTE", "There is none.", True),))
    assert json.loads(msgspec.json.encode(contract)) == {
        "category": "query",
        "idempotent": True,
        "effects": ["filesystem.read"],
        "errorCodes": [{"code": "NO_NOTE", "description": "There is none.", "retryable": True}],
        "assumed": [],
        "takesCall": False,
    }
    assert msgspec.to_builtins(Contract("scan", True, (), cache_ttl_ms=5))["cacheTtlMs"] == 5


@pytest.mark.parametrize(
    "broken",
    [
        b"{}",
        b'{"category":"read","idempotent":true,"effects":[]}',
        b'{"category":"query","idempotent":"yes","effects":[]}',
        b'{"category":"query","idempotent":true,"effects":["telepathy"]}',
        b'{"category":"query","idempotent":true,"effects":[],"errorCodes":[{"code":"no spaces"}]}',
        b'{"category":"query","idempotent":true,"effects":[],"cacheTtlMs":0}',
    ],
)
def test_half_a_contract_is_none(broken: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(broken, type=Contract)


def test_who_may_write_may_read_and_nothing_else_follows_from_anything() -> None:
    assert covers((Effect.WRITE,), "filesystem.read")
    assert not covers((Effect.READ,), "filesystem.write")
    assert not covers(tuple(Effect), "telepathy")
    assert not covers((), "network")


def test_an_operation_says_only_what_there_is_to_say() -> None:
    assert msgspec.to_builtins(Operation("network", "a:80")) == {"kind": "network", "target": "a:80"}
    assert msgspec.to_builtins(Operation(more=3)) == {"more": 3}


def test_operations_in_words() -> None:
    done = (Operation("network", "a:1"), Operation("filesystem.write", "/b", refused=True), Operation(more=2))
    assert [str(one) for one in done] == ["network a:1", "filesystem.write /b (refused)", "2 more"]


def test_a_declared_code_is_found_by_its_name() -> None:
    contract = Contract("query", True, (), (DeclaredCode("A"), DeclaredCode("B", retryable=True)))
    assert contract.declared("B") == DeclaredCode("B", retryable=True)
    assert contract.declared("C") is None
