"""Keycloak: a person logs in at a browser, tools are called with the token, and nothing else gets in."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import re
import secrets
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit
from urllib.request import urlopen

import jwt
import pytest
from cryptography.hazmat.primitives import serialization

from pactgate.config.sections.sign_in import SignIn
from pactgate.upstreams.oauth.browser_sign_in import sign_in_by_browser
from pactgate.upstreams.oauth.client import OAuthClient
from pactgate.upstreams.oauth.sign_in import SignInGrant
from tests.interop.identity_gateway import IDENTITY_FOLDER, CallAnswer, call, start_gateway
from tests.interop.keycloak import CALLBACK, FRONT_SECRET, PASSWORD, START_S, Keycloak, why_no_keycloak
from tests.interop.processes import GATEWAY, HERE, NODE, Program, free_port, listens
from tests.interop.refreshing import Guarded, check_killed_with_the_answer, check_twelve_processes

pytestmark = [
    pytest.mark.keycloak,
    pytest.mark.timeout(600),
    pytest.mark.skipif(why_no_keycloak() is not None, reason=str(why_no_keycloak())),
]

REALM = 'resource_metadata="'


class Place:
    """One Keycloak and one gateway that trusts one of its realms."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.resource = f"http://127.0.0.1:{self.port}/mcp"
        self.folder = folder
        self.front = free_port()
        self.keycloak = Keycloak(folder, self.resource, self.front)
        self.audit = folder / "audit.jsonl"
        self.keycloak.start()
        try:
            self._gateway = self._start(folder)
        except BaseException:
            self.keycloak.stop()
            raise

    def _start(self, folder: Path) -> Program:
        wait_for(self.keycloak.is_ready, START_S, self.keycloak.said)
        issuer = {
            "issuer": self.keycloak.issuer(),
            "audiences": [self.resource],
            "quirks": "keycloak",
            "clockSkewMs": 0,
        }
        auth = {"resource": self.resource, "issuers": [issuer]}
        return start_gateway(folder, self.port, auth, audit={"file": str(self.audit)})

    def close(self) -> None:
        self._gateway.stop()
        self.keycloak.stop()

    def call(self, tool: str, token: str) -> CallAnswer:
        return call(self.port, tool, token)

    def log_in(self, scope: str) -> dict[str, Any]:
        """Authorization code with PKCE, as a client does it, with a person in between."""
        verifier = secrets.token_urlsafe(48)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        facts = {"client_id": "desk", "redirect_uri": CALLBACK, "scope": f"openid {scope}", "resource": self.resource}
        asked = {**facts, "response_type": "code", "code_challenge": challenge, "code_challenge_method": "S256"}
        url = f"{self.keycloak.issuer()}/protocol/openid-connect/auth?{urlencode({**asked, 'state': 'x'})}"
        back = parse_qs(urlsplit(browse(url, CALLBACK)).query)
        assert back["state"] == ["x"]
        return self.keycloak.tokens(
            grant_type="authorization_code",
            client_id="desk",
            redirect_uri=CALLBACK,
            code=back["code"][0],
            code_verifier=verifier,
        )


def browse(url: str, callback: str, *more: str | Path) -> str:
    """Alice logs in at a real browser. The last URL it goes to."""
    words = [NODE, HERE / "clients" / "browser_login.mjs", IDENTITY_FOLDER, url, callback, "alice", PASSWORD, *more]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip()


def wait_for(condition: Callable[[], bool], seconds: float, said: Callable[[], str]) -> None:
    ticks, until = threading.Event(), time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, said()
        ticks.wait(0.3)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    place = Place(tmp_path_factory.mktemp("keycloak"))
    try:
        yield place
    finally:
        place.close()


def test_a_person_logs_in_at_a_browser_and_calls_a_tool(place: Place) -> None:
    tokens = place.log_in("mcp:read")
    assert place.call("look", tokens["access_token"]).status == 200
    (record,) = [fields for line in place.audit.read_text().splitlines() if (fields := json.loads(line)).get("tool")]
    assert (record["issuer"], record["clientId"]) == (place.keycloak.issuer(), "desk")
    assert tokens["access_token"].split(".")[2] not in place.audit.read_text()


