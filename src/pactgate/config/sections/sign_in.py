"""How the gateway signs in to a server: the setting `auth` of one entry of `mcpServers`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta

from pactgate.config import value_checks
from pactgate.config.problems import ConfigFindings, Path, ValueFault
from pactgate.config.sections import Folder, Section, doc


def check_private_key(text: str) -> ValueFault | None:
    """A PEM key that can sign what proves a client: RSA, EC or Ed25519."""
    from pactgate.config.oauth_client import algorithm_of  # cryptography takes 20 MiB

    if algorithm_of(text) is not None:
        return None
    hint = "Use RSA with 2048 bits or more, EC P-256 or P-384, or Ed25519: `openssl genpkey -algorithm ed25519`."
    return ValueFault("This is no private key in PEM that can sign.", hint)


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
PrivateKey = Annotated[
    str, Meta(min_length=1, max_length=16_000, extra={"expand": True, "secret": True, "check": check_private_key})
]
Audience = Annotated[str, Meta(min_length=1, max_length=1000)]
Scope = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[\x21\x23-\x5b\x5d-\x7e]+$")]


class TokenExchange(Section, frozen=True, kw_only=True):
    """How the token of a caller becomes one for the server (`who: exchange`). The caller's own token goes to its issuer alone."""

    issuer: Annotated[Issuer, doc("Identity provider of the callers, one of `auth.issuers`.")]
    client_id: Annotated[
        ClientId | None, doc("Client that the gateway is there. Default: `clientId` of `auth`, with its secret or key.")
    ] = None
    client_secret: Annotated[ClientSecret | None, doc("Secret of that client.")] = None
    private_key: Annotated[PrivateKey | None, doc("Private key (PEM) of that client, instead of a secret.")] = None
    audience: Annotated[
        Audience | None, doc("What the provider calls the server, where it wants that beside its URL.")
    ] = None
    id_jag: Annotated[
        bool,
        doc(
            "Whether the provider gives an assertion (ID-JAG) that is redeemed at `issuer` of `auth`, the authorization "
            "server of the server. Default: it gives the token for the server itself (RFC 8693)."
        ),
    ] = False
    subject_token_type: Annotated[
        Literal["access_token", "id_token", "jwt"], doc("What the provider is told that the token of a caller is.")
    ] = "access_token"

    def __repr__(self) -> str:
        return f"TokenExchange(issuer={self.issuer!r})"


class SignIn(Section, frozen=True, kw_only=True):
    """How the gateway signs in to a server over HTTP."""

    type: Annotated[Literal["oauth"], doc("OAuth, as the server itself describes it.")]
    who: Annotated[
        Literal["shared", "user", "service", "exchange"],
        doc(
            "Whose grant a call has. `shared`: somebody signs in once, with `pactgate login`. `user`: each client its own, by a "
            "link that its first call gives. `service`: the gateway's own, by client credentials. `exchange`: made from the "
            "token of the caller, by its identity provider."
        ),
    ] = "shared"
    lists: Annotated[
        Literal["shared", "service"],
        doc("Whose grant lists the tools where `who` is `user` or `exchange`: lists never need a sign-in of a user."),
    ] = "shared"
    issuer: Annotated[
        Issuer | None,
        doc(
            "Authorization server that `clientId` belongs to, exactly as it writes itself. Its origin may be called also where "
            "it is not a public one. Default: the one that the server names, or that of `exchange`."
        ),
    ] = None
    client_id: Annotated[
        ClientId | None,
        doc(
            "Client that is registered already, or the https URL of a client id metadata document. Default: the document that "
            "the gateway publishes where `auth.resource` is https, else it registers itself."
        ),
    ] = None
    client_secret: Annotated[ClientSecret | None, doc("Secret of that client. It is sent to `issuer` alone.")] = None
    private_key: Annotated[
        PrivateKey | None,
        doc("Private key (PEM) of that client, instead of a secret, best as `${file:...}` (`private_key_jwt`)."),
    ] = None
    assertion_file: Annotated[
        Folder | None,
        doc(
            "File with a JWT of the platform the gateway runs on, such as a service account token, which `issuer` takes for "
            "`clientId` (RFC 7523). It is read at each use."
        ),
    ] = None
    scopes: Annotated[
        tuple[Scope, ...], doc("Scopes to ask for. Default: those the server wants.", max_length=100)
    ] = ()
    exchange: Annotated[TokenExchange | None, doc("The provider of the callers, where `who` is `exchange`.")] = None

    @property
    def is_per_caller(self) -> bool:
        """Whether each caller has a grant of its own."""
        return self.who in ("user", "exchange")

    @property
    def lists_by_service(self) -> bool:
        """Whether the gateway has a grant of its own, for the lists or for everything."""
        return self.who == "service" or (self.is_per_caller and self.lists == "service")

    @property
    def has_no_shared_grant(self) -> bool:
        """Whether nothing goes out with the sign-in of `pactgate login`. With `user` it is that of whoever starts the gateway."""
        return self.lists_by_service and self.who != "user"

    def __repr__(self) -> str:
        return f"SignIn(who={self.who!r}, issuer={self.issuer!r}, client_id={self.client_id!r})"


