"""The failures of an attempt to connect to a server. Must not: say that a call may have run, since none was sent."""

from __future__ import annotations

from pactgate.core.failures import GatewayFailure, Kind


def connect_timeout(server: str, limit_ms: int) -> GatewayFailure:
    return GatewayFailure(
        Kind.CONNECT_TIMEOUT,
        f"{server} did not connect within {limit_ms} ms (connection timed out)",
        details={"phase": "connect", "timeoutMs": limit_ms, "timeout_seconds": limit_ms / 1000},
    )


def as_connect_failure(failure: GatewayFailure) -> GatewayFailure:
    """Any failure while connecting is a failed connection, since no call was running. The message keeps the cause.
    A missing sign-in stays one."""
    if failure.kind in (Kind.CONNECTION_FAILED, Kind.CONNECT_TIMEOUT, Kind.AUTHORIZATION_REQUIRED):
        return failure
    return GatewayFailure(
        Kind.CONNECTION_FAILED,
        failure.message,
        is_transient=None if failure.is_transient or not failure.details.get("permanent") else False,
        details={**failure.details, "cause": failure.kind.value},
        public=failure.public,
    )
