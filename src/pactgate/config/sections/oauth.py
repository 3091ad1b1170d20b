"""The parts of the section `auth` about identity providers: whose tokens are accepted, and what the scopes in them allow.

Nothing is guessed: an issuer without audiences, a category without a scope and a scope that nothing refers to are errors. Must not: fetch
anything, or read a token.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Literal, get_args

from msgspec import Meta

from pactgate.config import value_checks
from pactgate.config.problems import ConfigFindings, Path, ValueFault, nearest, show
from pactgate.config.sections import Section, doc
from pactgate.config.sections.limits import CategoryName

Algorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
"""Asymmetric ones only: with HS256 everybody who checks a token could make one."""
Quirks = Literal["keycloak", "entra", "auth0", "okta", "authentik", "descope"]
CATEGORIES: Final[tuple[CategoryName, ...]] = get_args(CategoryName)


def check_issuer(text: str) -> ValueFault | None:
    """The identifier of an issuer, which is also where its metadata is: https, or http on this machine."""
    fault = value_checks.check_url(text)
    if fault is not None:
        return fault
    from urllib.parse import urlsplit  # only configurations with issuers need it

    parts = urlsplit(text)
    if "?" in text:
        return ValueFault("An issuer has no query (RFC 8414, 2).", "Write it as `issuer` stands in its metadata.")
    if parts.scheme == "http" and not value_checks.is_loopback(parts.hostname or ""):
        return ValueFault("An http URL beyond this machine can be forged by anybody in between.", "Use https.")
    return None


Audience = Annotated[str, Meta(min_length=1, max_length=500)]
Claim = Annotated[str, Meta(min_length=1, max_length=200)]
ProviderUrl = Annotated[str, Meta(min_length=1, max_length=2000, extra={"check": check_issuer})]
ClientSecret = Annotated[
    str,
    Meta(min_length=1, max_length=1000, extra={"expand": True, "secret": True, "check": value_checks.check_env_value}),
]
ScopeName = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[\x21\x23-\x5b\x5d-\x7e]+$")]


class Introspection(Section, frozen=True, kw_only=True):
    """Tokens that are no JWT are checked by asking the provider (RFC 7662)."""

    client_id: Annotated[str, doc("Client that the gateway is at the provider.", min_length=1, max_length=500)]
    client_secret: Annotated[ClientSecret, doc("Its secret, as `${VARIABLE}` or `${file:/run/secrets/x}`.")]
    url: Annotated[
        ProviderUrl | None, doc("Introspection endpoint. Default: `introspection_endpoint` of the metadata.")
    ] = None

    def __repr__(self) -> str:
        return f"Introspection(client_id={self.client_id!r})"


class Login(Section, frozen=True, kw_only=True):
    """Client with which people sign in to the console, and show who opens a link of `/connect` (OpenID Connect)."""

    client_id: Annotated[
        str,
        doc(
            "Client at the provider, with the redirect URI `/connect/callback` of the gateway.",
            min_length=1,
            max_length=500,
        ),
    ]
    client_secret: Annotated[
        ClientSecret | None, doc("Its secret, as `${VARIABLE}` or `${file:/run/secrets/x}`. Default: a public client.")
    ] = None
    scopes: Annotated[
        tuple[ScopeName, ...],
        doc(
            "Scopes to ask for at the provider when a person signs in to the console, beside `openid`. Default: the one that allows "
            "to read, `mcp:read`.",
            max_length=20,
        ),
    ] = ()

    def __repr__(self) -> str:
        return f"Login(client_id={self.client_id!r})"


class Issuer(Section, frozen=True, kw_only=True):
    """One identity provider."""

    issuer: Annotated[
        ProviderUrl,
        doc("Its identifier, exactly as `iss` stands in its tokens, such as `https://idp.example/realms/x`."),
    ]
    audiences: Annotated[
        tuple[Audience, ...],
        doc("Values of `aud`, one of which a token must have, such as the URL of this gateway.", max_length=20),
    ] = ()
    jwks_uri: Annotated[
        ProviderUrl | None, doc("Where its public keys are. Default: `jwks_uri` of its metadata (RFC 8414, OpenID).")
    ] = None
    jwks: Annotated[Any, doc('Its public keys themselves, as `{"keys": [...]}`; nothing is fetched then.')] = None
    algorithms: Annotated[
        tuple[Algorithm, ...], doc("Signature algorithms to accept; only asymmetric ones exist here.", max_length=10)
    ] = ("RS256", "PS256", "ES256", "EdDSA")
    subject: Annotated[Claim | None, doc("Claim that names the caller. Default: `sub`, or that of `quirks`.")] = None
    client_id: Annotated[
        tuple[Claim, ...],
        doc("Claims that name the client; the first counts. Default: `client_id`, `azp`.", max_length=10),
    ] = ()
    groups: Annotated[
        tuple[Claim, ...],
        doc(
            "Claims with groups, such as `groups` or `realm_access.roles`; all count. Default: `groups`.", max_length=10
        ),
    ] = ()
    scopes: Annotated[
        tuple[Claim, ...], doc("Claims with scopes; all count. Default: `scope`, `scp`.", max_length=10)
    ] = ()
    quirks: Annotated[Quirks | None, doc("A known provider: sets the defaults of the claims above.")] = None
    introspection: Annotated[
        Introspection | None, doc("Credentials for checking tokens that are no JWT. Default: such tokens are refused.")
    ] = None
    login: Annotated[
        Login | None,
        doc(
            "Client with which people sign in to the console, and show who they are when they open a link of `/connect`. Default: "
            "they paste the token or key with which their client calls."
        ),
    ] = None
    clock_skew_ms: Annotated[
        int, doc("Milliseconds that the clocks of provider and gateway may differ.", ge=0, le=300000)
    ] = 30000
    dpop: Annotated[
        Literal["off", "allowed", "required"],
        doc(
            "Tokens bound to a key of their client (RFC 9449): `allowed` accepts them with a proof beside ordinary "
            "tokens, `required` accepts no others, `off` refuses them."
        ),
    ] = "allowed"


def provider_urls(issuers: Iterable[Issuer]) -> list[str | None]:
    """The URLs that the operator wrote."""
    return [
        url
        for one in issuers
        for url in (one.issuer, one.jwks_uri, one.introspection.url if one.introspection else None)
    ]


class Scope(Section, frozen=True, kw_only=True):
    """What a scope allows."""

    categories: Annotated[
        tuple[CategoryName, ...], doc("Categories of the tools it allows.", min_length=1, max_length=4)
    ]
    implies: Annotated[tuple[ScopeName, ...], doc("Scopes it includes.", max_length=20)] = ()


Scopes = Annotated[
    dict[ScopeName, Scope],
    doc(
        "Scopes of tokens of identity providers, by name. Default: `mcp:read` allows query and scan (and everything "
        "that is no tool), `mcp:write` mutation and `mcp:read`, `mcp:run` execution and `mcp:write`.",
        max_length=50,
    ),
]
DEFAULT_SCOPES: Final[dict[str, Scope]] = {
    "mcp:read": Scope(categories=("query", "scan")),
    "mcp:write": Scope(categories=("mutation",), implies=("mcp:read",)),
    "mcp:run": Scope(categories=("execution",), implies=("mcp:write",)),
}


def check_oauth(auth: dict[str, Any], given: Any, found: ConfigFindings) -> None:
    """Check issuers and scopes, each valid by itself, against each other. `given` has what is invalid, too."""
    seen: set[str] = set()
    for at, one in enumerate(auth.get("issuers", ())):
        path: Path = ("auth", "issuers", at)
        if one.get("issuer") in seen:
            found.add((*path, "issuer"), "This issuer is given twice.", "Keep one of them.", at_value=True)
        seen.add(one.get("issuer", ""))
        _check_issuer_entry(one, _entry(given, at), path, found)
    if auth.get("scopes") and not auth.get("issuers"):
        found.add(("auth", "scopes"), "This has no effect without issuers.", "Add auth.issuers, or remove it.")
    if auth.get("issuers") and auth.get("anonymous") is True:
        message = "Clients without a token may call every tool: scopes limit tokens of issuers only."
        found.warn(("auth", "anonymous"), message, "Leave it out, so that everybody needs a token.", at_value=True)
    if auth.get("scopes"):
        _check_scopes(auth["scopes"], found)


def _entry(given: Any, at: int) -> dict[str, Any]:
    listed = given.get("issuers") if isinstance(given, dict) else None
    entry = listed[at] if isinstance(listed, list) and at < len(listed) else None
    return entry if isinstance(entry, dict) else {}


def _check_issuer_entry(one: dict[str, Any], given: Any, path: Path, found: ConfigFindings) -> None:
    if not one.get("audiences"):
        hint = "Name what stands in `aud` of tokens for this gateway: tokens for others must not be accepted."
        found.add((*path, "audiences"), "An issuer without audiences would let in tokens made for others.", hint)
    if given.get("algorithms") == []:
        found.add((*path, "algorithms"), "Without algorithms no token is accepted.", "Leave it out for the default.")
    keys = one.get("jwks")
    if keys is not None and one.get("jwksUri") is not None:
        found.add((*path, "jwks"), "jwks and jwksUri are both given.", "Keep one of them.")
    if keys is not None and not _is_key_set(keys):
        found.add(
            (*path, "jwks"), 'A key set is {"keys": [...]} with public keys.', "Take it from the provider's jwks_uri."
        )


def _is_key_set(keys: Any) -> bool:
    listed = keys.get("keys") if isinstance(keys, dict) else None
    if not isinstance(listed, list | tuple) or not listed:
        return False
    return all(isinstance(key, dict) and key.get("kty") != "oct" and "d" not in key for key in listed)


def _check_scopes(scopes: Mapping[str, dict[str, Any]], found: ConfigFindings) -> None:
    homes: dict[str, str] = {}
    for name, scope in scopes.items():
        path: Path = ("auth", "scopes", name)
        for at, category in enumerate(scope.get("categories", ())):
            first = homes.setdefault(category, name)
            if first != name:
                message = f"{show(first)} allows {category} tools as well, so it is not clear which of them is needed."
                found.add((*path, "categories", at), message, "Name each category once; use implies.", at_value=True)
        for at, other in enumerate(scope.get("implies", ())):
            if other not in scopes:
                guess = nearest(other, scopes)
                hint = f"Did you mean {show(guess)}?" if guess else f"Scopes: {', '.join(scopes)}."
                found.add((*path, "implies", at), f"There is no scope {show(other)}.", hint, at_value=True)
            elif name in closure(other, scopes):
                message = f"{show(other)} implies {show(name)} already, so both would be the same."
                found.add((*path, "implies", at), message, "Remove one of them.", at_value=True)
    missing = [category for category in CATEGORIES if category not in homes]
    if missing:
        message = f"No scope allows {' or '.join(missing)} tools, so nobody with a token of an issuer could call them."
        found.add(("auth", "scopes"), message, "Add them to the categories of a scope.")


def closure(name: str, scopes: Mapping[str, Any]) -> frozenset[str]:
    """A scope with everything it includes."""
    known: set[str] = set()
    rest = [name]
    while rest:
        one = rest.pop()
        if one in known or one not in scopes:
            continue
        known.add(one)
        scope = scopes[one]
        rest.extend(scope.get("implies", ()) if isinstance(scope, dict) else scope.implies)
    return frozenset(known)
