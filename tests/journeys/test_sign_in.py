"""From a server that wants a sign-in to its first call, and what happens to calls when a token ends."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit
from urllib.request import urlopen

import pytest
from msgspec.structs import replace

from pactgate.app import Gateway
from pactgate.catalog import sign_in_watch
from pactgate.config.load import load
from pactgate.core.events import Event, RequestFinished
from pactgate.state.credential_store import CredentialStore
from pactgate.upstreams.oauth.browser_sign_in import sign_in_by_browser
from pactgate.upstreams.oauth.stored_grants import StoredGrants, all_grants
from tests.cli import program
from tests.cli.program import PROGRAM, run_program
from tests.support.eventually import eventually
from tests.support.raw_http import RawClient, request
from tests.support.sign_in_server import SignInServer, agree, sign_in_server


@pytest.fixture(autouse=True)
def looks_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gateways look at the store of sign-ins ten times a second."""
    monkeypatch.setattr(sign_in_watch, "LOOK_S", 0.1)


@pytest.fixture
def server() -> Iterator[SignInServer]:
    with sign_in_server() as state:
        yield state


@pytest.fixture
def config(server: SignInServer, tmp_path: Path) -> Path:
    path = tmp_path / "pactgate.json"
    path.write_text(json.dumps({"mcpServers": {"vault": {"url": server.url}}}))
    return path


@pytest.fixture
def config_with_auth(server: SignInServer, config: Path) -> Path:
    config.write_text(json.dumps({"mcpServers": {"vault": {"url": server.url, "auth": {"type": "oauth"}}}}))
    return config


def run(config: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return program.run(config.parent, *words, "--config", str(config))


def log_in(config: Path) -> str:
    """`pactgate login` with somebody who agrees. Returns what it said."""
    words = [*PROGRAM, "login", "vault", "--no-browser", "--config", str(config)]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True) as child:
        assert child.stdout is not None
        agree(child.stdout.readline().strip())
        said = child.communicate(timeout=20)
    assert child.returncode == 0, said
    return said[1]


async def sign_in(config: Path) -> None:
    """The same in this process, for whom starting Python would take longer than the sign-in."""
    settings = load(config, environ={}, overrides={})
    store = CredentialStore.in_file(str(config.with_suffix(".credentials")))

    def show(url: str) -> None:
        asyncio.get_running_loop().run_in_executor(None, agree, url)

    await sign_in_by_browser(settings.servers["vault"], store, show, port=0)


class Told(list[Event]):
    """The events of a gateway."""

    @property
    def failure(self) -> dict[str, Any]:
        """How the last call failed."""
        last = next(event.record for event in reversed(self) if isinstance(event, RequestFinished))
        return {"message": last.message, **(last.failure or {})}


async def call(gateway: Gateway) -> bool:
    return bool((await gateway.invoke("vault__act"))["success"])


def has_tools(gateway: Gateway) -> bool:
    return bool(gateway.connections.servers["vault"].lists.found.tools)


async def signed_in(gateway: Gateway, config: Path) -> None:
    log_in(config)
    await eventually(lambda: has_tools(gateway))


async def test_a_server_waits_for_a_sign_in_and_its_tools_come_with_it(server: SignInServer, config: Path) -> None:
    async with Gateway.open(config) as gateway:
        report = await gateway.discover()
        assert "vault needs sign-in: nobody has signed in. Run `pactgate login vault`." in str(report.server_results)
        refused = server.refused
        await gateway.discover(force_refresh=True)
        assert server.refused == refused, "a server that nobody signed in to is not asked again"
        assert b"\npactgate_sign_ins_wanted 1\n" in gateway.facts.render_metrics()[0]
        await signed_in(gateway, config)
        assert b"\npactgate_sign_ins_wanted 0\n" in gateway.facts.render_metrics()[0]
        assert await call(gateway)
    assert server.acted == 1


async def test_a_token_that_ends_between_two_calls_is_renewed_and_each_call_runs_once(
    server: SignInServer, config: Path
) -> None:
    await sign_in(config)
    async with Gateway.open(config) as gateway:
        await gateway.discover()
        assert await call(gateway)
        server.expire_tokens()
        await eventually(lambda: not server.tokens)
        shift_age(config)
        assert await call(gateway)
    assert server.acted == 2
    assert len(server.refreshes) == 1


