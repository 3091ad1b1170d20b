"""Which grant a caller gets, and the grants that need nobody: by a key, by an assertion of the platform."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from msgspec.structs import replace

from pactgate.config.sections.sign_in import SignIn, TokenExchange
from pactgate.config.server_settings import ServerConfig
from pactgate.core.failures import GatewayFailure
from pactgate.core.principal import Principal, PrincipalKind
from pactgate.state.credential_store import CredentialStore
from pactgate.upstreams.http.client import HttpClient
from pactgate.upstreams.oauth.grants import CallerGrants, GrantMaker, server_grant
from tests.support.sign_in_server import SignInServer, sign_in_server

ALICE = Principal("alice")
KEY = ec.generate_private_key(ec.SECP256R1())
PEM = KEY.private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
).decode()


@pytest.fixture
def server() -> Iterator[SignInServer]:
    with sign_in_server() as state:
        yield state


@pytest.fixture
async def maker(tmp_path: Path) -> AsyncIterator[GrantMaker]:
    client = HttpClient()
    yield GrantMaker(client, CredentialStore.in_file(str(tmp_path / "credentials")), lambda secrets: None)
    await client.close()


def config(server: SignInServer, **auth: object) -> ServerConfig:
    return ServerConfig(id="vault", url=server.url, auth=SignIn(type="oauth", **auth))  # type: ignore[arg-type]


async def test_a_caller_has_one_grant_and_no_other_has_it(server: SignInServer, maker: GrantMaker) -> None:
    grants = CallerGrants(config(server, who="user"), maker)
    alice, bob = grants.of(ALICE), grants.of(Principal("bob"))
    assert grants.of(replace(ALICE, scopes=frozenset({"x"}))) is alice
    assert alice is not bob
    assert set(grants) == {alice, bob}
    del alice, bob
    assert not list(grants), "a grant lives as long as somebody uses it"


async def test_a_caller_without_a_sign_in_has_nothing_sent_for_it(server: SignInServer, maker: GrantMaker) -> None:
    grants = CallerGrants(config(server, who="user"), maker)
    with pytest.raises(GatewayFailure, match="needs your sign-in: nobody has signed in"):
        await grants.of(ALICE).prepare()
    with pytest.raises(GatewayFailure, match="can't be told from others"):
        grants.of(Principal("anonymous", kind=PrincipalKind.ANONYMOUS))
    await grants.of(Principal("local", kind=PrincipalKind.LOCAL)).prepare()  # its grant is the shared one


async def test_other_rights_are_another_exchange(server: SignInServer, maker: GrantMaker) -> None:
    exchange = TokenExchange(issuer=server.origin)
    grants = CallerGrants(config(server, who="exchange", client_id="gw", exchange=exchange), maker)
    assert grants.of(ALICE) is grants.of(ALICE)
    assert grants.of(replace(ALICE, scopes=frozenset({"x"}))) is not grants.of(ALICE)


async def test_a_client_proves_itself_by_a_signature_of_this_moment(server: SignInServer, maker: GrantMaker) -> None:
    server.more_metadata = {"token_endpoint_auth_methods_supported": ["private_key_jwt"]}
    auth = {"who": "service", "issuer": server.origin, "client_id": "robot", "private_key": PEM}
    for _ in range(2):
        grant = server_grant(config(server, **auth), maker)
        assert grant is not None
        await grant.prepare()
        assert grant.token in server.tokens
    found = [
        jwt.decode(form["client_assertion"], KEY.public_key(), ["ES256"], audience=server.origin)
        for form in server.forms
    ]
    assert {(one["iss"], one["sub"]) for one in found} == {("robot", "robot")}
    assert found[0]["jti"] != found[1]["jti"]
    assert found[0]["exp"] - found[0]["iat"] <= 60
    assert all(PEM[40:80] not in str(form) for form in server.forms)


async def test_an_authorization_server_that_takes_no_signature_is_named(
    server: SignInServer, maker: GrantMaker
) -> None:
    auth = {"who": "service", "issuer": server.origin, "client_id": "robot", "private_key": PEM}
    grant = server_grant(config(server, **auth), maker)
    assert grant is not None
    with pytest.raises(GatewayFailure, match="does not take private_key_jwt"):
        await grant.prepare()


async def test_an_assertion_of_the_platform_is_read_at_each_use(
    server: SignInServer, maker: GrantMaker, tmp_path: Path
) -> None:
    file = tmp_path / "service-account"
    auth = {"who": "service", "issuer": server.origin, "client_id": "robot", "assertion_file": str(file)}
    settings = config(server, **auth)
    grant = server_grant(settings, maker)
    assert grant is not None
    with pytest.raises(GatewayFailure, match="assertionFile"):
        await grant.prepare()
    for text in ("first\n", "second\n"):
        file.write_text(text)
        grant = server_grant(settings, maker)
        assert grant is not None
        await grant.prepare()
    assert [(form["assertion"], form["client_id"]) for form in server.forms] == [
        ("first", "robot"),
        ("second", "robot"),
    ]


@pytest.mark.parametrize("who", ["user", "exchange"])
async def test_lists_may_have_a_grant_of_the_gateway_itself(who: str, server: SignInServer, maker: GrantMaker) -> None:
    exchange = TokenExchange(issuer=server.origin) if who == "exchange" else None
    settings = config(
        server,
        who=who,
        lists="service",
        issuer=server.origin,
        client_id="robot",
        client_secret="of-the-robot",
        exchange=exchange,
    )
    grant = server_grant(settings, maker)
    assert grant is not None
    await grant.prepare()
    assert server.forms[0]["grant_type"] == "client_credentials"
