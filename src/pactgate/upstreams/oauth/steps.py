"""The values that the flows of a sign-in are made of, and their failure. Pure."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from pactgate.core.display import flat
from pactgate.core.failures import GatewayFailure, Kind

T = TypeVar("T")
_SAID_CHARS = 200


class ClientSigner(Struct, frozen=True):
    """Who signs an assertion for whom (RFC 7523, 3)."""

    client_id: str
    audience: str
    private_key: str


class Fetch(Struct, frozen=True):
    """One request: a GET, or a POST where it has a form or JSON."""

    url: str
    form: Mapping[str, str] | None = None
    json: Mapping[str, object] | None = None
    authorization: str = ""
    signer: ClientSigner | None = None
    """What the form has to prove with a signature of this moment."""


class Fetched(Struct, frozen=True):
    status: int
    body: bytes


Steps = Generator[Fetch, Fetched, T]
"""A flow: yields requests, is sent their answers, and returns what was found."""


OF_CALLER: Final = "grantOf"
"""The detail of a failure that a sign-in of the caller itself mends; it is `caller` then."""


def authorization_required(
    server: str, why: str, *, next_step: str | None = None, is_callers: bool = False
) -> GatewayFailure:
    """The failure of a call or a connection that only a sign-in can mend. `why` quotes no upstream.

    A sign-in of the caller has no next step here: whoever answers the call knows where the caller signs in.
    """
    step = ("" if is_callers else f"Run `pactgate login {server}`.") if next_step is None else next_step
    return GatewayFailure(
        Kind.AUTHORIZATION_REQUIRED,
        f"{server} needs {'your ' if is_callers else ''}sign-in: {why} {step}".rstrip(),
        server=server,
        details={"permanent": True, **({OF_CALLER: "caller"} if is_callers else {})},
    )


def sign_in_failure(server: str, why: str, said: str = "") -> GatewayFailure:
    """A sign-in that can't go on. `said` is what the other side wrote; only whoever signs in sees it."""
    public = f"Signing in to {server} failed: {why}"
    message = f"{public} It said: {flat(said, _SAID_CHARS)!r}." if said else public
    return GatewayFailure(
        Kind.AUTHORIZATION_REQUIRED, message, server=server, details={"permanent": True}, public=public
    )


def decode_object(fetched: Fetched) -> dict[str, object] | None:
    """The JSON object of an answer; None for anything else."""
    try:
        return msgspec.json.decode(fetched.body, type=dict[str, object])
    except (msgspec.DecodeError, RecursionError, ValueError):
        return None


def text_of(members: Mapping[str, object], name: str) -> str:
    """A member that is a string, else nothing."""
    found = members.get(name)
    return found if isinstance(found, str) else ""


def texts_of(members: Mapping[str, object], name: str) -> tuple[str, ...] | None:
    """A member that is a list, without what is no string; None where there is no list."""
    found = members.get(name)
    return tuple(one for one in found if isinstance(one, str)) if isinstance(found, list) else None