_PROOFS = ("clientSecret", "privateKey", "assertionFile")


def check_sign_in(auth: Mapping[str, Any], headers: Mapping[str, str], path: Path, found: ConfigFindings) -> None:
    """Check what belongs together."""
    who, exchange = auth.get("who", "shared"), auth.get("exchange")
    given = [key for key in _PROOFS if key in auth]
    is_service = who == "service" or auth.get("lists") == "service"
    if len(given) > 1:
        found.add((*path, given[1]), f"{given[0]} and {given[1]} are both given.", "Keep one of them.")
    _check_needed(auth, given, path, found, is_service=is_service)
    if "lists" in auth and who not in ("user", "exchange"):
        found.add((*path, "lists"), "This has no effect here.", "It belongs to who: user or exchange.")
    if "assertionFile" in auth and not is_service:
        found.add((*path, "assertionFile"), "This has no effect here.", "It belongs to who: service.")
    if (who == "exchange") != (exchange is not None):
        found.add((*path, "exchange"), "who: exchange and the section exchange belong together.", "Add the other one.")
    elif exchange is not None:
        _check_exchange(auth, exchange, (*path, "exchange"), found)
    if any(name.casefold() == "authorization" for name in headers):
        message = "auth and a header Authorization contradict each other."
        found.add(path, message, "Keep one of them.")


def _check_needed(
    auth: Mapping[str, Any], given: list[str], path: Path, found: ConfigFindings, *, is_service: bool
) -> None:
    needed = [(key, ("issuer", "clientId")) for key in given]
    exchange = auth.get("exchange") or {}
    known = {"issuer": exchange.get("issuer"), **auth} if not exchange.get("idJag") else auth
    if exchange.get("idJag"):
        needed.append(("exchange", ("issuer", "clientId")))
    if is_service:
        more = () if given else ("clientSecret",)
        needed.append(("who" if auth.get("who") == "service" else "lists", ("issuer", "clientId", *more)))
    for key, others in needed:
        missing = [other for other in others if known.get(other) is None]
        if missing:
            found.add((*path, key), f"This needs {' and '.join(missing)}, too.", "Add it.")


def _check_exchange(auth: Mapping[str, Any], exchange: Mapping[str, Any], path: Path, found: ConfigFindings) -> None:
    own = [key for key in ("clientSecret", "privateKey") if key in exchange]
    if len(own) > 1:
        found.add((*path, own[1]), f"{own[0]} and {own[1]} are both given.", "Keep one of them.")
    if "clientId" not in exchange and "clientId" not in auth:
        found.add((*path, "clientId"), "The provider has to know the gateway as a client.", "Add clientId.")
    if own and "clientId" not in exchange:
        found.add((*path, own[0]), "This needs clientId, too.", "Add it.")
    if not exchange.get("idJag") and auth.get("issuer") not in (None, exchange.get("issuer")):
        message = "Without idJag the token comes from the provider of the callers, and issuer names another one."
        found.add((*path, "issuer"), message, "Remove issuer of auth, or set idJag.")


def check_exchanges(settings: Mapping[str, Any], found: ConfigFindings) -> None:
    """Check that callers can have tokens of the providers that exchange them."""
    issuers = [one.get("issuer") for one in settings.get("auth", {}).get("issuers", ())]
    for id_, server in settings.get("servers", {}).items():
        exchange = (server.get("auth") or {}).get("exchange")
        if exchange is not None and exchange.get("issuer") not in issuers:
            message = "No caller has a token of this provider: it is none of auth.issuers."
            found.add(("mcpServers", id_, "auth", "exchange", "issuer"), message, "Add it there.", at_value=True)
