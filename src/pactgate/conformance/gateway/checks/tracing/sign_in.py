"""A client without a token learns where to get one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from pactgate.conformance.gateway.check import Check, plain_value
from pactgate.conformance.gateway.checks.tracing.credentials import WRONG, require_end, uncredited
from pactgate.conformance.gateway.client import ScriptedClient
from pactgate.conformance.gateway.lab import Lab, NotApplicableError
from pactgate.conformance.gateway.recording import CheckRecording, ClientRoute
from pactgate.conformance.gateway.script import ScriptedTool
from pactgate.conformance.rule import Evidence, RequirementLevel


class ChallengeMissing(Check):
    """Who is refused for want of a credential learns which kind is wanted.

    What it checks
        A client comes without a credential, and with a token that nobody gave out; each HTTP 401 has the header `WWW-Authenticate`. A
        gateway that answers neither with 401 is not asked.

    Why
        Clients begin to sign in when they read it. Without it they show an error.

    How to fix
        Send `WWW-Authenticate: Bearer` with every 401.

    Reference
        RFC 9110, 15.5.2: a 401 must have a challenge; Authorization, Token Handling: invalid tokens get 401; 2025-03-26 and later.
    """

    code = "GWP-126"
    spec = "basic/authorization#token-handling"
    level = RequirementLevel.MUST
    needs_gateway = True
    tools = (ScriptedTool(name="gwp126_@"),)

    async def play(self, lab: Lab) -> None:
        require_end(lab)
        tries = [(route, headers) for route in lab.addresses(self) for headers in ({}, {"Authorization": WRONG})]
        statuses = {(await uncredited(lab, route, "refused", headers)).status for route, headers in tries}
        if 401 not in statuses:
            raise NotApplicableError("It does not refuse clients without a credential.")

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges("refused"):
            response = exchange.response
            if response is not None and response.status == 401 and not response.header("www-authenticate"):
                yield self.evidence(exchange.index, "", f"{exchange.route.era} client: the 401 has no WWW-Authenticate")


_METADATA: Final = re.compile(r'resource_metadata="([^"]+)"')
_WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"


class ResourceMetadataUnusable(Check):
    """Where OAuth is announced, its metadata leads to an authorization server.

    What it checks
        The metadata to which the challenge of a 401 leads (`resource_metadata`), or else that at the well-known places, is a JSON object
        with `resource` and at least one of `authorization_servers`. A gateway without either announces no OAuth, and is not asked.

    Why
        From there clients find where the user signs in. A broken link ends the sign-in before it begins.

    How to fix
        Serve the metadata at the address of the challenge, without credentials.

    Reference
        Authorization, Authorization Server Location, and RFC 9728; 2025-06-18 and later.
    """

    code = "GWP-127"
    spec = "basic/authorization#authorization-server-location"
    level = RequirementLevel.MUST
    needs_gateway = True
    tools = (ScriptedTool(name="gwp127_@"),)

    async def play(self, lab: Lab) -> None:
        require_end(lab)
        route = lab.addresses(self)[0]
        refused = [await uncredited(lab, route, "refused", h) for h in ({}, {"Authorization": WRONG})]
        for frame in refused:
            if (found := _METADATA.search(frame.header("www-authenticate"))) is not None:
                await self._read(lab, route, found[1])
                return
        parts = urlsplit(lab.gateway.urls[route.server])
        for path in (f"{_WELL_KNOWN}{parts.path}", _WELL_KNOWN):
            if await self._read(lab, route, f"{parts.scheme}://{parts.netloc}{path}") == 200:
                return
        raise NotApplicableError("It announces no OAuth: neither a challenge nor a well-known place leads to metadata.")

    async def _read(self, lab: Lab, route: ClientRoute, url: str) -> int:
        client = ScriptedClient(lab.gateway.http, url, route.era)
        headers = {"Accept": "application/json", "Content-Type": None}
        status = 0
        async for frame in client.send(
            lab.record_on(route), "", "metadata", label="metadata", headers=headers, timeout_s=lab.call_s, verb="GET"
        ):
            status = frame.status
        return status

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in list(recording.exchanges("metadata"))[-1:]:
            facts, response = plain_value(exchange.response), exchange.response
            servers = facts.get("authorization_servers")
            if response is None or response.status != 200:
                yield self.evidence(
                    exchange.index, "", f"the metadata is HTTP {0 if response is None else response.status}"
                )
            elif not isinstance(facts.get("resource"), str) or not isinstance(servers, list) or not servers:
                yield self.evidence(exchange.index, "", "the metadata lacks resource or authorization_servers")
