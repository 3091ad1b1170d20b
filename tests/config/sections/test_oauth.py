"""Identity providers and scopes in the configuration: nothing is guessed, and every problem has its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pactgate.config.sections.oauth import closure
from tests.config.writing import loaded, paths, problems

ISSUER = {"issuer": "https://idp.example/realms/x", "audiences": ["https://gateway.example/mcp"]}
READ = {"categories": ["query", "scan"]}
WRITE = {"categories": ["mutation"], "implies": ["read"]}
RUN = {"categories": ["execution"]}


def config(auth: dict[str, Any], **sections: Any) -> dict[str, Any]:
    return {"auth": auth, "mcpServers": {"files": {"command": "x"}}, **sections}


def test_an_issuer_with_its_audience_is_all_that_is_needed_and_everybody_needs_a_token_then(tmp_path: Path) -> None:
    read = loaded(tmp_path, config({"issuers": [ISSUER]}))
    assert (read.allows_anonymous, read.needs_token, read.has_several_principals) == (False, False, True)
    assert read.auth.issuers[0].dpop == "allowed"


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"audiences": None}, "audiences"),
        ({"audiences": []}, "audiences"),
        ({"issuer": "http://idp.example"}, "issuer"),
        ({"issuer": "https://idp.example/?x=1"}, "issuer"),
        ({"issuer": "idp.example"}, "issuer"),
        ({"jwksUri": "http://idp.example/keys"}, "jwksUri"),
        ({"algorithms": ["HS256"]}, "algorithms[0]"),
        ({"algorithms": ["none"]}, "algorithms[0]"),
        ({"algorithms": []}, "algorithms"),
        ({"quirks": "google"}, "quirks"),
        ({"dpop": "maybe"}, "dpop"),
        ({"clockSkewMs": 3600000}, "clockSkewMs"),
        ({"jwks": {"keys": []}}, "jwks"),
        ({"jwks": {"keys": [{"kty": "oct", "k": "x"}]}}, "jwks"),
        ({"jwks": {"keys": [{"kty": "RSA", "d": "x"}]}}, "jwks"),
        ({"jwks": {"keys": [{"kty": "RSA"}]}, "jwksUri": "https://idp.example/keys"}, "jwks"),
        ({"introspection": {"clientId": "x"}}, "introspection.clientSecret"),
        ({"audience": "x"}, "audience"),
    ],
)
def test_what_is_wrong_with_an_issuer_is_said_with_its_place(
    change: dict[str, Any], where: str, tmp_path: Path
) -> None:
    issuer = {name: value for name, value in {**ISSUER, **change}.items() if value is not None}
    found = problems(tmp_path, config({"issuers": [issuer]}))
    assert [problem.path for problem in found] == [f"auth.issuers[0].{where}"]
    assert all(problem.line for problem in found)


def test_one_issuer_is_given_once(tmp_path: Path) -> None:
    assert paths(problems(tmp_path, config({"issuers": [ISSUER, ISSUER]}))) == ["auth.issuers[1].issuer"]


def test_settings_that_need_issuers_are_refused_without_them(tmp_path: Path) -> None:
    found = paths(problems(tmp_path, config({"scopes": {"all": {"categories": ["query"]}}})))
    assert "auth.scopes" in found


def test_beyond_this_machine_the_public_url_has_to_be_given(tmp_path: Path) -> None:
    listen = {"host": "0.0.0.0"}
    assert paths(problems(tmp_path, config({"issuers": [ISSUER]}, listen=listen))) == ["auth.resource"]
    loaded(tmp_path, config({"issuers": [ISSUER], "resource": "https://gateway.example/mcp"}, listen=listen))


def test_anonymous_clients_beside_issuers_are_warned_about(tmp_path: Path) -> None:
    read = loaded(tmp_path, config({"issuers": [ISSUER], "anonymous": True}))
    assert [warning.path for warning in read.warnings] == ["auth.anonymous"]


def test_the_secret_of_the_gateway_is_masked(tmp_path: Path) -> None:
    given = {**ISSUER, "introspection": {"clientId": "gateway", "clientSecret": "${SECRET}"}}
    read = loaded(tmp_path, config({"issuers": [given]}), SECRET="short-secret")
    assert "short-secret" in read.secrets
    assert "short-secret" not in repr(read.auth)


@pytest.mark.parametrize(
    ("scopes", "where"),
    [
        ({"read": READ, "write": WRITE}, "auth.scopes"),
        (
            {"read": READ, "write": WRITE, "run": RUN, "more": {"categories": ["scan"]}},
            "auth.scopes.more.categories[0]",
        ),
        ({"read": READ, "write": {**WRITE, "implies": ["raed"]}, "run": RUN}, "auth.scopes.write.implies[0]"),
        ({"read": READ, "write": {**WRITE, "categories": ["writing"]}, "run": RUN}, "auth.scopes.write.categories[0]"),
        ({"read": {**READ, "implies": ["write"]}, "write": WRITE, "run": RUN}, "auth.scopes.read.implies[0]"),
        ({"read": READ, "write": WRITE, "run": {"categories": []}}, "auth.scopes"),
        ({"rea d": READ, "write": WRITE, "run": RUN}, None),
    ],
)
def test_scopes_cover_every_category_once_and_name_each_other(
    scopes: dict[str, Any], where: str | None, tmp_path: Path
) -> None:
    found = paths(problems(tmp_path, config({"issuers": [ISSUER], "scopes": scopes})))
    assert where is None or where in found, json.dumps(found)


def test_a_scope_includes_what_the_scopes_it_implies_include() -> None:
    scopes = {"a": {"implies": ["b"]}, "b": {"implies": ["c"]}, "c": {}}
    assert closure("a", scopes) == {"a", "b", "c"}
    assert closure("c", scopes) == {"c"}
