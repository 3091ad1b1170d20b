"""Runs the steps of a sign-in: one request after the other, within bounds, to addresses the operator wrote and to public ones over https.

A server on this machine may name an authorization server on this machine, too: whoever runs it there can reach that anyway. No redirect
is followed. Must not: send a request twice.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlencode

import msgspec

from pactgate.config.oauth_client import algorithm_of
from pactgate.config.value_checks import is_loopback
from pactgate.core.failures import GatewayFailure, Kind, Verdict
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.http.egress import EgressPolicy, host_of, named_origins
from pactgate.upstreams.http.proxy import DIRECT, NetworkSettings
from pactgate.upstreams.http.request_message import header_block
from pactgate.upstreams.oauth.steps import ClientSigner, Fetch, Fetched, Steps, T, sign_in_failure

MAX_DOCUMENT_BYTES: Final = 256 * 1024
FETCH_S: Final = 10.0
CONNECT_S: Final = 5.0
"""Less than the whole: who could not be reached has got nothing, and who does not answer may have."""
_ASSERTION_S: Final = 60
_ASSERTION_TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


class SignInFetcher:
    """`url` is that of the server; `named` are further URLs that the operator wrote."""

    def __init__(
        self,
        client: HttpClient,
        server: str,
        url: str,
        named: Iterable[str | None] = (),
        *,
        network: NetworkSettings = DIRECT,
    ) -> None:
        self._client = client
        self._server = server
        self._named = (url, *named)
        self._is_local = is_loopback(host_of(url) or "")
        self._network = network

    async def run(self, steps: Steps[T]) -> T:
        """What the steps find. Raises `GatewayFailure`, and what the steps raise."""
        try:
            fetch = next(steps)
            while True:
                fetch = steps.send(await self._fetch(fetch))
        except StopIteration as end:
            found: T = end.value
            return found

    async def _fetch(self, fetch: Fetch) -> Fetched:
        """Raises the failure that says why a document can't be had."""
        named = (*self._named, fetch.url) if self._is_local and is_loopback(host_of(fetch.url) or "") else self._named
        egress = EgressPolicy(
            self._server, named_origins(named, ()), connect_timeout_s=CONNECT_S, network=self._network
        )
        try:
            async with asyncio.timeout(FETCH_S):
                target = egress.target(fetch.url)
                body, content_type = _body(fetch)
                pairs = [("Accept", "application/json"), *([("Content-Type", content_type)] if content_type else [])]
                if fetch.authorization:
                    pairs.append(("Authorization", fetch.authorization))
                response = await self._client.request(
                    b"POST" if content_type else b"GET",
                    target,
                    header_block(pairs),
                    body,
                    max_body_bytes=MAX_DOCUMENT_BYTES,
                    takes_any=True,
                )
        except TimeoutError:
            raise GatewayFailure(
                Kind.CONNECT_TIMEOUT,
                f"Signing in to {self._server}: {_shown_host(fetch.url)} did not answer within {FETCH_S:g} s.",
                server=self._server,
                verdict=Verdict.MAY_HAVE_RUN,
            ) from None
        except GatewayFailure as failure:
            raise self._explained(fetch.url, failure) from None
        if 300 <= response.status < 400:
            raise sign_in_failure(
                self._server, f"{_shown_host(fetch.url)} answers with a redirect, which is not followed."
            )
        return Fetched(response.status, response.body)

    def _explained(self, url: str, failure: GatewayFailure) -> GatewayFailure:
        if failure.kind is Kind.DESTINATION_REFUSED:
            why = failure.message.partition(": ")[2].partition(" If you mean it")[0]
            hint = f"If you mean it, write the authorization server into `auth` of {self._server} as issuer."
            return sign_in_failure(
                self._server, f"it leads to {_shown_host(url)}, which may not be called: {why} {hint}"
            )
        failure.reword(lambda text: f"Signing in to {self._server}, at {_shown_host(url)}: {text}")
        return failure


def _body(fetch: Fetch) -> tuple[bytes, str]:
    if fetch.form is not None:
        signed = {} if fetch.signer is None else _assertion(fetch.signer)
        return urlencode({**fetch.form, **signed}).encode(), "application/x-www-form-urlencoded"
    if fetch.json is not None:
        return msgspec.json.encode(fetch.json), "application/json"
    return b"", ""


def _assertion(signer: ClientSigner) -> dict[str, str]:
    """The members of a form that prove a client by its private key (RFC 7523, 2.2): each is good for one request of this minute."""
    import jwt  # cryptography takes 20 MiB

    now = int(time.time())
    claims = {
        "iss": signer.client_id,
        "sub": signer.client_id,
        "aud": signer.audience,
        "iat": now,
        "exp": now + _ASSERTION_S,
        "jti": secrets.token_urlsafe(16),
    }
    signed = jwt.encode(claims, signer.private_key, algorithm_of(signer.private_key))
    return {"client_assertion_type": _ASSERTION_TYPE, "client_assertion": signed}


def _shown_host(url: str) -> str:
    return repr(host_of(url) or "no host")[:100]