async def test_a_call_whose_refusal_comes_late_goes_on_with_the_token_that_another_call_has_got(
    server: SignInServer, config: Path
) -> None:
    log_in(config)
    async with Gateway.open(config) as gateway:
        await gateway.discover()
        assert await call(gateway)
        server.expire_tokens()
        shift_age(config)
        server.refused = 0
        server.last_refusal.clear()
        calls = [asyncio.create_task(call(gateway)) for _ in range(2)]
        done, late = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        assert (len(done), len(late), server.refused) == (1, 1, 2)
        server.last_refusal.set()
        assert await asyncio.gather(*calls) == [True, True]
    assert server.acted == 3
    assert len(server.refreshes) == 1


def shift_age(config: Path) -> None:
    """Make the kept token a minute older than it is."""
    store = CredentialStore.in_file(str(config.with_suffix(".credentials")))
    for name, _, stored in all_grants(store):
        older = replace(stored.grant, signed_in_at=stored.grant.signed_in_at - 60)
        StoredGrants(store, name, stored.grant.resource).write(older)


async def test_a_grant_that_was_revoked_ends_in_a_sign_in_and_never_in_a_loop(
    server: SignInServer, config: Path
) -> None:
    await sign_in(config)
    told = Told()
    async with Gateway.open(config, told.append) as gateway:
        await gateway.discover()
        server.expire_tokens()
        server.refresh_tokens.clear()
        shift_age(config)
        for _ in range(3):
            assert not await call(gateway)
            assert told.failure["failure_mode"] == "authorization_required"
            assert told.failure["verdict"] == "did_not_run"
            assert "Run `pactgate login vault`" in told.failure["message"]
        assert len(server.refreshes) == 1
        await gateway.discover(force_refresh=True)
        assert has_tools(gateway), "its tools stay in the list"
        assert "the sign-in has ended" in str(gateway.connections.missing())
        await sign_in(config)
        await eventually(partial(call, gateway))


async def test_the_tools_of_a_sign_in_that_has_ended_are_listed_after_a_restart(
    server: SignInServer, config_with_auth: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = config_with_auth
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    await sign_in(config)
    async with Gateway.open(config) as gateway:
        await gateway.discover()
        assert has_tools(gateway)
    server.expire_tokens()
    server.refresh_tokens.clear()
    shift_age(config)
    async with Gateway.open(config) as gateway:
        await gateway.discover()
        assert has_tools(gateway)
        await eventually(lambda: "Run `pactgate login vault`" in str(gateway.connections.missing()))
        assert "the sign-in has ended" in str(gateway.connections.missing())
        assert not await call(gateway)
        await sign_in(config)
        await eventually(partial(call, gateway))


async def test_a_call_whose_answer_had_begun_is_not_sent_again(server: SignInServer, config: Path) -> None:
    await sign_in(config)
    told = Told()
    async with Gateway.open(config, told.append) as gateway:
        await gateway.discover()
        server.expire_tokens()
        server.acts_before_it_refuses = True
        assert not await call(gateway)
        assert told.failure["verdict"] == "may_have_run"
    assert server.acted == 1
    assert server.refreshes == []


async def test_a_second_refusal_is_the_end_and_says_so(server: SignInServer, config: Path) -> None:
    await sign_in(config)
    told = Told()
    async with Gateway.open(config, told.append) as gateway:
        await gateway.discover()
        shift_age(config)
        server.tokens = NeverFull()
        assert not await call(gateway)
    assert told.failure["attempts"] == 2
    assert "does not accept the token" in told.failure["message"]
    assert len(server.refreshes) == 1


class NeverFull(dict[str, set[str]]):
    """Tokens that are forgotten as they are given."""

    def __setitem__(self, token: str, scopes: set[str]) -> None:
        """Nothing."""


def test_status_shows_everything_but_a_token_and_logout_forgets_it(server: SignInServer, config: Path) -> None:
    assert "It is renewed by itself." in log_in(config)
    shown = run(config, "auth", "status")
    row = json.loads(run(config, "auth", "status", "--json").stdout)[0]
    assert (row["server"], row["issuer"], row["scopes"]) == ("vault", server.origin, ["act"])
    assert row["isRenewable"]
    said = shown.stdout + shown.stderr + json.dumps(row)
    assert not any(secret in said for secret in (*server.tokens, *server.refresh_tokens))
    assert run(config, "auth", "rotate-key").returncode == 0
    assert run(config, "logout", "vault").returncode == 0
    assert run(config, "logout", "vault").returncode == 1
    assert json.loads(run(config, "auth", "status", "--json").stdout) == []


async def test_a_logout_ends_the_calls_of_a_running_gateway(server: SignInServer, config: Path) -> None:
    await sign_in(config)
    async with Gateway.open(config) as gateway:
        await gateway.discover()
        assert await call(gateway)
        assert run_program(config.parent, "logout", "vault").returncode == 0

        async def is_over() -> bool:
            return not await call(gateway)

        await eventually(is_over)
    assert server.tokens, "at the server the token is still good; the gateway does not send it any more"


def test_no_file_and_no_output_holds_a_token_in_the_clear(server: SignInServer, config: Path) -> None:
    said = log_in(config)
    secrets = [*server.tokens, *server.refresh_tokens]
    assert secrets
    written = said.encode() + b"".join(file.read_bytes() for file in config.parent.iterdir())
    assert not any(secret.encode() in written for secret in secrets)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("login", "nobody"), "There is no server nobody"),
        (("login", "local"), "local has no url"),
        (("login", "robot"), "who: service"),
        (("login", "exchanged"), "lists: service, who: exchange"),
    ],
)
def test_what_can_not_be_signed_in_to_is_said(words: tuple[str, ...], why: str, tmp_path: Path) -> None:
    config = tmp_path / "pactgate.json"
    robot = {
        "type": "oauth",
        "who": "service",
        "issuer": "https://a.example",
        "clientId": "r",
        "clientSecret": "s" * 20,
    }
    exchanged = {**robot, "who": "exchange", "lists": "service", "exchange": {"issuer": "https://a.example"}}
    servers = {
        "local": {"command": "true"},
        "robot": {"url": "https://b.example/mcp", "auth": robot},
        "exchanged": {"url": "https://c.example/mcp", "auth": exchanged},
    }
    issuer = {"issuer": "https://a.example", "audiences": ["https://gw.example/mcp"]}
    config.write_text(json.dumps({"mcpServers": servers, "auth": {"issuers": [issuer]}}))
    done = run(config, *words)
    assert done.returncode != 0
    assert why in done.stderr


