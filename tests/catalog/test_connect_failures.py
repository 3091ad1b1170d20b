"""Whatever goes wrong while connecting, no call has run."""

from __future__ import annotations

import pytest

from pactgate.catalog.connect_failures import as_connect_failure, connect_timeout
from pactgate.core.failures import GatewayFailure, Kind, Verdict


@pytest.mark.parametrize("kind", [Kind.CONNECTION_LOST, Kind.INVALID_FRAME, Kind.HTTP_STATUS, Kind.CONNECTION_FAILED])
def test_a_failure_while_connecting_did_not_run_anything_and_keeps_its_reason(kind: Kind) -> None:
    failure = as_connect_failure(GatewayFailure(kind, "secret detail", details={"status": 500}, public="a reason"))
    assert (failure.kind, failure.verdict) == (Kind.CONNECTION_FAILED, Verdict.DID_NOT_RUN)
    assert (failure.message, failure.public) == ("secret detail", "a reason")
    assert failure.details["status"] == 500


def test_a_connection_timeout_names_the_server_and_the_limit() -> None:
    failure = connect_timeout("files", 1500)
    assert (failure.kind, failure.verdict) == (Kind.CONNECT_TIMEOUT, Verdict.DID_NOT_RUN)
    assert "files" in failure.message
    assert failure.details["timeoutMs"] == 1500
