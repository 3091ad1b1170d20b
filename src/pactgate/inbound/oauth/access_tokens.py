"""Access tokens of identity providers as a source of credentials (`CredentialSource`).

A JWT is verified here with keys that are at hand; only a key that is not known yet, and a token that is no JWT, make their request wait.
Clients are told that a token is not accepted, and nothing more; the reason is for the log. Must not: accept what the settings do not name.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from pactgate.config.sections.auth import Auth
from pactgate.config.sections.oauth import Issuer
from pactgate.core.display import flat
from pactgate.core.principal import Principal, PrincipalKind
from pactgate.inbound.credentials import INVALID_TOKEN, Admission, AuthError, PendingCheck
from pactgate.inbound.http_exchange import HttpExchange
from pactgate.inbound.oauth.claims import Granted, check_claims
from pactgate.inbound.oauth.introspection import MAX_AGE_S, Introspector, ProviderDownError
from pactgate.inbound.oauth.key_set import KeyStore, PublicKey
from pactgate.inbound.oauth.proofs import ALGORITHMS, ProofCheck
from pactgate.inbound.oauth.protected_resource import ProtectedResource
from pactgate.inbound.oauth.provider import FetchDocument, Provider
from pactgate.inbound.oauth.quirks import ClaimNames, claim_names
from pactgate.inbound.oauth.token_form import SignedToken, TokenRefusedError, is_jwt, read_signed
from pactgate.inbound.request_head import Headers

_TYPES: Final = frozenset({"jwt", "at+jwt", "application/at+jwt"})
_NOT_ACCEPTED: Final = "That access token is not accepted here."
_NOT_PROVED: Final = "That access token needs a proof of its key with each request (DPoP)."
_UNCHECKED: Final = "The access token can't be checked now; try again."
_INVALID_PROOF: Final = f'WWW-Authenticate: DPoP error="invalid_dpop_proof", algs="{" ".join(ALGORITHMS)}"\r\n'.encode()
_LATER: Final = b"Retry-After: 5\r\n"


class TrustedIssuer:
    """One issuer with its keys."""

    def __init__(self, settings: Issuer, fetch: FetchDocument) -> None:
        self.settings = settings
        self.names: ClaimNames = claim_names(settings)
        provider = Provider(settings, fetch)
        load = provider.load_keys if settings.jwks is None else None
        self.keys = KeyStore(load, given=settings.jwks)
        own = settings.introspection
        self.introspector = None if own is None else Introspector(provider, own)

    def key_of(self, header: Mapping[str, Any]) -> PublicKey | asyncio.Task[None]:
        """The key that a header names, or what to wait for. Raises `TokenRefusedError`."""
        algorithm, kind, id_ = header.get("alg"), header.get("typ", "JWT"), header.get("kid")
        if algorithm not in self.settings.algorithms:
            reason = f"its algorithm {flat(str(algorithm), 20)} is not one of {', '.join(self.settings.algorithms)}"
            raise TokenRefusedError(reason, is_guess=True)
        if not isinstance(kind, str) or kind.lower() not in _TYPES:
            raise TokenRefusedError(f"its type {flat(str(kind), 40)} is not that of an access token (typ)")
        if "crit" in header:
            raise TokenRefusedError("it has extensions that have to be understood (crit)")
        if not isinstance(id_, str):
            raise TokenRefusedError("it does not say which key it is signed with (kid)")
        return self.keys.find(id_)

    def check_claims(self, claims: dict[str, Any], now: float) -> Granted:
        return check_claims(claims, self.settings, self.names, now)

    def close(self) -> None:
        self.keys.close()
        if self.introspector is not None:
            self.introspector.close()


class AccessTokens:
    """The tokens of all issuers. `resource` is what they are for."""

    def __init__(self, auth: Auth, fetch: FetchDocument, wall: Callable[[], float] = time.time) -> None:
        self.auth = auth
        self.issuers = {one.issuer: TrustedIssuer(one, fetch) for one in auth.issuers}
        self.resource = ProtectedResource(auth)
        self._wall = wall
        self._proofs = ProofCheck()

    @classmethod
    def of(cls, auth: Auth, fetch: FetchDocument, before: AccessTokens | None) -> AccessTokens:
        """Those of these settings: the same as before, if they are the same."""
        if before is not None and replace(before.auth, tokens=auth.tokens, anonymous=auth.anonymous) == auth:
            return before
        return cls(auth, fetch)

    def close(self) -> None:
        for issuer in self.issuers.values():
            issuer.close()

    def on_keys_removed(self, listener: Callable[[], None]) -> None:
        for issuer in self.issuers.values():
            issuer.keys.on_removed = listener

    # -- the interface of a source of credentials

    def find(self, token: str, digest: bytes, headers: Headers) -> Admission | AuthError | PendingCheck | None:
        try:
            if is_jwt(token):
                return self._find_signed(token)
            return self._find_opaque(token, digest)
        except TokenRefusedError as refusal:
            return _refused(refusal)

    def holders(self) -> Iterable[Principal]:
        return ()

    def admits(self, principal: Principal) -> bool:
        return principal.kind is PrincipalKind.OAUTH and principal.issuer in self.issuers

    def expiries(self) -> Iterable[float]:
        return ()

    # -- signed tokens

    def issuer_of(self, signed: SignedToken) -> TrustedIssuer:
        claimed = signed.claims.get("iss")
        issuer = self.issuers.get(claimed) if isinstance(claimed, str) else None
        if issuer is None:
            reason = f"its issuer {flat(str(claimed), 200)} is none of those in `auth.issuers`"
            raise TokenRefusedError(reason, is_guess=True)
        return issuer

    def _find_signed(self, token: str) -> Admission | PendingCheck:
        signed = read_signed(token)
        issuer = self.issuer_of(signed)
        key = issuer.key_of(signed.header)
        if not isinstance(key, PublicKey):
            return PendingCheck(partial(self._wait_for_key, issuer, signed, key))
        return self._admit_signed(issuer, signed, key)

    async def _wait_for_key(
        self, issuer: TrustedIssuer, signed: SignedToken, loading: asyncio.Task[None]
    ) -> Admission | AuthError:
        try:
            await asyncio.wait((loading,))
            key = issuer.key_of(signed.header)
            if not isinstance(key, PublicKey):  # asked too early for what it needs: the next fetch is for others
                await asyncio.wait((key,))
                key = issuer.key_of(signed.header)
            if not isinstance(key, PublicKey):
                raise TokenRefusedError("its issuer has no key with its id (kid)")
            return self._admit_signed(issuer, signed, key)
        except TokenRefusedError as refusal:
            return _refused(refusal)

    def _admit_signed(self, issuer: TrustedIssuer, signed: SignedToken, key: PublicKey) -> Admission:
        key.verify(signed.header["alg"], signed.signed, signed.signature)
        if "exp" not in signed.claims:
            raise TokenRefusedError("it does not say when it expires (exp)")
        return self.admission_of(issuer, issuer.check_claims(signed.claims, self._wall()))

    # -- opaque tokens

    def _find_opaque(self, token: str, digest: bytes) -> AuthError | PendingCheck | None:
        asked = [one for one in self.issuers.values() if one.introspector is not None]
        if not asked:
            return None
        if all(one.introspector is not None and one.introspector.is_inactive(digest) for one in asked):
            raise TokenRefusedError("its provider said a moment ago that it is not active", is_guess=True)
        return PendingCheck(partial(self._introspect, asked, token, digest))

    async def _introspect(self, asked: list[TrustedIssuer], token: str, digest: bytes) -> Admission | AuthError:
        """The first provider that knows the token decides. While one can't be asked, it may be the one."""
        refused: AuthError | None = None
        unknown: AuthError | None = None
        for issuer in asked:
            assert issuer.introspector is not None, "only such issuers are asked"
            try:
                claims = await issuer.introspector.ask(token, digest)
                return self.admit_introspected(issuer, claims)
            except TokenRefusedError as refusal:
                refused = _refused(refusal)
            except ProviderDownError as fault:
                reason = f"{issuer.settings.issuer} can't be asked about a token: {fault}"
                unknown = AuthError(503, _UNCHECKED, _LATER, reason=reason)
        outcome = unknown or refused
        assert outcome is not None, "at least one was asked"
        return outcome

    def admit_introspected(self, issuer: TrustedIssuer, claims: dict[str, Any]) -> Admission:
        if claims.get("iss", issuer.settings.issuer) != issuer.settings.issuer:
            raise TokenRefusedError("its provider says that another issuer made it (iss)")
        now = self._wall()
        granted = issuer.check_claims(claims, now)
        found = self.admission_of(issuer, granted)
        end = math.inf if granted.expires_at is None else granted.expires_at
        return replace(found, expires_at=min(found.expires_at, now + MAX_AGE_S), later_end=end)

    # -- what every request must show besides

    def admission_of(self, issuer: TrustedIssuer, granted: Granted) -> Admission:
        check = None
        if granted.part is not None or granted.key_thumbprint is not None:
            check = _RequestCheck(self, granted.part, granted.key_thumbprint, issuer.settings.clock_skew_ms / 1000)
        expires_at = self._wall() + MAX_AGE_S if granted.expires_at is None else granted.expires_at
        return Admission(granted.principal, expires_at, check)

    def require_proof(self, exchange: HttpExchange, thumbprint: str, skew_s: float) -> None:
        scheme, _, token = exchange.headers["authorization"][0].partition(" ")
        if scheme.lower() != "dpop":
            raise TokenRefusedError("it is bound to a key, so it has to be sent as `Authorization: DPoP`")
        self._proofs.require(
            exchange.headers.get("dpop", []),
            token=token.strip(" "),
            thumbprint=thumbprint,
            method=exchange.method,
            url=self.resource.url_of(exchange),
            skew_s=skew_s,
            now=self._wall(),
        )


class _RequestCheck(Struct, frozen=True):
    """What each request with this token has to fulfil: it is for one server or view only, or bound to a key."""

    tokens: AccessTokens
    part: str | None
    key_thumbprint: str | None
    skew_s: float

    def __call__(self, exchange: HttpExchange) -> AuthError | None:
        if self.part is not None and exchange.path != f"/mcp/{self.part}":
            return _refused(TokenRefusedError(f"it is for /mcp/{flat(self.part, 60)} only (aud)"))
        if self.key_thumbprint is None:
            is_bearer = exchange.headers["authorization"][0][:7].lower() == "bearer "
            return None if is_bearer else _refused(TokenRefusedError("it is not bound to a key, but sent as such"))
        try:
            self.tokens.require_proof(exchange, self.key_thumbprint, self.skew_s)
        except TokenRefusedError as refusal:
            return AuthError(401, _NOT_PROVED, _INVALID_PROOF, reason=f"proof of possession: {refusal.reason}")
        return None


def _refused(refusal: TokenRefusedError) -> AuthError:
    reason = f"access token not accepted: {refusal.reason}"
    return AuthError(401, _NOT_ACCEPTED, INVALID_TOKEN, is_guess=refusal.is_guess, reason=reason)
