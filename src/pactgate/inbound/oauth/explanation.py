"""Says step by step why an access token is or is not accepted, for the operator. Must not: repeat a part of the token that is secret."""

from __future__ import annotations

import asyncio
import hashlib
import time

from msgspec import Struct

from pactgate.core.display import flat
from pactgate.inbound.credentials import Admission
from pactgate.inbound.oauth.access_tokens import AccessTokens, TrustedIssuer
from pactgate.inbound.oauth.introspection import ProviderDownError
from pactgate.inbound.oauth.key_set import PublicKey
from pactgate.inbound.oauth.token_form import TokenRefusedError, is_jwt, read_signed


class Step(Struct, frozen=True):
    """One check, and what it found."""

    name: str
    is_good: bool
    text: str


class Explanation(Struct):
    """The steps up to the first that fails, and what the token grants if none does."""

    steps: list[Step]
    admission: Admission | None = None

    def note(self, name: str, text: str, *, is_good: bool = True) -> None:
        self.steps.append(Step(name, is_good, text))


async def explain_token(tokens: AccessTokens, token: str) -> Explanation:
    """Check a token as the gateway does, and say what each step finds."""
    found = Explanation([])
    try:
        await (_signed if is_jwt(token) else _opaque)(tokens, token, found)
    except TokenRefusedError as refusal:
        found.note("refused", refusal.reason, is_good=False)
    return found


async def _signed(tokens: AccessTokens, token: str, found: Explanation) -> None:
    signed = read_signed(token)
    header = {name: flat(str(signed.header.get(name)), 60) for name in ("alg", "typ", "kid")}
    found.note("form", "a JWT with " + ", ".join(f"{name} {value}" for name, value in header.items()))
    issuer = tokens.issuer_of(signed)
    found.note("issuer", issuer.settings.issuer)
    key = issuer.key_of(signed.header)
    while not isinstance(key, PublicKey):
        await asyncio.wait((key,))
        key = issuer.key_of(signed.header)
    found.note("key", "its issuer has the key that it names")
    key.verify(signed.header["alg"], signed.signed, signed.signature)
    found.note("signature", "made with that key")
    if "exp" not in signed.claims:
        raise TokenRefusedError("it does not say when it expires (exp)")
    _granted(tokens, issuer, signed.claims, found)


async def _opaque(tokens: AccessTokens, token: str, found: Explanation) -> None:
    found.note("form", "not a JWT, so its provider has to be asked")
    asked = [one for one in tokens.issuers.values() if one.introspector is not None]
    if not asked:
        raise TokenRefusedError("no issuer has `introspection`")
    for issuer in asked:
        assert issuer.introspector is not None, "only such issuers are asked"
        try:
            claims = await issuer.introspector.ask(token, hashlib.sha256(token.encode()).digest())
        except (TokenRefusedError, ProviderDownError) as fault:
            found.note("introspection", f"{issuer.settings.issuer}: {fault}", is_good=False)
            continue
        found.note("introspection", f"{issuer.settings.issuer} says that it is active")
        tokens.admit_introspected(issuer, claims)
        _granted(tokens, issuer, claims, found)
        return


def _granted(tokens: AccessTokens, issuer: TrustedIssuer, claims: dict[str, object], found: Explanation) -> None:
    granted = issuer.check_claims(claims, time.time())
    found.note("claims", "time, audience and kind are as they have to be")
    if granted.part is not None:
        found.note("audience", f"for /mcp/{granted.part} only")
    if granted.key_thumbprint is not None:
        found.note("binding", "each request needs a proof of the client's key (DPoP)")
    found.admission = tokens.admission_of(issuer, granted)
