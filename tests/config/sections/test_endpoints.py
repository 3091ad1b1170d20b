"""Endpoints as values: the words of a file, and the defaults."""

from __future__ import annotations

import msgspec
import pytest

from pactgate.config.sections.endpoints import Body, Endpoint, Parameter
from tests.support.rest_api import GET_ITEM, endpoint


def test_an_endpoint_is_read_from_the_words_of_a_file() -> None:
    found = endpoint(
        outputSchema={"type": "object"},
        allowEmpty=True,
        expect={"required": ["id"]},
        body={"contentType": "text/plain"},
    )
    assert found.parameters[0] == Parameter(name="id", in_="path", required=True, schema={"type": "string"})
    assert (found.response, found.output_schema, found.allow_empty) == ("json", {"type": "object"}, True)
    assert found.body == Body(content_type="text/plain", required=True)
    assert found.expect is not None
    assert found.expect.required == ("id",)


@pytest.mark.parametrize("key", ["name", "description", "method", "path"])
def test_what_a_tool_needs_has_no_default(key: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({name: held for name, held in GET_ITEM.items() if name != key}, Endpoint)