def test_a_missing_scope_is_403_and_after_step_up_the_call_is_served(place: Place) -> None:
    refused = place.call("write", place.log_in("mcp:read")["access_token"])
    assert refused.status == 403
    assert 'error="insufficient_scope", scope="mcp:write"' in refused.challenge
    assert place.call("write", place.log_in("mcp:read mcp:write")["access_token"]).status == 200


def payload(token: str) -> dict[str, Any]:
    part = token.split(".")[1]
    claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return claims


def encoded(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def unsigned(place: Place) -> str:
    return f"{encoded({'alg': 'none', 'typ': 'JWT'})}.{encoded(payload(place.keycloak.by_password()['access_token']))}."


def signed_with_the_public_key(place: Place) -> str:
    with urlopen(f"{place.keycloak.issuer()}/protocol/openid-connect/certs", timeout=10) as answer:
        key = next(key for key in json.load(answer)["keys"] if key.get("use") == "sig" and key["alg"] == "RS256")
    pem = jwt.PyJWK(key).key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    claims = payload(place.keycloak.by_password()["access_token"])
    text = f"{encoded({'alg': 'HS256', 'typ': 'JWT', 'kid': key['kid']})}.{encoded(claims)}"
    mac = hmac.digest(pem, text.encode(), hashlib.sha256)
    return f"{text}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


REFUSED: dict[str, Callable[[Place], str]] = {
    "of another realm": lambda place: place.keycloak.by_password(realm="other")["access_token"],
    "for another audience": lambda place: place.keycloak.by_password("elsewhere")["access_token"],
    "without a signature": unsigned,
    "signed by HS256 with the public key": signed_with_the_public_key,
    "an ID token": lambda place: place.keycloak.by_password()["id_token"],
    "a refresh token": lambda place: place.keycloak.by_password()["refresh_token"],
}


@pytest.mark.parametrize("which", REFUSED)
def test_a_token_is_refused(which: str, place: Place) -> None:
    answer = place.call("look", REFUSED[which](place))
    assert answer.status == 401
    assert 'error="invalid_token"' in answer.challenge
    assert REALM in answer.challenge


def test_a_token_that_has_expired_is_refused(place: Place) -> None:
    token = place.keycloak.by_password("brief")["access_token"]
    assert place.call("look", token).status == 200
    wait_for(lambda: place.call("look", token).status == 401, 15, lambda: "the token does not expire")


def test_the_gateway_signs_in_to_a_server_of_keycloak_and_renews_once_whatever_happens(place: Place) -> None:
    guarded = Guarded(place.resource, place.folder / "own.credentials", SignIn(type="oauth", **upstream(place)))
    port = place.front + 1
    pages: list[Future[str]] = []
    with ThreadPoolExecutor(1) as pool:

        def show(url: str) -> None:
            pages.append(pool.submit(browse, url, f"http://127.0.0.1:{port}/callback"))

        grant = asyncio.run(sign_in_by_browser(guarded.config, guarded.store, show, port=port))
    assert grant.refresh_token
    assert place.call("look", grant.access_token).status == 200
    check_twelve_processes(guarded)
    check_killed_with_the_answer(guarded)


def test_a_sign_in_that_was_revoked_in_keycloak_asks_for_another(place: Place) -> None:
    tokens = place.keycloak.by_password("upstream")
    given = SignInGrant(
        resource=place.resource,
        client=OAuthClient(place.keycloak.issuer(), "upstream"),
        token_endpoint=f"{place.keycloak.issuer()}/protocol/openid-connect/token",
        access_token=tokens["access_token"],
        refresh_token=tokens["refresh_token"],
        signed_in_at=time.time() - 60,
    )
    guarded = Guarded(place.resource, place.folder / "own.credentials", SignIn(type="oauth", **upstream(place)))
    guarded.grants.write(given)
    place.keycloak.revoke(tokens["refresh_token"], "upstream")
    assert guarded.refresh() == "authorization_required"
    assert guarded.kept().grant.refresh_token == ""


def upstream(place: Place) -> dict[str, Any]:
    return {"issuer": place.keycloak.issuer(), "client_id": "upstream", "scopes": ("mcp:read",)}


def front(place: Place, auth: dict[str, Any]) -> dict[str, Any]:
    """A gateway whose callers have tokens of Keycloak, in front of a server that wants tokens of Keycloak."""
    own = {"clientId": "front", "clientSecret": FRONT_SECRET}
    issuer = {"issuer": place.keycloak.issuer(), "audiences": [place.resource], "quirks": "keycloak", "login": own}
    server = {
        "url": place.resource,
        "auth": {"type": "oauth", "scopes": ["mcp:read"], "lists": "service", **own, **auth},
    }
    return {
        "mcpServers": {"guarded": server},
        "categories": {"guarded.*": "query"},
        "auth": {"resource": f"http://127.0.0.1:{place.front}/mcp", "issuers": [issuer]},
    }


@contextmanager
def fronting(place: Place, auth: dict[str, Any]) -> Iterator[None]:
    file = place.folder / "front.json"
    file.write_text(json.dumps(front(place, auth)))
    file.chmod(0o600)
    words: list[str | Path] = [*GATEWAY, "serve", "--config", file, "--port", str(place.front)]
    program = Program(words, place.folder / "front.log")
    try:
        program.wait_until(lambda: listens(place.front), "the gateway in front listens")
        yield
    finally:
        program.stop()


def test_keycloak_exchanges_the_token_of_a_caller_for_one_for_the_server(place: Place) -> None:
    with fronting(place, {"who": "exchange", "exchange": {"issuer": place.keycloak.issuer()}}):
        token = place.keycloak.by_password()["access_token"]
        answer = call(place.front, "files__look", token, "/mcp/guarded")
        assert answer.status == 200, answer
        assert "isError" not in answer.text, answer.text
        text = (place.folder / "gateway.log").read_text() + (place.folder / "front.log").read_text()
        assert token.split(".")[2] not in text


def test_alice_shows_who_she_is_at_keycloak_and_signs_in_to_the_server_in_one_browser(place: Place) -> None:
    with fronting(place, {"who": "user", "issuer": place.keycloak.issuer()}):
        token = place.keycloak.by_password()["access_token"]
        found = re.search(
            r"http://127\.0\.0\.1:\d+/connect/[\w-]+", call(place.front, "files__look", token, "/mcp/guarded").text
        )
        assert found is not None
        browse(
            found[0],
            f"http://127.0.0.1:{place.front}/connect/callback",
            "You are signed in",
            place.folder / "connected.png",
        )
        answer = call(place.front, "files__look", token, "/mcp/guarded")
        assert "isError" not in answer.text, answer.text


def test_with_new_keys_it_works_and_without_the_provider_known_tokens_go_on(place: Place) -> None:
    before = place.keycloak.by_password()["access_token"]
    assert place.call("look", before).status == 200
    place.keycloak.rotate()
    after = place.keycloak.by_password()["access_token"]
    assert jwt.get_unverified_header(after)["kid"] != jwt.get_unverified_header(before)["kid"]
    assert place.call("look", after).status == 200
    assert place.call("look", before).status == 200, "its key is still published"

    place.keycloak.stop()
    assert [place.call("look", token).status for token in (before, after)] == [200, 200]
    header, claims, signature = after.split(".")
    fields = json.loads(base64.urlsafe_b64decode(header + "=="))
    took = []
    for number in range(20):
        unknown = f"{encoded({**fields, 'kid': f'unknown-{number}'})}.{claims}.{signature}"
        began = time.perf_counter()
        assert place.call("look", unknown).status == 401
        took.append(time.perf_counter() - began)
    print(
        f"\nunknown keys without the provider: {max(took) * 1000:.1f} ms at most, {sorted(took)[10] * 1000:.1f} ms median"
    )
    assert sorted(took)[10] < 0.05, "the median: the machine may be busy with Keycloak's end"
