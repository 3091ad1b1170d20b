"""`auth` of a server: what belongs together, and whose words it has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.config.writing import loaded, problems, remote, server

SERVICE = {
    "type": "oauth",
    "who": "service",
    "issuer": "https://login.example",
    "clientId": "robot",
    "clientSecret": "a-secret-of-the-robot",
}


def test_the_secret_of_a_client_is_masked_in_all_output(tmp_path: Path) -> None:
    config = loaded(tmp_path, remote(auth=SERVICE))
    assert config.servers["crm"].auth is not None
    assert "a-secret-of-the-robot" in config.secrets


def test_credentials_are_kept_beside_the_configuration_and_hidden_from_confined_programs(tmp_path: Path) -> None:
    config = loaded(tmp_path, remote())
    assert config.credential_file is not None
    assert config.credential_file.endswith(".credentials")
    assert {config.credential_file, f"{config.credential_file}.key"} <= set(config.private_paths)


@pytest.mark.parametrize(
    ("auth", "why"),
    [
        ({**SERVICE, "issuer": None}, "This needs issuer, too."),
        ({"type": "oauth", "who": "service"}, "This needs issuer and clientId and clientSecret, too."),
        ({"type": "oauth", "clientSecret": "a-secret"}, "This needs issuer and clientId, too."),
        ({"type": "oauth", "who": "anybody"}, "anybody"),
        ({"type": "oauth", "who": "exchange"}, "belong together"),
        ({"type": "basic"}, "basic"),
        ({"type": "oauth", "clientID": "x"}, "clientID"),
        ({"type": "oauth", "scopes": ["a b"]}, "a b"),
        ({"who": "shared"}, "type"),
    ],
)
def test_what_can_not_work_is_a_problem(auth: dict[str, Any], why: str, tmp_path: Path) -> None:
    given = {name: value for name, value in auth.items() if value is not None}
    found = problems(tmp_path, remote(auth=given))
    assert any(why in str(problem) for problem in found), found


def test_auth_and_a_header_of_credentials_contradict_each_other(tmp_path: Path) -> None:
    found = problems(tmp_path, remote(auth={"type": "oauth"}, headers={"authorization": "Bearer x"}))
    assert any("contradict" in str(problem) for problem in found)


def test_auth_belongs_to_a_url(tmp_path: Path) -> None:
    assert any("auth belongs to url" in str(problem) for problem in problems(tmp_path, server(auth={"type": "oauth"})))


def test_what_another_client_calls_auth_is_ignored_and_that_is_said(tmp_path: Path) -> None:
    config = loaded(tmp_path, remote(auth={"CLIENT_ID": "x"}))
    assert config.servers["crm"].auth is None
    assert any("pactgate login" in str(warning) for warning in config.warnings)
