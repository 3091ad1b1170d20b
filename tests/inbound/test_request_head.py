"""What the head of a POST says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.core.principal import Principal
from pactgate.inbound.request_head import Accepts, McpRequestHead, has_json, read_accept, read_mcp_head
from pactgate.protocol.versions import LATEST_LEGACY, LATEST_MODERN

NOBODY = Principal("anonymous", frozenset())
NOTHING = Accepts(json=False, stream=False)


def read(**headers: list[str]) -> McpRequestHead:
    named = {name.replace("_", "-"): values for name, values in headers.items()}
    return read_mcp_head(
        named,
        generation=0,
        principal=NOBODY,
        peer="192.0.2.1",
        path="files",
        accepts=NOTHING,
        extra_head=b"Vary: Origin\r\n",
    )


@pytest.mark.parametrize(
    ("accept", "json", "stream"),
    [
        (["application/json, text/event-stream"], True, True),
        (["application/json", "text/event-stream"], True, True),
        (["APPLICATION/JSON"], True, False),
        (["text/*"], False, True),
        (["*/*"], True, True),
        (["application/json;q=0, text/event-stream"], False, True),
        (["application/json; q=0.000"], False, False),
        (["application/json; q=0.001"], True, False),
        (["text/html"], False, False),
        ([""], False, False),
        (["*/*," * 300], False, False),
    ],
)
def test_a_client_says_what_it_takes_as_an_answer(accept: list[str], json: bool, stream: bool) -> None:
    assert read_accept({"accept": accept}, otherwise=NOTHING) == Accepts(json=json, stream=stream)


def test_a_client_that_says_nothing_takes_what_is_usual() -> None:
    usual = Accepts(json=True, stream=False)
    assert read_accept({}, otherwise=usual) is usual


@given(st.lists(st.text(), min_size=1))
def test_whatever_an_accept_header_says_it_is_read(values: list[str]) -> None:
    assert isinstance(read_accept({"accept": values}, otherwise=NOTHING), Accepts)


@pytest.mark.parametrize(
    ("types", "is_json"),
    [
        (["application/json"], True),
        (["Application/JSON; charset=UTF-8"], True),
        (['application/json;charset="utf-8"'], True),
        (["application/json; charset=latin-1"], False),
        (["application/jsonp"], False),
        (["application/json", "application/json"], False),
        (["application/json" + " " * 2000], False),
        ([], False),
    ],
)
def test_a_body_is_json_if_its_one_content_type_says_so(types: list[str], is_json: bool) -> None:
    assert has_json({"content-type": types} if types else {}) is is_json


def test_a_session_is_named_once_and_in_a_revision_that_has_sessions() -> None:
    assert read(mcp_session_id=["s1"]).session_id == "s1"
    assert read(mcp_session_id=["s1"], mcp_protocol_version=[LATEST_LEGACY]).session_id == "s1"
    assert read(mcp_session_id=["s1", "s2"]).session_id is None
    assert read(mcp_session_id=["s1"], mcp_protocol_version=[LATEST_MODERN]).session_id is None
    assert read(mcp_session_id=["s1"], mcp_protocol_version=[LATEST_LEGACY, LATEST_LEGACY]).session_id is None
    assert read().session_id is None
    assert read(mcp_session_id=["s1", "s2"]).has_session
    assert not read().has_session


@pytest.mark.parametrize(
    ("spoken", "names_modern"),
    [([], False), ([LATEST_LEGACY], False), ([LATEST_MODERN], True), (["1999-01-01"], True)],
)
def test_a_version_that_is_no_legacy_one_is_for_the_modern_handler(spoken: list[str], names_modern: bool) -> None:
    assert read(mcp_protocol_version=spoken).names_modern is names_modern


def test_a_head_keeps_whose_it_is_and_where_it_goes() -> None:
    head = read()
    assert (head.principal, head.scope, head.extra_head) == (NOBODY, "files", b"Vary: Origin\r\n")
