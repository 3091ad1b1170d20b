"""The REST API of the demo: a real process on a socket it inherits, behind the gateway and by itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any

import pytest

from pactgate.app import Gateway
from pactgate.cli.demo import DemoApi
from pactgate.config.model import Config
from pactgate.demo.library import MAX_BODY_BYTES


@pytest.fixture(scope="module")
def api() -> Iterator[DemoApi]:
    running = DemoApi()
    yield running
    running.close()


def ask(api: DemoApi, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None) -> Any:
    connection = HTTPConnection("127.0.0.1", api.port, timeout=5)
    connection.request(method, path, body or None, headers or {})
    response = connection.getresponse()
    data = response.read()
    connection.close()
    return response.status, data


def test_it_serves_its_openapi_document_and_nothing_it_does_not_name(api: DemoApi) -> None:
    status, data = ask(api, "GET", "/openapi.json")
    paths = json.loads(data)["paths"]
    assert (status, list(paths)) == (200, ["/books", "/books/{id}/loan"])
    for method, path in (("GET", "/nothing"), ("POST", "/books/nothing/loan"), ("DELETE", "/books/emma/loan")):
        assert ask(api, method, path, b"{}")[0] == 404


async def test_a_book_is_found_borrowed_and_returned_through_the_gateway(api: DemoApi) -> None:
    async with Gateway.open(Config(servers={"library": api.server()})) as gateway:

        async def call(tool: str, **arguments: Any) -> dict[str, Any]:
            return await gateway.invoke(f"library.{tool}", arguments)

        found = await call("search_books", q="brontë")
        assert [book["id"] for book in found["data"]["structuredContent"]["books"]] == ["jane-eyre"]
        lent = await call("borrow_book", id="jane-eyre", reader="Ada")
        assert lent["data"]["structuredContent"]["available"] is False
        refused = await call("borrow_book", id="jane-eyre", reader="Bob")
        assert (refused["error"]["code"], refused["error"]["context"]["status"]) == ("CONFLICT", 409)
        assert (await call("return_book", id="jane-eyre"))["data"]["content"][0]["text"] == "No content (HTTP 204)."
        assert (await call("return_book", id="jane-eyre"))["error"]["code"] == "NOT_FOUND"


@pytest.mark.parametrize("body", [b"[]", b"{}", b"nonsense", b"3", b"[" * 10_000])
def test_a_loan_needs_a_reader(api: DemoApi, body: bytes) -> None:
    assert ask(api, "POST", "/books/emma/loan", body)[0] == 400


@pytest.mark.parametrize("length", ["many", str(MAX_BODY_BYTES + 1)])
def test_a_body_beyond_the_bound_is_refused(api: DemoApi, length: str) -> None:
    assert ask(api, "POST", "/books/emma/loan", headers={"Content-Length": length})[0] == 413


def test_the_process_ends_with_its_parent() -> None:
    running = DemoApi()
    running.close()
    with pytest.raises(ConnectionRefusedError):
        HTTPConnection("127.0.0.1", running.port, timeout=5).request("GET", "/books")
