"""A server that wants OAuth, and its authorization server, in one thread: with rotation, reuse detection, and what goes wrong."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit
from urllib.request import BaseHandler, HTTPCookieProcessor, HTTPRedirectHandler, Request, build_opener

TOOL = {"name": "act", "description": "Acts.", "inputSchema": {"type": "object", "properties": {}}}
_INFO = {"io.modelcontextprotocol/serverInfo": {"name": "vault", "version": "1"}}


class SignInServer:
    """Everything a test may look at or change."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.url = f"{origin}/mcp"
        self.tokens: dict[str, set[str]] = {}
        """Live access tokens and their scopes."""
        self.refresh_tokens: dict[str, bool] = {}
        """Each refresh token that was ever given, and whether it is the newest of its family."""
        self.codes: dict[str, dict[str, str]] = {}
        self.forms: list[dict[str, str]] = []
        """What was posted to the token endpoint."""
        self.refreshes: list[str] = []
        self.acted = 0
        self.refused = 0
        self.needed_scope = "act"
        self.people: dict[str, str] = {}
        """Whose each token is, refresh tokens and assertions as well: the header `X-Person` of a browser says who it is."""
        self.seen_tokens: set[str] = set()
        """Every token that was sent to the server."""
        self.callers: list[str] = []
        """Whose tokens the calls of tools had."""
        self.access_token: Callable[[dict[str, str]], str] = lambda asked: "x"
        """Makes the access token of a person who signs in with an ID token, from what was asked."""
        self.id_claims: dict[str, Any] = {}
        """Claims of ID tokens that are other than they should be."""
        self.lists_for_nobody = False
        """Whether only calls want a token."""
        self.refused_scope = ""
        """A scope that nobody may ask for."""
        self.client_id = "made-here"
        """Of the client that is registered next."""
        self.forgotten_clients: set[str] = set()
        self.lifetime_s: int | None = 3600
        self.acts_before_it_refuses = False
        self.hold = threading.Event()
        """Set: refreshes are answered. Cleared: they wait after the token was rotated."""
        self.hold.set()
        self.last_refusal = threading.Event()
        """Cleared: the second refusal of a token and all later ones wait for it."""
        self.last_refusal.set()
        self.more_metadata: dict[str, Any] = {}
        self.documents: dict[str, tuple[int, dict[str, str], bytes]] = {}
        """What is answered instead, by path."""
        self.lock = threading.Lock()

    def metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.origin,
            "authorization_endpoint": f"{self.origin}/authorize",
            "token_endpoint": f"{self.origin}/token",
            "registration_endpoint": f"{self.origin}/register",
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
            "authorization_response_iss_parameter_supported": True,
            **self.more_metadata,
        }

    def resource(self) -> dict[str, Any]:
        return {"resource": self.url, "authorization_servers": [self.origin]}

    def expire_tokens(self) -> None:
        self.tokens.clear()

    def end_tokens_of(self, person: str) -> None:
        self.tokens = {token: scopes for token, scopes in self.tokens.items() if self.people[token] != person}

    def give(self, scopes: set[str], person: str = "") -> dict[str, Any]:
        access, refresh = f"access-{secrets.token_hex(8)}", f"refresh-{secrets.token_hex(8)}"
        self.tokens[access] = scopes
        self.refresh_tokens[refresh] = True
        self.people[access] = self.people[refresh] = person
        given = {"access_token": access, "token_type": "Bearer", "refresh_token": refresh, "scope": " ".join(scopes)}
        return given if self.lifetime_s is None else {**given, "expires_in": self.lifetime_s}

    def redeem(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        self.forms.append(form)
        if form.get("client_id") in self.forgotten_clients:
            return 401, {"error": "invalid_client"}
        if self.refused_scope and self.refused_scope in form.get("scope", "").split():
            return 400, {"error": "invalid_scope"}
        if form["grant_type"] == "client_credentials":
            return 200, {**self.give({*form.get("scope", "act").split()}), "refresh_token": ""}
        if form["grant_type"] == "authorization_code":
            asked = self.codes.pop(form["code"])
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            assert base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == asked["code_challenge"]
            if "openid" in asked.get("scope", "").split():
                given = {"access_token": self.access_token(asked), "token_type": "Bearer"}
                return 200, {**given, "id_token": self.id_token(asked)}
            assert form["resource"] == asked["resource"] == self.url
            return 200, self.give(set(asked.get("scope", "act").split()), asked["person"])
        if form["grant_type"].endswith("token-exchange"):
            return self.exchange(form)
        if form["grant_type"].endswith("jwt-bearer"):
            return 200, {
                **self.give({"act"}, self.people.get(form["assertion"], form["assertion"])),
                "refresh_token": "",
            }
        old = form["refresh_token"]
        self.refreshes.append(old)
        if not self.refresh_tokens.get(old):
            self.refresh_tokens.clear()  # reuse of a rotated token: the whole family ends
            self.tokens.clear()
            return 400, {"error": "invalid_grant"}
        self.refresh_tokens[old] = False
        return 200, self.give({self.needed_scope}, self.people[old])

    def id_token(self, asked: dict[str, str]) -> str:
        claims = {
            "iss": self.origin,
            "aud": asked["client_id"],
            "sub": asked["person"],
            "nonce": asked["nonce"],
            "exp": time.time() + 60,
        }
        parts = (json.dumps(one).encode() for one in ({"alg": "RS256"}, {**claims, **self.id_claims}))
        return ".".join([*(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts), "signature"])

    def exchange(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        """A token, or an assertion, for whom the token of a caller is about."""
        claims = form["subject_token"].split(".")[1]
        person = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["sub"]
        if not form.get("requested_token_type", "").endswith("id-jag"):
            return 200, {**self.give({"act"}, person), "refresh_token": ""}
        assertion = f"assertion-{secrets.token_hex(8)}"
        self.people[assertion] = person
        return 200, {"access_token": assertion, "issued_token_type": form["requested_token_type"], "token_type": "N_A"}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        state, parts = self.server.state, urlsplit(self.path)
        if parts.path in state.documents:
            self._send(*state.documents[parts.path])
        elif parts.path == "/.well-known/oauth-protected-resource/mcp":
            self._json(200, state.resource())
        elif parts.path == "/.well-known/oauth-authorization-server":
            self._json(200, state.metadata())
        elif parts.path == "/authorize":
            asked = dict(parse_qsl(parts.query))
            code = secrets.token_hex(8)
            state.codes[code] = {**asked, "person": self.headers.get("X-Person", "")}
            answer = urlencode({"code": code, "state": asked["state"], "iss": state.origin})
            self._send(302, {"Location": f"{asked['redirect_uri']}?{answer}"}, b"")
        else:
            self._send(404, {}, b"")

    def do_POST(self) -> None:
        state = self.server.state
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == "/register":
            self._json(201, {**json.loads(body), "client_id": state.client_id})
        elif self.path == "/token":
            with state.lock:
                status, said = state.redeem({key: one[0] for key, one in parse_qs(body.decode()).items()})
            state.hold.wait(20)
            self._json(status, said)
        else:
            self._serve_mcp(json.loads(body))

    def _serve_mcp(self, message: dict[str, Any]) -> None:
        state, method = self.server.state, message["method"]
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        state.seen_tokens.add(token)
        held = state.tokens.get(token)
        if held is None and state.lists_for_nobody and method != "tools/call":
            held = set()
        if held is None:
            if state.acts_before_it_refuses and method == "tools/call":
                state.acted += 1
                head = b'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\n\n'
                self._send(200, {"Content-Type": "text/event-stream", "Connection": "close"}, head)
                return
            with state.lock:
                state.refused += 1
                is_first = state.refused == 1
            if not is_first:
                state.last_refusal.wait(20)
            metadata = (
                f'Bearer resource_metadata="{state.origin}/.well-known/oauth-protected-resource/mcp", scope="act"'
            )
            self._send(401, {"WWW-Authenticate": metadata}, b"")
            return
        if method == "tools/call" and state.needed_scope not in held:
            self._send(
                403, {"WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{state.needed_scope}"'}, b""
            )
            return
        if method not in ("server/discover", "tools/list", "tools/call"):
            error = {"code": -32601, "message": "Method not found"}
            self._json(404, {"jsonrpc": "2.0", "id": message.get("id"), "error": error})
            return
        result = self._result(method, state.people.get(token, ""))
        self._json(200, {"jsonrpc": "2.0", "id": message.get("id"), "result": result})

    def _result(self, method: str, person: str) -> dict[str, Any]:
        whole = {"resultType": "complete", "_meta": _INFO}
        if method == "server/discover":
            return {
                **whole,
                "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}},
                "ttlMs": 0,
                "cacheScope": "private",
            }
        if method == "tools/list":
            return {**whole, "tools": [TOOL], "ttlMs": 0, "cacheScope": "private"}
        with self.server.state.lock:
            self.server.state.acted += 1
            self.server.state.callers.append(person)
        return {**whole, "content": [{"type": "text", "text": f"done for {person}" if person else "done"}]}

    def _json(self, status: int, value: object) -> None:
        self._send(status, {"Content-Type": "application/json"}, json.dumps(value).encode())

    def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
    state: SignInServer

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that leaves is no news."""


@contextmanager
def sign_in_server() -> Iterator[SignInServer]:
    server = _Server(("127.0.0.1", 0), _Handler)
    server.state = SignInServer(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server.state
    finally:
        server.state.hold.set()
        server.state.last_refusal.set()
        server.shutdown()
        server.server_close()
        thread.join(5)


def agree(url: str) -> None:
    """What a browser does whose user agrees to everything."""
    Browser("").open(url)


class Page(NamedTuple):
    status: int
    url: str
    text: str


class _Stay(HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        """Stay where the redirect comes from."""


class Browser:
    """A browser with cookies, whose user agrees to everything and is called `person` at the authorization server."""

    def __init__(self, person: str, *, follows: bool = True) -> None:
        self.cookies = CookieJar()
        handlers: list[BaseHandler] = [HTTPCookieProcessor(self.cookies), *([] if follows else [_Stay()])]
        self._opener = build_opener(*handlers)
        self._opener.addheaders = [("X-Person", person)] if person else []

    def open(self, url: str, form: dict[str, str] | None = None, **headers: str) -> Page:
        """Where it ends up, after every redirect; where it does not follow them, `url` is where to."""
        data = None if form is None else urlencode(form).encode()
        request = Request(url, data, {name.replace("_", "-"): value for name, value in headers.items()})
        try:
            with self._opener.open(request, timeout=5) as answer:
                return Page(answer.status, answer.url, answer.read().decode())
        except HTTPError as refusal:
            with refusal:
                return Page(refusal.code, refusal.headers.get("Location") or "", refusal.read().decode())

    def send(self, url: str, token: str) -> Page:
        """The form of a page of `/connect`, as a browser sends it."""
        origin = "/".join(url.split("/")[:3])
        return self.open(url, {"token": token}, Origin=origin, Sec_Fetch_Site="same-origin")
