"""How the gateway signs in to a server: the setting `auth` of one entry of `mcpServers`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta

from pactgate.config import value_checks
from pactgate.config.problems import ConfigFindings, Path
from pactgate.config.sections import Section, doc

Issuer = Annotated[str, Meta(min_length=1, max_length=1000, extra={"expand": True, "check": value_checks.check_url})]
ClientId = Annotated[
    str, Meta(min_length=1, max_length=1000, extra={"expand": True, "check": value_checks.check_header_value})
]
ClientSecret = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=4000,
        extra={"expand": True, "secret": True, "check": value_checks.check_header_value},
    ),
]
Scope = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[\x21\x23-\x5b\x5d-\x7e]+$")]


class SignIn(Section, frozen=True, kw_only=True):
    """How the gateway signs in to a server over HTTP."""

    type: Annotated[Literal["oauth"], doc("OAuth, as the server itself describes it.")]
    who: Annotated[
        Literal["shared", "service"],
        doc(
            "Whose grant it is. `shared`: somebody signs in once, with `pactgate login`. `service`: the gateway's own, by "
            "`clientId` and `clientSecret` (client credentials)."
        ),
    ] = "shared"
    issuer: Annotated[
        Issuer | None,
        doc(
            "Authorization server that `clientId` belongs to, exactly as it writes itself. Its origin may be called also where "
            "it is not a public one. Default: the one that the server names."
        ),
    ] = None
    client_id: Annotated[
        ClientId | None,
        doc(
            "Client that is registered already, or the https URL of a client id metadata document. Default: registers itself."
        ),
    ] = None
    client_secret: Annotated[ClientSecret | None, doc("Secret of that client. It is sent to `issuer` alone.")] = None
    scopes: Annotated[
        tuple[Scope, ...], doc("Scopes to ask for. Default: those the server wants.", max_length=100)
    ] = ()


def check_sign_in(auth: Mapping[str, Any], headers: Mapping[str, str], path: Path, found: ConfigFindings) -> None:
    """Check what belongs together."""
    wanted = {
        "clientSecret": ("issuer", "clientId") if "clientSecret" in auth else (),
        "who": ("issuer", "clientId", "clientSecret") if auth.get("who") == "service" else (),
    }
    for key, others in wanted.items():
        missing = [other for other in others if auth.get(other) is None]
        if missing:
            found.add((*path, key), f"This needs {' and '.join(missing)}, too.", "Add it.")
    if any(name.casefold() == "authorization" for name in headers):
        message = "auth and a header Authorization contradict each other."
        found.add(path, message, "Keep one of them.")
