"""Which revisions are spoken, and what is said of others."""

from __future__ import annotations

from collections.abc import Iterator

from pactgate.conformance.gateway.check import Check, plain_value
from pactgate.conformance.gateway.lab import Lab
from pactgate.conformance.gateway.recording import CheckRecording, ClientRoute
from pactgate.conformance.rule import Evidence, RequirementLevel
from pactgate.protocol.versions import KNOWN_VERSIONS


class DiscoverIncomplete(Check):
    """`server/discover` says what a client needs to go on.

    What it checks
        A modern client asks `server/discover`; the result has `supportedVersions` with 2026-07-28, `capabilities` with `tools`, a
        `resultType`, and both cache hints.

    Why
        It is the one method that every modern server has, and the first that clients of both eras send.

    How to fix
        Answer it from what the gateway offers as a whole.

    Reference
        Versioning, server/discover; Caching; 2026-07-28.
    """

    code = "GWP-046"
    spec = "server/discover"
    level = RequirementLevel.MUST
    eras = ("modern",)
    since = "2026-07-28"

    async def play(self, lab: Lab) -> None:
        for route in lab.addresses(self):
            await lab.unopened(route).request(lab.record_on(route), "server/discover")

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges():
            result = plain_value(exchange.response).get("result")
            members = result if isinstance(result, dict) else {}
            versions, capabilities = members.get("supportedVersions"), members.get("capabilities")
            if not isinstance(versions, list) or "2026-07-28" not in versions:
                yield self.evidence(
                    exchange.index, "/result/supportedVersions", f"2026-07-28 is not in {versions!r:.80}"
                )
            if not isinstance(capabilities, dict) or "tools" not in capabilities:
                yield self.evidence(exchange.index, "/result/capabilities", "tools are listed but not announced")
            for name in ("resultType", "ttlMs", "cacheScope"):
                if name not in members:
                    yield self.evidence(exchange.index, f"/result/{name}", f"{name} is missing")


class UnknownModernVersionAccepted(Check):
    """A modern request of an unknown revision is refused with those that are supported.

    What it checks
        A modern client sends a request of the revision 2099-01-01; it gets HTTP 400 and the error -32022, with `supported` that has
        2026-07-28, and `requested`.

    Why
        A client takes a revision out of this list and goes on. With any other answer it takes the gateway for a legacy one, or
        gives up.

    How to fix
        Check the revision of each request before anything else.

    Reference
        Versioning, Protocol Version Negotiation; 2026-07-28.
    """

    code = "GWP-047"
    spec = "basic/versioning"
    level = RequirementLevel.MUST
    eras = ("modern",)
    since = "2026-07-28"

    async def play(self, lab: Lab) -> None:
        for route in lab.addresses(self):
            client = lab.unopened(route)
            client.version = "2099-01-01"
            await client.request(lab.record_on(route), "tools/list")

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges():
            response = exchange.response
            error = plain_value(response).get("error")
            members = error if isinstance(error, dict) else {}
            if members.get("code") != -32022 or response is None or response.status != 400:
                status = 0 if response is None else response.status
                yield self.evidence(exchange.index, "", f"it answers HTTP {status} with the code {members.get('code')}")
                continue
            data = members.get("data")
            supported = data.get("supported") if isinstance(data, dict) else None
            if not isinstance(supported, list) or "2026-07-28" not in supported:
                yield self.evidence(exchange.index, "/error/data/supported", f"2026-07-28 is not in {supported!r:.80}")


class UnknownLegacyVersionRefused(Check):
    """`initialize` with an unknown revision is answered with a known one.

    What it checks
        A legacy client asks for the revision 2099-01-01; it gets a result with a revision that exists.

    Why
        The client then decides whether it can use it. An error leaves it with nothing, an echo with a revision that nobody speaks.

    How to fix
        Answer with the latest revision that the gateway supports.

    Reference
        Lifecycle, Version Negotiation; 2024-11-05 to 2025-11-25.
    """

    code = "GWP-048"
    spec = "basic/lifecycle#version-negotiation"
    level = RequirementLevel.MUST
    eras = ("legacy",)
    until = "2025-11-25"

    async def play(self, lab: Lab) -> None:
        for route in lab.addresses(self):
            client = lab.unopened(route)
            info = '"protocolVersion":"2099-01-01","capabilities":{},"clientInfo":{"name":"gwp","version":"1"}'
            await client.request(lab.record_on(route), "initialize", info)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges("initialize"):
            result = plain_value(exchange.response).get("result")
            version = result.get("protocolVersion") if isinstance(result, dict) else None
            if version not in KNOWN_VERSIONS:
                yield self.evidence(exchange.index, "/result/protocolVersion", f"the revision is {version!r:.80}")


class OlderRevisionsRefused(Check):
    """A client of each legacy revision is answered in it.

    What it checks
        Clients ask for 2025-11-25, 2025-06-18 and 2025-03-26; each gets its own revision, and can list the tools.

    Why
        Many clients in use are older than the newest server. Where another revision comes back, some of them disconnect.

    How to fix
        Support the revisions that clients in use ask for.

    Reference
        Lifecycle, Version Negotiation: which revisions a server supports is its own choice; 2025-03-26 to 2025-11-25.
    """

    code = "GWP-049"
    spec = "basic/lifecycle#version-negotiation"
    eras = ("legacy",)
    until = "2025-11-25"

    async def play(self, lab: Lab) -> None:
        for route in lab.addresses(self):
            for version in ("2025-11-25", "2025-06-18", "2025-03-26"):
                client = await lab.new_client(route, version=version)
                await client.request(lab.record_on(route), "tools/list", label=f"list in {version}")

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges("initialize"):
            asked = plain_value(exchange.request)["params"]
            result = plain_value(exchange.response).get("result")
            got = result.get("protocolVersion") if isinstance(result, dict) else None
            wanted = asked.get("protocolVersion") if isinstance(asked, dict) else None
            if got != wanted:
                yield self.evidence(
                    exchange.index, "/result/protocolVersion", f"{wanted} was answered with {got!r:.80}"
                )
        for exchange in recording.exchanges():
            if exchange.request.label.startswith("list in") and "result" not in plain_value(exchange.response):
                yield self.evidence(exchange.index, "", f"{exchange.request.label} failed")


class DiscoverHangs(Check):
    """`server/discover` is answered at once, so that clients of both eras can fall back.

    What it checks
        A client sends `server/discover` with all headers of the modern era; within five seconds there is a result, a JSON-RPC
        error, or HTTP 400, 404 or 405.

    Why
        Clients that speak both eras send it first. They fall back on such an answer, and not on silence, a 5xx or a closed
        connection.

    How to fix
        Refuse what you do not know with an error of JSON-RPC.

    Reference
        Streamable HTTP, Backward Compatibility; 2026-07-28.
    """

    code = "GWP-052"
    spec = "basic/transports/streamable-http"
    eras = ("legacy", "modern")

    async def play(self, lab: Lab) -> None:
        for route in lab.addresses(self):
            client = lab.unopened(ClientRoute("modern", route.server))
            await client.request(lab.record_on(route), "server/discover", timeout_s=5)

    def judge(self, recording: CheckRecording) -> Iterator[Evidence]:
        for exchange in recording.exchanges("server/discover"):
            response = exchange.response
            message = plain_value(response)
            is_told = "result" in message or "error" in message
            if response is None or not (is_told or response.status in (400, 404, 405)) or response.status >= 500:
                what = "nothing" if response is None or not response.status else f"HTTP {response.status}"
                yield self.evidence(exchange.index, "", f"the answer is {what}")
