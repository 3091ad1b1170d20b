"""The settings of a REST API: strict by default, and only beside endpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.config.writing import loaded, paths, problems, remote, server
from tests.support.rest_api import GET_ITEM


def api(**settings: Any) -> dict[str, Any]:
    return {"mcpServers": {"shop": {"baseUrl": "https://api.example/v1", "endpoints": [GET_ITEM]} | settings}}


@pytest.mark.requirement("S4/R3")
def test_an_api_is_read_and_strict_by_default(tmp_path: Path) -> None:
    shop = loaded(tmp_path, api()).servers["shop"]
    assert shop.endpoints is not None
    assert shop.endpoints[0].parameters[0].schema == {"type": "string"}
    assert (shop.empty_response, shop.non_json, shop.output_validation) == ("error", "error", "enforce")
    assert (shop.follow_redirects, shop.allowed_hosts, shop.command, shop.url) == (0, (), None, None)


def test_every_setting_can_be_given(tmp_path: Path) -> None:
    given = {"emptyResponse": "allow", "nonJson": "text", "outputValidation": "off", "followRedirects": 2}
    shop = loaded(tmp_path, api(**given, allowedHosts=["intern.example"])).servers["shop"]
    assert (shop.empty_response, shop.non_json, shop.output_validation) == ("allow", "text", "off")
    assert (shop.follow_redirects, shop.allowed_hosts) == (2, ("intern.example",))


def test_credentials_come_from_the_environment_and_are_secrets(tmp_path: Path) -> None:
    config = loaded(tmp_path, api(headers={"Authorization": "Bearer ${SHOP_TOKEN}"}), SHOP_TOKEN="t0ken-of-shop")
    assert config.servers["shop"].headers == {"Authorization": "Bearer t0ken-of-shop"}
    assert "t0ken-of-shop" in config.secrets


def test_an_api_may_be_asked_for_another_media_type(tmp_path: Path) -> None:
    config = loaded(tmp_path, api(headers={"Accept": "application/vnd.github+json", "Content-Type": "text/plain"}))
    assert config.servers["shop"].headers == {"Accept": "application/vnd.github+json"}
    assert [warning.path for warning in config.warnings] == ["mcpServers.shop.headers.Content-Type"]


@pytest.mark.parametrize(
    "setting", [{"baseUrl": "https://x.example"}, {"allowedHosts": ["x"]}, {"followRedirects": 1}, {"nonJson": "text"}]
)
@pytest.mark.parametrize("kind", [server, remote])
def test_what_belongs_to_an_api_stands_beside_one(setting: dict[str, Any], kind: Any, tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, kind(**setting))
    assert "belongs to endpoints" in problem.message


@pytest.mark.parametrize("more", [{"command": "x"}, {"url": "https://x.example"}])
def test_a_server_is_one_thing(more: dict[str, Any], tmp_path: Path) -> None:
    assert paths(problems(tmp_path, api(**more)))[0] == "mcpServers.shop"


@pytest.mark.parametrize("more", [{"type": "stdio"}, {"transport": "sse"}, {"env": {"A": "b"}}, {"args": ["x"]}])
def test_an_api_has_no_program_and_no_transport(more: dict[str, Any], tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, api(**more))
    assert problem.path.startswith("mcpServers.shop.")
