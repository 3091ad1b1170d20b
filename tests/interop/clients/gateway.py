"""The gateway as the client the conformance suite judges: `python gateway.py SOCKET`; `errand.py` brings it one scenario at a time.

For each a gateway is opened in front of the suite's server and driven by the official client until everything it lists has been
called; what reaches the suite's server is what the gateway sends.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import mcp.types as mcp_types
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError

from pactgate.app import Gateway
from pactgate.catalog.discovery import discover
from pactgate.config.model import Config
from pactgate.config.sections.listen import ListenSection
from pactgate.config.sections.sign_in import SignIn, TokenExchange
from pactgate.config.server_settings import ServerConfig
from pactgate.core.failures import GatewayFailure
from pactgate.core.principal import Principal, PrincipalKind
from pactgate.sign_ins import credential_store
from pactgate.upstreams.dialer import Dialer
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.oauth.browser_sign_in import sign_in_by_browser
from pactgate.upstreams.oauth.grants import CallerGrants, GrantMaker
from pactgate.upstreams.process.child_reaper import ChildReaper

PLAIN = {"integer": 5, "number": 3, "boolean": True, "array": [], "object": {}}
WHOLE_S = 15
MAX_SIGN_INS = 5
DOCUMENT = "https://conformance-test.local/client-metadata.json"


async def answer_form(ctx: Any, params: Any) -> mcp_types.ElicitResult:
    """What a person would leave as it is."""
    fields = (getattr(params, "requested_schema", None) or {}).get("properties", {})
    kept = {name: field["default"] for name, field in fields.items() if "default" in field}
    return mcp_types.ElicitResult(action="accept", content=kept or dict.fromkeys(fields, True))


async def answer_sampling(ctx: Any, params: Any) -> mcp_types.CreateMessageResult:
    said = mcp_types.TextContent(type="text", text="yes")
    return mcp_types.CreateMessageResult(role="assistant", model="none", content=said)


async def answer_roots(ctx: Any) -> mcp_types.ListRootsResult:
    return mcp_types.ListRootsResult(roots=[])


def calls(tools: dict[str, Any], context: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """What the suite asks for, and every other tool once."""
    wanted = [(call["name"], call.get("arguments") or {}) for call in context.get("toolCalls", [])]
    named = {name for name, _ in wanted}
    for name, tool in tools.items():
        if name not in named:
            wanted.append((name, arguments(name, tool, tools)))
    return [(name, given) for name, given in wanted if name in tools]


def arguments(name: str, tool: Any, tools: dict[str, Any]) -> dict[str, Any]:
    if name == "json_schema_echo" and "json_schema_2020_12_tool" in tools:
        return {"schema": tools["json_schema_2020_12_tool"].input_schema}
    fields = tool.input_schema.get("properties", {})
    return {
        key: PLAIN.get(str((fields.get(key) or {}).get("type")), "x") for key in tool.input_schema.get("required", [])
    }


async def drive(url: str, version: str, context: dict[str, Any]) -> list[str]:
    """What each call came to, one line each."""
    mode = "legacy" if version < "2026" else "auto"
    answers: dict[str, Any] = {
        "elicitation_callback": answer_form,
        "sampling_callback": answer_sampling,
        "list_roots_callback": answer_roots,
    }
    said: list[str] = []
    async with Client(url, mode=mode, **answers) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        for name, given in calls(tools, context):
            try:
                said.append(f"{name}: {str(await client.call_tool(name, given))[:300]}")
            except MCPError as refusal:
                said.append(f"{name} was refused: {refusal!r:.300}")
    return said


async def play(scenario: dict[str, Any]) -> list[str]:
    version = scenario.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "2025-11-25")
    context = json.loads(scenario.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    with tempfile.TemporaryDirectory() as folder:
        is_about_auth = scenario.get("MCP_CONFORMANCE_SCENARIO", "").startswith("auth/")
        auth = await sign_in_settings(scenario, context, folder) if is_about_auth else None
        upstream = ServerConfig(id="suite", url=scenario["url"], auth=auth)
        config = Config(
            servers={"suite": upstream}, listen=ListenSection(port=0), credential_file=f"{folder}/pactgate.credentials"
        )
        if auth is not None and auth.exchange is not None:
            return await visit_as_somebody(upstream, context)
        async with Gateway.open(config) as gateway, asyncio.timeout(WHOLE_S):
            address = f"{await gateway.serve_http()}/mcp/suite"
            said: list[str] = []
            for _ in range(MAX_SIGN_INS + 1):
                await gateway.discover()
                said += await drive(address, version, context)
                if not needs_sign_in(gateway, said[-1:]):
                    return said
                said.append(await sign_in(upstream, config))
                if not said[-1].startswith("signed in"):
                    return said
                await until_it_is_tried(gateway)
            return said


async def sign_in_settings(scenario: dict[str, Any], context: dict[str, Any], folder: str) -> SignIn:
    """What an operator would write into `auth`."""
    name, issuer, assertion = scenario["MCP_CONFORMANCE_SCENARIO"], context.get("issuer"), None
    if "valid_jwt" in context:
        assertion = f"{folder}/assertion"
        await asyncio.to_thread(Path(assertion).write_text, context["valid_jwt"])
    secret, key = context.get("client_secret"), context.get("private_key_pem")
    if (secret or key or assertion) and issuer is None:
        issuer = await asyncio.to_thread(issuer_of, scenario["url"])
    is_service = "client-credentials" in name or assertion is not None
    exchange = None
    if "idp_issuer" in context:
        provider, client = context["idp_issuer"], context["idp_client_id"]
        exchange = TokenExchange(issuer=provider, client_id=client, id_jag=True, subject_token_type="id_token")
    return SignIn(
        type="oauth",
        who="service" if is_service else "exchange" if exchange else "shared",
        issuer=issuer,
        client_id=DOCUMENT if name == "auth/basic-cimd" else context.get("client_id"),
        client_secret=secret,
        private_key=key,
        assertion_file=assertion,
        exchange=exchange,
    )


async def visit_as_somebody(upstream: ServerConfig, context: dict[str, Any]) -> list[str]:
    """A session of a caller whom the provider of the scenario knows: what a call of that caller goes through.

    Nobody else can list the tools of that server, so there is no catalog to call from.
    """
    issuer, client = context["idp_issuer"], HttpClient()
    somebody = Principal(f"{issuer}\0somebody", kind=PrincipalKind.OAUTH, issuer=issuer, subject="somebody")
    maker = GrantMaker(client, None, lambda secrets: None, lambda principal: str(context["idp_id_token"]))
    dialer = Dialer(
        upstream,
        client=client,
        child_reaper=ChildReaper(adopts=False),
        emit=lambda event: None,
        client_info={"name": "pactgate", "version": "1"},
        max_frame_bytes=1024 * 1024,
        grant=CallerGrants(upstream, maker).of(somebody),
    )
    session = await dialer.dial()
    found = await discover(session)
    await session.peer.close()
    await client.close()
    return [f"{len(found.tools)} tools"]


def issuer_of(url: str) -> str:
    parts = urlsplit(url)
    metadata = f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource{parts.path}"
    with urlopen(metadata, timeout=5) as answer:
        return str(json.load(answer)["authorization_servers"][0])


async def sign_in(upstream: ServerConfig, config: Config) -> str:
    """As `pactgate login` does, with a browser that agrees to everything."""
    store, opened = credential_store(config), []
    assert store is not None

    def show(url: str) -> None:
        opened.append(asyncio.get_running_loop().run_in_executor(None, open_and_follow, url))

    try:
        await sign_in_by_browser(upstream, store, show)
    except GatewayFailure as failure:
        return f"not signed in: {failure.message}"
    finally:
        await asyncio.gather(*opened, return_exceptions=True)
    return "signed in"


def open_and_follow(url: str) -> None:
    with urlopen(url, timeout=5) as answer:
        answer.read()


def needs_sign_in(gateway: Gateway, said: list[str]) -> bool:
    trouble = gateway.connections.servers["suite"].trouble or ""
    return any("needs sign-in" in text for text in (trouble, *said))


async def until_it_is_tried(gateway: Gateway) -> None:
    for _ in range(50):
        if not needs_sign_in(gateway, []):
            return
        await asyncio.sleep(0.1)


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        said = await play(json.loads(await reader.readline()))
    except Exception as problem:  # noqa: BLE001 - a scenario that failed must not end the driver of the others
        said = [f"failed: {problem!r}"]
    writer.write("\n".join(said).encode())
    writer.close()


async def main() -> None:
    warnings.simplefilter("ignore")
    server = await asyncio.start_unix_server(answer, sys.argv[1])
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