async def test_a_person_signs_in_at_a_server_from_the_console(server: SignInServer, config: Path) -> None:
    async with Gateway.open(at_any_port(config)) as gateway:
        session = await console_session(gateway)
        await gateway.discover()
        async with RawClient(port_of(gateway)) as client:
            begun = await client.ask(request("POST", "/api/sign-ins/vault", session) + b"{}")
        assert begun.status == 200, begun.body
        await asyncio.to_thread(agree, begun.json["url"])
        await eventually(lambda: has_tools(gateway))
        assert await call(gateway)


async def test_a_sign_in_that_fails_is_told_where_the_output_of_the_server_is(
    server: SignInServer, config: Path
) -> None:
    async with Gateway.open(at_any_port(config)) as gateway:
        session = await console_session(gateway)
        async with RawClient(port_of(gateway)) as client:
            begun = await client.ask(request("POST", "/api/sign-ins/vault", session) + b"{}")
        server.documents["/authorize"] = (200, {}, b"")
        asked = dict(parse_qsl(urlsplit(begun.json["url"]).query))
        answer = urlencode({"error": "access_denied", "state": asked["state"], "iss": server.origin})
        await asyncio.to_thread(lambda: urlopen(f"{asked['redirect_uri']}?{answer}", timeout=5).close())
        await eventually(lambda: "access_denied" in str(gateway.observers.server_logs.read("vault", 0)["lines"]))


def at_any_port(config: Path) -> Path:
    config.write_text(json.dumps({**json.loads(config.read_text()), "listen": {"port": 0}}))
    return config


def port_of(gateway: Gateway) -> int:
    return int(str(gateway.http.address).rpartition(":")[2])


async def console_session(gateway: Gateway) -> dict[str, str]:
    """Open the console with its link; returns the headers of the page."""
    await gateway.serve_http()
    code = str(gateway.http.console_link).partition("code=")[2]
    page = {
        "host": f"127.0.0.1:{port_of(gateway)}",
        "content-type": "application/json",
        "sec-fetch-site": "same-origin",
    }
    headers = {**page, "x-pactgate-console": "none", "authorization": f"Bearer {code}", "content-length": "0"}
    async with RawClient(port_of(gateway)) as client:
        answer = await client.ask(request("POST", "/console/session", headers))
    cookie = (answer.header("set-cookie") or "").partition(";")[0]
    return {**page, "cookie": cookie, "x-pactgate-console": answer.json["key"], "content-length": "2"}
