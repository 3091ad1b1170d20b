"""A document behind the gateway, end to end: real sockets, real files, calls as they arrive at the API."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pactgate.app import Gateway
from pactgate.config.model import Config
from pactgate.config.server_settings import ServerConfig
from pactgate.upstreams.openapi import mapping, server
from tests.support.eventually import eventually
from tests.support.openapi import document, operation
from tests.support.rest_api import Api, serving
from tests.support.scripted_http import ReceivedRequest, answer

PATHS = {
    "/cities/{city}/weather": {
        "get": operation(
            "weather",
            parameters=[
                {"name": "city", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}},
                {
                    "name": "day[]",
                    "in": "query",
                    "explode": True,
                    "schema": {"type": "array", "items": {"type": "string"}},
                },
                {"name": "X-Units", "in": "header", "schema": {"enum": ["metric", "imperial"]}},
            ],
            responses={"200": {"description": "", "content": {"application/json": {"schema": {"type": "object"}}}}},
        )
    },
    "/reports": {
        "post": operation(
            "report",
            security=[{"key": []}],
            requestBody={
                "required": True,
                "content": {
                    "application/json": {
                        "schema": {
                            "type": "object",
                            "required": ["text"],
                            "properties": {"text": {"type": "string"}, "id": {"type": "string", "readOnly": True}},
                        }
                    }
                },
            },
            responses={"204": {"description": ""}},
        )
    },
    "/admin": {"get": operation("admin", security=[{"other": []}])},
}
SCHEMES = {
    "key": {"type": "apiKey", "in": "query", "name": "key"},
    "other": {"type": "http", "scheme": "bearer"},
}


def written(folder: Path, paths: Any = None, **more: Any) -> Path:
    file = folder / "api.json"
    root = document(PATHS if paths is None else paths, components={"securitySchemes": SCHEMES}, **more)
    file.write_text(json.dumps(root))
    return file


@asynccontextmanager
async def described(folder: Path, answers: Any = b"", **settings: Any) -> AsyncIterator[tuple[Gateway, Api]]:
    """A gateway in front of an API that is described by a file."""
    async with serving(answers) as api:
        config = ServerConfig(
            id="weather",
            openapi=str(written(folder)),
            **{"base_url": api.origin, "output_validation": "off", **settings},
        )
        async with Gateway.open(Config(servers={"weather": config})) as gateway:
            await gateway.discover()
            yield gateway, api


async def until(is_so: Callable[[], bool]) -> None:
    await eventually(is_so)


def row(gateway: Gateway) -> dict[str, Any]:
    return gateway.connections.rows()[0]


async def test_an_operation_is_called_as_the_document_describes_it(tmp_path: Path) -> None:
    async with described(tmp_path, answer({"sky": "blue"})) as (gateway, api):
        arguments = {"city": "São Paulo", "day": ["a", "b c"], "X-Units": "metric"}
        envelope = await gateway.invoke("weather.weather", arguments)
        assert envelope["success"], envelope
        (request,) = api.requests
        assert (request.method, request.path) == (
            "GET",
            "/cities/S%C3%A3o%20Paulo/weather?day%5B%5D=a&day%5B%5D=b%20c",
        )
        assert request.headers["x-units"] == "metric"


async def test_a_body_and_a_credential_go_where_they_belong_and_read_only_members_do_not_exist(tmp_path: Path) -> None:
    answers = b"HTTP/1.1 204 No Content\r\n\r\n"
    async with described(tmp_path, answers, credentials={"key": "s3cret key"}) as (gateway, api):
        assert (await gateway.invoke("weather.report", {"text": "rain"}))["success"]
        (request,) = api.requests
        assert (request.method, request.path, request.body) == ("POST", "/reports?key=s3cret%20key", b'{"text":"rain"}')
        refused = await gateway.invoke("weather.report", {"text": "rain", "id": "1"})
        assert not refused["success"]
        assert len(api.requests) == 1


async def test_a_credential_an_api_repeats_is_not_passed_on(tmp_path: Path) -> None:
    def echo(request: ReceivedRequest) -> bytes:
        body = f"what is {request.path} and s3cret-key?".encode()
        return b"HTTP/1.1 400 Bad\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)

    async with described(tmp_path, echo, credentials={"key": "s3cret-key"}) as (gateway, _):
        assert "s3cret-key" not in json.dumps(await gateway.invoke("weather.report", {"text": "rain"}))


async def test_what_is_left_out_is_said_with_its_reason(tmp_path: Path) -> None:
    async with described(tmp_path) as (gateway, _):
        assert row(gateway)["toolCount"] == 1
        assert row(gateway)["leftOut"] == [
            "it needs the credential key (apiKey query): POST /reports",
            "it needs the credential other (http bearer): GET /admin",
        ]


async def test_the_schemas_of_tools_are_closed(tmp_path: Path) -> None:
    async with described(tmp_path) as (gateway, api):
        envelope = await gateway.invoke("weather.weather", {"city": "x", "extra": 1})
        assert envelope["error"]["code"] == "INVALID_INPUT"
        assert not api.requests


async def test_an_answer_is_held_against_the_document_where_that_is_asked_for(tmp_path: Path) -> None:
    async with described(tmp_path, answer("[1]"), output_validation="enforce") as (gateway, _):
        assert (await gateway.invoke("weather.weather", {"city": "x"}))["error"]["code"] == "INVALID_OUTPUT"
    async with described(tmp_path, answer("[1]"), output_validation="warn") as (gateway, _):
        assert (await gateway.invoke("weather.weather", {"city": "x"}))["success"]


async def test_a_response_schema_that_is_too_large_for_a_warning_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapping, "MAX_OUTPUT_BYTES", 5)
    async with described(tmp_path, output_validation="warn") as (gateway, _):
        assert (
            "its responses are not validated, because their schema is too large: GET /cities/{city}/weather"
            in (row(gateway)["leftOut"])
        )
        (tool,) = gateway.snapshot()["tools"]
        assert tool["outputValidation"] == "off"


async def test_a_host_only_the_document_names_is_not_called_when_it_is_private(tmp_path: Path) -> None:
    written(tmp_path, servers=[{"url": "http://169.254.169.254/latest"}])
    config = ServerConfig(id="weather", openapi=str(tmp_path / "api.json"))
    async with Gateway.open(Config(servers={"weather": config})) as gateway:
        await gateway.discover()
        assert row(gateway)["status"] == "error"
        assert "baseUrl" in row(gateway)["lastError"]


async def test_a_broken_document_is_an_error_of_its_server_alone(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text('{"swagger": "2.0"}')
    async with serving() as api:
        good = ServerConfig(id="good", openapi=str(written(tmp_path)), base_url=api.origin, output_validation="off")
        bad = ServerConfig(id="bad", openapi=str(tmp_path / "old.json"))
        async with Gateway.open(Config(servers={"bad": bad, "good": good})) as gateway:
            await gateway.discover()
            rows = {one["serverId"]: one for one in gateway.connections.rows()}
            assert (rows["bad"]["status"], rows["bad"]["attempts"]) == ("error", 1)
            assert "Swagger 2.0" in rows["bad"]["lastError"]
            assert (await gateway.invoke("good.weather", {"city": "x"}))["success"]


@pytest.fixture
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "LOOK_EVERY_S", 0.01)


async def test_a_document_that_changes_is_taken_over_while_it_runs(tmp_path: Path, quick_looks: None) -> None:
    async with described(tmp_path) as (gateway, _):
        written(tmp_path, {"/new": {"get": operation("brand_new")}})
        await until(lambda: [tool.name for tool in gateway.connections.unfiltered.tools.entries()] == ["brand_new"])
        assert row(gateway)["status"] == "connected"
        assert (await gateway.invoke("weather.brand_new", {}))["success"]


async def test_a_document_that_breaks_puts_its_server_in_error_until_it_is_mended(
    tmp_path: Path, quick_looks: None
) -> None:
    async with described(tmp_path) as (gateway, _):
        (tmp_path / "api.json").write_text("{")
        await until(lambda: row(gateway)["status"] == "error")
        assert "is not JSON" in row(gateway)["lastError"]
        written(tmp_path)
        envelope: dict[str, Any] = {}
        async with asyncio.timeout(5):
            while not envelope.get("success"):
                envelope = await gateway.invoke("weather.weather", {"city": "x"})
                await asyncio.sleep(0)


GIVEN = {"name": "x", "in": "query", "schema": {"type": "object", "additionalProperties": {"type": "string"}}}


@pytest.mark.parametrize(
    ("place", "name"), [("header", "X-TENANT"), ("header", "x-tenant"), ("query", "KEY"), ("query", "key[]")]
)
async def test_what_the_operator_sets_is_no_argument_whatever_its_spelling(
    place: str, name: str, tmp_path: Path
) -> None:
    doubled = {"name": name, "in": place, "required": True, "schema": {"type": "string"}}
    paths = {"/r": {"get": operation("read", security=[{"key": []}], parameters=[doubled])}}
    file = written(tmp_path, paths)
    async with serving(answer({})) as api:
        config = ServerConfig(
            id="weather",
            openapi=str(file),
            base_url=api.origin,
            output_validation="off",
            headers={"X-Tenant": "operators"},
            credentials={"key": "operators"},
        )
        async with Gateway.open(Config(servers={"weather": config})) as gateway:
            await gateway.discover()
            refused = await gateway.invoke("weather.read", {name: "callers"})
            assert not refused["success"], refused
            await gateway.invoke("weather.read", {})
    (request,) = api.requests
    assert request.path == "/r?key=operators"
    assert [request.headers[one] for one in request.headers if one.casefold() == "x-tenant"] == ["operators"]


@pytest.mark.parametrize("key", ["key", "KEY", "key[]", "key[a]", " key"])
async def test_an_object_whose_members_become_keys_cant_name_the_operators_key(key: str, tmp_path: Path) -> None:
    paths = {"/r": {"get": operation("read", security=[{"key": []}], parameters=[GIVEN])}}
    file = written(tmp_path, paths)
    async with serving(answer({})) as api:
        config = ServerConfig(
            id="weather",
            openapi=str(file),
            base_url=api.origin,
            output_validation="off",
            credentials={"key": "operators"},
        )
        async with Gateway.open(Config(servers={"weather": config})) as gateway:
            await gateway.discover()
            refused = await gateway.invoke("weather.read", {"x": {key: "callers"}})
            assert "set in the configuration" in json.dumps(refused)
            await gateway.invoke("weather.read", {"x": {"other": "1"}})
    (request,) = api.requests
    assert request.path == "/r?other=1&key=operators"
