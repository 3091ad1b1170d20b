"""What a probe sends over Streamable HTTP beside the session: requests with a header that is wrong, and with a body that is too large.

Each is one request that asks for nothing but a list or a ping. The last ones end the session and use its id again.
Must not: check anything, or follow a redirect.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from pactgate.conformance.methods import MADE_UP
from pactgate.conformance.probe_recorder import PADDING, ProbeRecorder
from pactgate.conformance.probe_script import UNKNOWN_VERSION
from pactgate.core.failures import GatewayFailure
from pactgate.protocol import modern
from pactgate.protocol.messages import encode_json
from pactgate.protocol.versions import Era
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.http.proxy import NetworkSettings
from pactgate.upstreams.http.recording_client import RecordingClient
from pactgate.upstreams.http.request_message import HttpTarget, header_block
from pactgate.upstreams.negotiate import Identity

FOREIGN_ORIGIN: Final = f"https://{MADE_UP}.invalid"
_VERSION_HEADER_SINCE: Final = "2025-06-18"
_MAX_RESPONSE_BYTES: Final = 1024 * 1024

Changes = Mapping[str, str | None]
"""Headers to set, and headers to leave out."""


class HttpProbe:
    """Sends single requests to one URL while a recorder watches."""

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        client: HttpClient,
        recorder: ProbeRecorder,
        network: NetworkSettings,
        client_info: Mapping[str, Any],
        timeout_s: float,
    ) -> None:
        self._target = HttpTarget("the server", url, network=network)
        self._own = headers
        self._requests = RecordingClient(client, recorder)
        self._recorder = recorder
        self._client_info = client_info
        self._timeout_s = timeout_s
        self._count = 0

    async def initialize(self, version: str) -> None:
        """Open another session with this version, and end it again."""
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": self._client_info}
        await self._send(b"POST", self._plain({}), self._body("initialize", params))
        if self._recorder.session_id is not None:
            await self._send(b"DELETE", {"Mcp-Session-Id": self._recorder.session_id}, b"")

    async def play(self, identity: Identity) -> None:
        is_modern = identity.era is Era.MODERN
        method = "server/discover" if is_modern else "ping"
        for changes in (
            {"Origin": FOREIGN_ORIGIN},
            {"Accept": None},
            {"Accept": "text/html"},
            {"Content-Type": "text/plain"},
        ):
            await self.ask(identity, method, changes=changes)
        await self.ask(identity, method, padding=PADDING)
        if is_modern:
            return
        if identity.version >= _VERSION_HEADER_SINCE:
            await self.ask(identity, method, changes={"MCP-Protocol-Version": UNKNOWN_VERSION})
        if self._recorder.session_id is not None:
            await self._end_session(identity, method, self._recorder.session_id)

    async def ask(
        self,
        identity: Identity,
        method: str,
        *,
        changes: Changes | None = None,
        version: str | None = None,
        padding: bytes = b"",
        id_: str | None = None,
    ) -> None:
        """Send one request of the session, as a client sends it but for the changes."""
        said = version or identity.version
        meta: dict[str, Any] = {}
        headers = {} if identity.version < _VERSION_HEADER_SINCE else {"MCP-Protocol-Version": said}
        if identity.era is Era.MODERN:
            meta = dict(modern.envelope(said, self._client_info, {}))
            headers["Mcp-Method"] = method
        elif self._recorder.session_id is not None:
            headers["Mcp-Session-Id"] = self._recorder.session_id
        if padding:
            meta[f"dev.pactgate/{MADE_UP}"] = padding.decode("ascii")
        body = self._body(method, {"_meta": meta} if meta else {}, id_)
        await self._send(b"POST", {**self._plain(headers), **(changes or {})}, body)

    async def _end_session(self, identity: Identity, method: str, session_id: str) -> None:
        await self.ask(identity, method, changes={"Mcp-Session-Id": None})
        await self.ask(identity, method, changes={"Mcp-Session-Id": MADE_UP})
        version = {"MCP-Protocol-Version": identity.version} if identity.version >= _VERSION_HEADER_SINCE else {}
        await self._send(b"DELETE", {"Mcp-Session-Id": session_id, **version}, b"")
        await self.ask(identity, method)

    def _plain(self, headers: Mapping[str, str]) -> dict[str, str | None]:
        return {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            **headers,
        }

    def _body(self, method: str, params: Mapping[str, Any], id_: str | None = None) -> bytes:
        self._count += 1
        message = {"jsonrpc": "2.0", "id": id_ or f"{MADE_UP}-{self._count}", "method": method}
        return encode_json({**message, "params": params} if params else message)

    async def _send(self, verb: bytes, headers: Changes, body: bytes) -> None:
        """Send it and read the response. What the server does is in the record, also when it closes the connection."""
        pairs = [(name, value) for name, value in {**self._own, **headers}.items() if value is not None]
        try:
            async with asyncio.timeout(self._timeout_s):
                response = await self._requests.request(
                    verb, self._target, header_block(pairs), body, max_body_bytes=_MAX_RESPONSE_BYTES
                )
                if response.stream is not None:
                    try:
                        while await response.stream.read():
                            pass
                    finally:
                        response.stream.close()
        except (GatewayFailure, TimeoutError):
            return
