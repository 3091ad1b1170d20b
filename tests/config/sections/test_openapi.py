"""Settings of servers that are OpenAPI documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pactgate.config.sections.openapi import ExcludedOperations, IncludedOperations, is_url
from tests.config.writing import loaded, paths, problems


def entry(**settings: Any) -> dict[str, Any]:
    return {"mcpServers": {"weather": {"openapi": "weather.yaml", **settings}}}


def test_a_file_is_found_from_the_folder_of_the_configuration_and_a_url_is_a_url(tmp_path: Path) -> None:
    server = loaded(tmp_path, entry()).servers["weather"]
    assert server.openapi == str(tmp_path / "weather.yaml")
    server = loaded(tmp_path, entry(openapi="https://api.example/${V}.yaml"), V="v1").servers["weather"]
    assert server.openapi == "https://api.example/v1.yaml"
    assert not is_url("weather.yaml")
    assert not is_url("C:weather.yaml")


def test_nothing_is_chosen_or_promised_unless_it_is_written(tmp_path: Path) -> None:
    server = loaded(tmp_path, entry()).servers["weather"]
    assert (server.include, server.exclude, server.credentials) == (IncludedOperations(), ExcludedOperations(), {})
    assert server.output_validation == "warn"
    assert loaded(tmp_path, entry(outputValidation="enforce")).servers["weather"].output_validation == "enforce"


def test_a_selection_is_read_as_written(tmp_path: Path) -> None:
    chosen = {"tags": ["a"], "paths": ["/x*"], "operations": ["get*"], "methods": ["GET"], "deprecated": True}
    server = loaded(tmp_path, entry(include=chosen, exclude={"methods": ["DELETE"]})).servers["weather"]
    assert server.include == IncludedOperations(
        tags=("a",), paths=("/x*",), operations=("get*",), methods=("GET",), deprecated=True
    )
    assert server.exclude == ExcludedOperations(methods=("DELETE",))


def test_credentials_come_from_the_environment_and_are_secrets(tmp_path: Path) -> None:
    config = loaded(tmp_path, entry(credentials={"bearerAuth": "${TOKEN}"}), TOKEN="tok-123456")
    assert config.servers["weather"].credentials == {"bearerAuth": "tok-123456"}
    assert "tok-123456" in config.secrets
    assert "tok-123456" not in repr(config.servers["weather"])


@pytest.mark.parametrize(
    ("settings", "path"),
    [
        ({"openapi": "ftp://x.example/a"}, "mcpServers.weather.openapi"),
        ({"openapi": ""}, "mcpServers.weather.openapi"),
        ({"openapi": "https://u:p@x.example/a"}, "mcpServers.weather.openapi"),
        ({"command": "x"}, "mcpServers.weather"),
        ({"url": "https://x.example"}, "mcpServers.weather"),
        ({"args": ["x"]}, "mcpServers.weather.args"),
        ({"include": {"tag": ["a"]}}, "mcpServers.weather.include.tag"),
        ({"include": {"methods": ["get"]}}, "mcpServers.weather.include.methods[0]"),
        ({"exclude": {"deprecated": True}}, "mcpServers.weather.exclude.deprecated"),
        ({"credentials": {"a": "${NOT_SET}"}}, "mcpServers.weather.credentials.a"),
        ({"credentials": {"a": "line\nbreak"}}, "mcpServers.weather.credentials.a"),
        ({"credentials": {"a\tb": "x"}}, 'mcpServers.weather.credentials["a\\tb"]'),
        ({"baseUrl": "ftp://x.example"}, "mcpServers.weather.baseUrl"),
    ],
)
def test_what_is_wrong_is_said_where_it_stands(settings: dict[str, Any], path: str, tmp_path: Path) -> None:
    assert path in paths(problems(tmp_path, entry(**settings)))


def test_what_belongs_to_a_document_does_not_belong_to_a_program(tmp_path: Path) -> None:
    found = problems(
        tmp_path, {"mcpServers": {"a": {"command": "x", "credentials": {"a": "b"}, "include": {"tags": ["x"]}}}}
    )
    assert set(paths(found)) == {"mcpServers.a.credentials", "mcpServers.a.include"}
