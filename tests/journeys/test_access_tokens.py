"""Tokens of an identity provider from the door to the tool: scopes by category, in both eras, and what is left of it afterwards."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pactgate.app import Gateway, build
from pactgate.config.model import Config
from pactgate.config.sections.audit import AuditSection
from pactgate.config.sections.auth import Token
from pactgate.config.sections.cache import Cache, CacheRule
from pactgate.config.sections.limits import Categories
from pactgate.config.sections.listen import ListenSection
from pactgate.config.sections.views import ViewSection
from pactgate.core.events import Event
from tests.support.facing import call, initialize, message, modern, notification
from tests.support.identity_provider import AUDIENCE, IdentityProvider
from tests.support.raw_http import Answer, RawClient, get, post, request
from tests.support.servers import UNLIMITED, logged, scripted
from tests.support.token_guard import auth_for

CATEGORIES: Categories = {"files.look": "query", "files.write": "mutation", "files.start": "execution"}
TOKEN = "of-the-file-0123456789"


@asynccontextmanager
async def served(
    provider: IdentityProvider, tmp_path: Path, **settings: Any
) -> AsyncIterator[tuple[Gateway, int, list[Event]]]:
    events: list[Event] = []
    options = {"tools": ["look", "write", "start"], "log": str(tmp_path / "log"), "prompts": ["greet"]}
    config = Config(
        servers={"files": scripted(options=options)},
        categories=CATEGORIES,
        listen=ListenSection(port=0),
        auth=replace(auth_for(provider), tokens={"ci": Token(token=TOKEN)}),
        rate_limits=UNLIMITED,
        **settings,
    )
    gateway = build(config, events.append)
    address = await gateway.serve_http()
    await gateway.start()
    await gateway.connections.session("files")
    await gateway.connections.settle()
    try:
        yield gateway, int(address.rpartition(":")[2]), events
    finally:
        await gateway.stop(grace_s=1)


async def ask(port: int, data: bytes) -> Answer:
    async with RawClient(port) as client:
        return await client.ask(data)


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


async def open_session(port: int, **headers: str) -> dict[str, str]:
    answer = await ask(port, post(initialize(), **headers))
    session = {**headers, "mcp_session_id": answer.header("mcp-session-id") or ""}
    await ask(port, post(notification("notifications/initialized"), **session))
    return session


GRANTED = {
    "mcp:read": {"look"},
    "mcp:write": {"look", "write"},
    "mcp:run": {"look", "write", "start"},
    "openid": set[str](),
}
NEEDED = {"look": "mcp:read", "write": "mcp:write", "start": "mcp:run"}


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_missing_scope_is_403_with_exactly_the_scope_of_the_tool_and_nothing_is_sent(
    era: str, tmp_path: Path
) -> None:
    async with IdentityProvider() as provider, served(provider, tmp_path) as (_, port, _):
        for granted, allowed in GRANTED.items():
            headers = bearer(provider.token(scope=granted))
            if era == "legacy":
                headers = await open_session(port, **headers)
            for tool, needed in NEEDED.items():
                name = f"files__{tool}"
                data = modern("tools/call", name=name, **headers) if era == "modern" else post(call(name), **headers)
                answer = await ask(port, data)
                assert answer.status == (200 if tool in allowed else 403), (granted, tool, answer.body)
                if tool not in allowed:
                    where = 'resource_metadata="https://gateway.example/.well-known/oauth-protected-resource/mcp"'
                    expected = f'Bearer error="insufficient_scope", scope="{needed}", {where}'
                    assert answer.header("www-authenticate") == expected
                    failure = answer.json["error"]["data"]
                    assert (failure["failure_mode"], failure["verdict"]) == ("insufficient_scope", "did_not_run")
                    assert failure["scopes"] == [needed]
        sent = [entry for entry in logged(tmp_path / "log") if entry["method"] == "tools/call"]
        assert len(sent) == sum(map(len, GRANTED.values()))


DESK = ViewSection(tools=("files.*",), rename={"files.write": "change"})
LAZY = ViewSection(tools=("files.*",), surface="search")
CACHED = Cache(tools={"files.*": CacheRule()})


@pytest.mark.parametrize(
    ("path", "name", "arguments"),
    [
        ("/mcp", "files__write", {}),
        ("/mcp", "files.write", {}),
        ("/mcp", "write", {}),
        ("/mcp/files", "write", {}),
        ("/mcp/v/desk", "change", {}),
        ("/mcp/v/lazy", "call_tool", {"name": "files.write", "arguments": {}}),
    ],
)
async def test_on_each_path_the_scope_is_that_of_the_tool_that_would_run(
    path: str, name: str, arguments: dict[str, Any], tmp_path: Path
) -> None:
    """Also where the result is in the cache, and with a token for that path alone."""
    async with (
        IdentityProvider() as provider,
        served(provider, tmp_path, views={"desk": DESK, "lazy": LAZY}, cache=CACHED) as (_, port, _),
    ):
        own = AUDIENCE + path.removeprefix("/mcp")
        for scope, status in (("mcp:read", 403), ("mcp:write", 200), ("mcp:read", 403)):
            token = bearer(provider.token(scope=scope, aud=own))
            answer = await ask(port, modern("tools/call", path, name=name, arguments=arguments, **token))
            assert answer.status == status, answer.body
            if status == 403:
                where = f"https://gateway.example/.well-known/oauth-protected-resource{path}"
                said = f'Bearer error="insufficient_scope", scope="mcp:write", resource_metadata="{where}"'
                assert answer.header("www-authenticate") == said
        sent = [entry for entry in logged(tmp_path / "log") if entry["method"] == "tools/call"]
        assert len(sent) == 1


async def test_step_up_of_one_caller_goes_on_in_its_session(tmp_path: Path) -> None:
    async with IdentityProvider() as provider, served(provider, tmp_path) as (_, port, _):
        session = await open_session(port, **bearer(provider.token(scope="mcp:read")))
        assert (await ask(port, post(call("files__write"), **session))).status == 403
        session |= bearer(provider.token(scope="mcp:read mcp:write"))
        assert (await ask(port, post(call("files__write"), **session))).status == 200


async def test_everything_that_is_no_tool_needs_the_scope_for_reading(tmp_path: Path) -> None:
    async with IdentityProvider() as provider, served(provider, tmp_path) as (_, port, _):
        for scope, status in (("openid", 403), ("mcp:read", 200)):
            session = await open_session(port, **bearer(provider.token(scope=scope)))
            for asked in (message("tools/list"), message("prompts/get", {"name": "files__greet"})):
                assert (await ask(port, post(asked, **session))).status == status, asked
            assert (await ask(port, post(message("ping"), **session))).status == 200


async def test_tokens_of_the_file_are_not_limited_by_scopes(tmp_path: Path) -> None:
    async with IdentityProvider() as provider, served(provider, tmp_path) as (_, port, _):
        assert (await ask(port, modern("tools/call", name="files__start", **bearer(TOKEN)))).status == 200


async def test_audit_and_history_name_issuer_subject_and_client_and_never_the_token(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    async with IdentityProvider() as provider:
        token = provider.token()
        async with served(provider, tmp_path, audit=AuditSection(file=str(log))) as (_, port, events):
            assert (await ask(port, modern("tools/call", name="files__look", **bearer(token)))).status == 200
            shown = (await ask(port, get("/api/calls", **bearer(token)))).json["calls"]
            other = (await ask(port, get("/api/calls", **bearer(provider.token(sub="bob"))))).json["calls"]
        (record,) = [fields for line in log.read_text().splitlines() if (fields := json.loads(line)).get("tool")]
        assert shown[0]["subject"] == record["subject"] == f"{provider.issuer}#alice"
        assert (record["principalKind"], record["issuer"], record["clientId"]) == ("oauth", provider.issuer, "desk")
        assert other == []
        everything = log.read_text() + repr(events) + json.dumps(shown)
        assert "\\u0000" not in everything
        assert not any(part in everything for part in token.split("."))


async def test_an_issuer_that_is_removed_takes_its_callers_with_it(tmp_path: Path) -> None:
    async with IdentityProvider() as provider, served(provider, tmp_path) as (gateway, port, _):
        async with RawClient(port) as stream:
            session = await open_session(port, **bearer(provider.token()))
            await stream.send(get("/mcp", **session))
            assert (await stream.head()).status == 200
            auth = replace(gateway.config.auth, issuers=(), resource=None)
            await gateway.reload(replace(gateway.config, auth=auth))
            assert await stream.chunk() == b""
        assert (await ask(port, post(message("ping"), **session))).status == 401
        assert (await ask(port, get("/.well-known/oauth-protected-resource"))).status == 404


async def test_an_access_token_signs_in_to_the_console_with_the_rights_it_has(tmp_path: Path) -> None:
    async with IdentityProvider() as provider, served(provider, tmp_path) as (gateway, port, _):
        page = {"host": f"127.0.0.1:{port}", "sec-fetch-site": "same-origin", "content-type": "application/json"}
        sent = {**page, **bearer(provider.token(scope="mcp:read")), "x-pactgate-console": "none", "content-length": "0"}
        signed_in = await ask(port, request("POST", "/console/session", sent))
        assert (signed_in.status, signed_in.json["isAdmin"]) == (200, False)
        cookie = (signed_in.header("set-cookie") or "").partition(";")[0]
        session = {**page, "cookie": cookie, "x-pactgate-console": signed_in.json["key"]}
        spelled = {name.replace("-", "_"): value for name, value in session.items()}
        assert (await ask(port, get("/api/calls", **spelled))).status == 200
        assert (await ask(port, get("/api/captures", **spelled))).status == 403
        for tool, status in (("look", 200), ("write", 403)):
            assert (await ask(port, modern("tools/call", name=f"files__{tool}", **spelled))).status == status
        await gateway.reload(replace(gateway.config, auth=replace(gateway.config.auth, issuers=())))
        assert (await ask(port, get("/api/calls", **spelled))).status == 401


def test_a_gateway_without_issuers_does_not_load_cryptography() -> None:
    """They would cost it 20 MiB and a tenth of a second."""
    code = (
        "import asyncio, sys; from pactgate.app import build; from pactgate.config.model import Config\n"
        "from pactgate.config.sections.listen import ListenSection\n"
        "async def run():\n"
        "    gateway = build(Config(listen=ListenSection(port=0)), lambda event: None)\n"
        "    await gateway.serve_http(); await gateway.stop(0)\n"
        "asyncio.run(run()); print(sorted({'jwt', 'cryptography'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.strip() == "[]"
