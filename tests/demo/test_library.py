"""The REST API of the demo: a real process on a socket it inherits, behind the gateway and by itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any

import jsonschema
import pytest

from pactgate.app import Gateway
from pactgate.cli.demo import DemoApi
from pactgate.config.model import Config
from pactgate.demo.library import MAX_LOANS, Library
from pactgate.demo.library_api import ENDPOINTS, openapi


@pytest.fixture(scope="module")
def api() -> Iterator[DemoApi]:
    running = DemoApi()
    yield running
    running.close()


def test_it_serves_what_its_document_says(api: DemoApi) -> None:
    connection = HTTPConnection("127.0.0.1", api.port, timeout=5)
    connection.request("GET", "/openapi.json")
    document = json.loads(connection.getresponse().read())
    assert document == openapi()
    operations = [operation for methods in document["paths"].values() for operation in methods.values()]
    assert [operation["operationId"] for operation in operations] == [endpoint["name"] for endpoint in ENDPOINTS]
    connection.request("GET", "/nothing")
    assert connection.getresponse().status == 404
    connection.close()


def test_a_request_that_can_not_be_read_ends_the_connection(api: DemoApi) -> None:
    connection = HTTPConnection("127.0.0.1", api.port, timeout=5)
    connection.request("POST", "/books/emma/loans", headers={"Content-Length": "99999999"})
    answer = connection.getresponse()
    assert (answer.status, answer.getheader("Connection")) == (400, "close")
    connection.close()


async def test_a_book_is_found_borrowed_and_brought_back_through_the_gateway(api: DemoApi) -> None:
    async with Gateway.open(Config(servers={"library": api.server()})) as gateway:

        async def call(tool: str, **arguments: Any) -> dict[str, Any]:
            return await gateway.invoke(f"library.{tool}", arguments)

        found = await call("search_books", q="brontë", limit=5)
        assert [book["id"] for book in found["data"]["structuredContent"]["books"]] == ["jane-eyre"]
        lent = await call("borrow_book", id="jane-eyre", reader="Ada")
        loan = lent["data"]["structuredContent"]["loan"]
        assert (await call("get_book", id="jane-eyre"))["data"]["structuredContent"]["available"] is False
        refused = await call("borrow_book", id="jane-eyre", reader="Bob")
        assert (refused["error"]["code"], refused["error"]["context"]["status"]) == ("CONFLICT", 409)
        assert (await call("return_book", loan=loan))["data"]["content"][0]["text"] == "No content (HTTP 204)."
        assert (await call("return_book", loan=loan))["error"]["code"] == "NOT_FOUND"
        card = await call("book_card", id="walden")
        assert card["data"]["content"][0]["text"] == "Henry David Thoreau\n  Walden. 1854.\n"


def test_what_it_answers_fits_the_schemas_it_names() -> None:
    library = Library()
    for endpoint in ENDPOINTS:
        path = endpoint["path"].replace("{id}", "emma").replace("{loan}", "1")
        answer = library.answer(endpoint["method"], path, b'{"reader": "Ada"}')
        assert answer.status < 300
        if "outputSchema" in endpoint:
            jsonschema.validate(json.loads(answer.body), endpoint["outputSchema"])


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b"nonsense", b"3"])
def test_a_loan_needs_a_reader(body: bytes) -> None:
    assert Library().answer("POST", "/books/emma/loans", body).status == 400


def test_a_search_needs_a_number_for_its_limit() -> None:
    assert Library().answer("GET", "/books?limit=many", b"").status == 400
    assert json.loads(Library().answer("GET", "/books?limit=2", b"").body)["total"] == 8
    assert MAX_LOANS >= 8


def test_the_process_ends_with_whoever_started_it() -> None:
    running = DemoApi()
    running.close()
    with pytest.raises(ConnectionRefusedError):
        HTTPConnection("127.0.0.1", running.port, timeout=5).request("GET", "/books")
