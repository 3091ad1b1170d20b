"""Error types as the conventions have them."""

from __future__ import annotations

from typing import Any

import pytest

from pactgate.core.context import ExecutionRecord
from pactgate.core.failures import GatewayFailure, Kind
from pactgate.telemetry.conventions import client_error_type, method_of, server_error_type, transport_of
from tests.support.callers import caller, context


def sealed(failure: GatewayFailure | None = None, method: str = "tools/call", **notes: Any) -> ExecutionRecord:
    ctx = context(method)
    for name, note in notes.items():
        setattr(ctx, name, note)
    if failure is not None:
        ctx.fail(failure)
    return ctx.seal(1.0)


@pytest.mark.parametrize(
    ("code", "expected"), [(-32602, ""), (-32601, ""), (-32603, "-32603"), (-32042, "-32042"), (17, "_OTHER")]
)
def test_codes_for_what_a_caller_did_wrong_are_no_errors_of_the_server(code: int, expected: str) -> None:
    assert server_error_type(sealed(GatewayFailure(Kind.INTERNAL, "no"), error_code=code)) == expected


def test_every_code_of_a_server_is_an_error_towards_it() -> None:
    refused = GatewayFailure(Kind.UPSTREAM_ERROR, "no", details={"upstream": {"code": -32602}})
    assert client_error_type(sealed(refused)) == "-32602"
    assert client_error_type(sealed(GatewayFailure(Kind.CALL_TIMEOUT, "no"))) == "timeout"
    assert client_error_type(sealed(is_error=True)) == "tool_error" == server_error_type(sealed(is_error=True))
    assert client_error_type(sealed()) == "" == server_error_type(sealed())


def test_what_a_client_invents_is_other() -> None:
    assert (method_of(sealed(method="evil/one")), method_of(sealed(method="ping"))) == ("other", "ping")


@pytest.mark.parametrize(("peer", "transport"), [("127.0.0.1", "tcp"), ("unix", "unix"), ("", "pipe")])
def test_the_transport_is_known_from_the_address(peer: str, transport: str) -> None:
    ctx = context(who=caller(peer=peer))
    assert transport_of(ctx.seal(1.0)) == transport
