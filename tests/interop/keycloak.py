"""Keycloak as a real installation has it: two realms, clients with an audience, users in groups; started and configured here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from tests.interop.processes import TOOLS, free_port

FOLDER = TOOLS / "keycloak"
CALLBACK = "http://127.0.0.1:9/callback"
PASSWORD = "of-alice"
FRONT_SECRET = "of-the-front-gateway"
ADMIN = ("admin", "of-the-admin")
SCOPES = ("mcp:read", "mcp:write", "mcp:run")
START_S = 420
"""The first start compiles its configuration, which takes a minute and a half on an idle machine."""
_JAVA_HOMES = ("/usr/lib/jvm/temurin-25-jdk-amd64", "/usr/lib/jvm/temurin-21-jdk-amd64")


def why_no_keycloak() -> str | None:
    if not (FOLDER / "bin" / "kc.sh").exists():
        return "Keycloak is not there; run `make interop-keycloak`"
    return None if shutil.which("chromium") else "there is no chromium"


class Keycloak:
    """One server in development mode, with its data in memory."""

    def __init__(self, folder: Path, resource: str, front: int) -> None:
        """`front` is the port of a gateway that signs in to servers; `pactgate login` takes the port after it."""
        self._front = front
        self._folder = folder
        self._resource = resource
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        realms = FOLDER / "data" / "import"
        realms.mkdir(parents=True, exist_ok=True)
        for name in ("work", "other"):
            (realms / f"{name}-realm.json").write_text(json.dumps(realm(name, self._resource, self._front)))
        java = next((home for home in _JAVA_HOMES if os.path.isdir(home)), None)
        environ = {
            **os.environ,
            **({} if java is None else {"JAVA_HOME": java}),
            "KC_BOOTSTRAP_ADMIN_USERNAME": ADMIN[0],
            "KC_BOOTSTRAP_ADMIN_PASSWORD": ADMIN[1],
        }
        words = [str(FOLDER / "bin" / "kc.sh"), "start-dev", "--db=dev-mem", "--import-realm", "--http-host=127.0.0.1"]
        with (self._folder / "keycloak.log").open("wb") as log:
            self._process = subprocess.Popen(
                [*words, f"--http-port={self.port}", "--http-management-port", str(free_port())],
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "started before it is asked for"
        return self._process

    def said(self) -> str:
        return (self._folder / "keycloak.log").read_text(errors="replace")[-3000:]

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)
            self._process = None

    def issuer(self, realm: str = "work") -> str:
        return f"{self.url}/realms/{realm}"

    def is_ready(self) -> bool:
        try:
            with urlopen(f"{self.issuer('other')}/.well-known/openid-configuration", timeout=5) as answer:
                return int(answer.status) == 200
        except OSError:
            return False

    def tokens(self, realm: str = "work", **form: str) -> dict[str, Any]:
        request = Request(f"{self.issuer(realm)}/protocol/openid-connect/token", urlencode(form).encode())
        with urlopen(request, timeout=20) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def by_password(self, client: str = "desk", realm: str = "work", scope: str = "openid mcp:read") -> dict[str, Any]:
        return self.tokens(
            realm, grant_type="password", client_id=client, username="alice", password=PASSWORD, scope=scope
        )

    def revoke(self, token: str, client: str, realm: str = "work") -> None:
        form = urlencode({"token": token, "client_id": client}).encode()
        urlopen(Request(f"{self.issuer(realm)}/protocol/openid-connect/revoke", form), timeout=20).close()

    def rotate(self) -> None:
        """A new key pair that counts more than the one before."""
        user, password = ADMIN
        token = self.tokens("master", grant_type="password", client_id="admin-cli", username=user, password=password)
        key = {
            "name": "newer",
            "providerId": "rsa-generated",
            "providerType": "org.keycloak.keys.KeyProvider",
            "config": {"priority": ["900"], "enabled": ["true"], "active": ["true"], "algorithm": ["RS256"]},
        }
        request = Request(f"{self.url}/admin/realms/work/components", json.dumps(key).encode())
        request.add_header("Authorization", f"Bearer {token['access_token']}")
        request.add_header("Content-Type", "application/json")
        urlopen(request, timeout=20).close()


def realm(name: str, resource: str, front: int) -> dict[str, Any]:
    """A realm whose clients get tokens for this gateway, but for one, and one whose tokens last two seconds. Refresh tokens rotate.

    `upstream` and `front` are what a gateway is that signs in to a server: with a person, and by itself or for the token of a caller.
    """
    audience = {"included.custom.audience": resource, "access.token.claim": "true"}
    groups = {"claim.name": "groups", "full.path": "false", "access.token.claim": "true"}
    mappers = [
        _mapper("subject", "oidc-sub-mapper", {"access.token.claim": "true"}),
        _mapper("groups", "oidc-group-membership-mapper", groups),
    ]
    for_gateway = [*mappers, _mapper("audience", "oidc-audience-mapper", audience)]
    elsewhere = _mapper(
        "audience", "oidc-audience-mapper", {**audience, "included.custom.audience": "https://other.example"}
    )
    for_front = _mapper(
        "front", "oidc-audience-mapper", {"included.client.audience": "front", "access.token.claim": "true"}
    )
    base = f"http://127.0.0.1:{front}"
    answers = [f"{base}/connect/callback", f"http://127.0.0.1:{front + 1}/callback"]
    confidential = {"publicClient": False, "secret": FRONT_SECRET, "serviceAccountsEnabled": True}
    return {
        "realm": name,
        "revokeRefreshToken": True,
        "refreshTokenMaxReuse": 0,
        "enabled": True,
        "sslRequired": "none",
        "clientScopes": [
            {"name": scope, "protocol": "openid-connect", "attributes": {"include.in.token.scope": "true"}}
            for scope in SCOPES
        ],
        "clients": [
            _client("desk", [*for_gateway, for_front]),
            {**_client("upstream", for_gateway), "redirectUris": answers},
            {
                **_client("front", for_gateway, {"standard.token.exchange.enabled": "true"}),
                **confidential,
                "redirectUris": answers,
            },
            _client("elsewhere", [*mappers, elsewhere]),
            _client("brief", for_gateway, {"access.token.lifespan": "2"}),
        ],
        "groups": [{"name": "finance"}],
        "users": [
            {
                "username": "alice",
                "enabled": True,
                "email": "alice@example.org",
                "emailVerified": True,
                "firstName": "Alice",
                "lastName": "Liddell",
                "groups": ["/finance"],
                "realmRoles": ["offline_access"],
                "credentials": [{"type": "password", "value": PASSWORD, "temporary": False}],
            }
        ],
    }


def _client(name: str, mappers: list[dict[str, Any]], attributes: dict[str, str] | None = None) -> dict[str, Any]:
    return {
        "clientId": name,
        "publicClient": True,
        "standardFlowEnabled": True,
        "directAccessGrantsEnabled": True,
        "redirectUris": [CALLBACK],
        "attributes": {"pkce.code.challenge.method": "S256", **(attributes or {})},
        "optionalClientScopes": [*SCOPES, "offline_access"],
        "protocolMappers": mappers,
    }


def _mapper(name: str, kind: str, config: dict[str, str]) -> dict[str, Any]:
    return {"name": name, "protocol": "openid-connect", "protocolMapper": kind, "config": config}
