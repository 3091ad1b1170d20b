"""Credentials of clients end at the gateway, and every request needs them; what the checks of that share.

Must not: put a credential of the operator into a recording.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pactgate.conformance.gateway.check import Check
from pactgate.conformance.gateway.client import ScriptedClient
from pactgate.conformance.gateway.lab import Lab, NotApplicableError
from pactgate.conformance.gateway.recording import CheckRecording, ClientRoute, Frame, ScriptedSide
from pactgate.conformance.gateway.script import ScriptedTool, named
from pactgate.conformance.rule import Evidence, RequirementLevel

WRONG: Final = "Bearer gwp-nobody-gave-this-out-2f9d1c7b4e6a8053"
REFUSED: Final = (401, 403)


def require_end(lab: Lab) -> None:
    if lab.gateway.is_direct:
        raise NotApplicableError("Without a gateway between, the server itself is who the client's headers are for.")


async def play_headers(check: Check, lab: Lab, headers: Mapping[str, str]) -> None:
    """Call on every route with these headers. Raises NotApplicableError where all of the calls are refused."""
    require_end(lab)
    served = []
    for route in lab.routes(check):
        name = check.tools[0].name
        tool, label = lab.exposed(route, name), named(name, route.server)
        client = await lab.client(route)
        frame = await client.call(lab.record_on(route), tool, label=label, headers=headers, timeout_s=lab.call_s)
        served.append(frame.status not in REFUSED)
    if not any(served):
        raise NotApplicableError("It refuses a call with these headers; give it a credential with --header.")


def judge_header(check: Check, recording: CheckRecording, name: str) -> Iterator[Evidence]:
    """No server was sent a header of this name: it has no credentials at the scripted servers, so it would be the client's."""
    for index, frame in enumerate(recording.frames):
        if frame.side is ScriptedSide.SERVER and not frame.is_sent and frame.header(name):
            yield check.evidence(index, "", f"{frame.who} got the header {name}")


async def uncredited(lab: Lab, route: ClientRoute, label: str, headers: Mapping[str, str | None]) -> Frame:
    """A first request of a client that has none of the operator's credentials."""
    client = ScriptedClient(lab.gateway.http, lab.gateway.urls[route.server], route.era)
    info = '"clientInfo":{"name":"gwp","version":"1"}'
    members = f'"protocolVersion":"{client.version}","capabilities":{{}},{info}' if route.era == "legacy" else ""
    method = "initialize" if route.era == "legacy" else "server/discover"
    return await client.request(
        lab.record_on(route), method, members, label=label, headers=headers, timeout_s=lab.call_s
    )


class ClientTokenSentOn(Check):
    """The token of the client does not reach the servers.

    What it checks
        A client calls with `Authorization`, that of the operator (`--header`) or else one that nobody gave out. No server over HTTP gets
        a header `Authorization`: the gateway was given no credentials for them.

    Why
        Whoever runs one server can then act at the gateway, and at every other server behind it, as the user.

    How to fix
        Take `Authorization` for the gateway's own, and send servers only what is configured for them.

    Reference
        Authorization, Access Token Privilege Restriction: a token that was received must not be passed through; 2025-06-18 and later.
    """

    code = "GWP-124"
    spec = "basic/authorization#access-token-privilege-restriction"
    level = RequirementLevel.MUST
    servers = ("lh", "mh", "dh")
    needs_gateway = True
    tools = (ScriptedTool(name="gwp124_@"),)

    async def play(self, lab: Lab) -> None:
        has_own = any(name.lower() == "authorization" for name in lab.gateway.identity)
        await play_headers(self, lab, {} if has_own else {"Authorization": WRONG})

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        yield from judge_header(self, recording, "authorization")


class CookiesSentOn(Check):
    """Cookies of the client do not reach the servers.

    What it checks
        A client calls with a header `Cookie`; no server over HTTP gets one.

    Why
        A cookie was set by the gateway or by what stands before it, and signs its user in there.

    How to fix
        Send servers only the headers that are configured for them and those of the protocol.

    Reference
        Security Best Practices, Token Passthrough, says it of tokens; RFC 6265, 5.4: a cookie goes back to the host that set it.
    """

    code = "GWP-125"
    spec = "basic/security_best_practices#token-passthrough"
    servers = ("lh", "mh", "dh")
    needs_gateway = True
    tools = (ScriptedTool(name="gwp125_@"),)

    async def play(self, lab: Lab) -> None:
        await play_headers(self, lab, {"Cookie": "gwp=125"})

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        yield from judge_header(self, recording, "cookie")


class SessionIsACredential(Check):
    """A session, or a connection, does not stand for the credential of its client.

    What it checks
        A client opens a session with the credential of the operator (`--header`), and sends a further request of the session without it;
        a modern client does so on its connection. Neither gets a result. A gateway that needs no credential is not asked.

    Why
        Session ids stand in logs and in URLs of tools. Who reads one could act as its user.

    How to fix
        Check the credential of every request.

    Reference
        Security Best Practices, Session Hijacking: sessions must not be used for authentication; every inbound request must be verified.
    """

    code = "GWP-128"
    spec = "basic/security_best_practices#session-hijacking"
    level = RequirementLevel.MUST
    needs_gateway = True
    tools = (ScriptedTool(name="gwp128_@"),)

    async def play(self, lab: Lab) -> None:
        require_end(lab)
        for route in lab.addresses(self):
            if (await uncredited(lab, route, "refused", {})).status not in REFUSED:
                raise NotApplicableError("It does not refuse clients without a credential.")
            client, record = await lab.new_client(route), lab.record_on(route)
            await client.request(record, "tools/list", label="with", timeout_s=lab.call_s)
            without = dict.fromkeys(lab.gateway.identity)
            await client.request(record, "tools/list", label="without", headers=without, timeout_s=lab.call_s)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges("without"):
            if exchange.response is not None and '"result"' in exchange.response.data:
                yield self.evidence(
                    exchange.index, "/result", f"{exchange.route.era} client: it was served without a credential"
                )
