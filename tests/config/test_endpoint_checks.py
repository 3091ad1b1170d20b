"""Endpoints beside each other and within themselves: everything that is wrong is said before the start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pactgate.config.endpoint_checks import arguments_of, spreads
from tests.config.sections.test_rest import api
from tests.config.writing import loaded, problems
from tests.support.rest_api import GET_ITEM

TEXT = {"type": "string"}


def parameter(**settings: Any) -> dict[str, Any]:
    return {"name": "q", "in": "query", "schema": TEXT} | settings


def said(tmp_path: Path, *endpoints: dict[str, Any], **settings: Any) -> list[str]:
    found = problems(tmp_path, api(endpoints=[GET_ITEM | one for one in endpoints], **settings))
    assert all(problem.hint for problem in found)
    return [f"{problem.path.removeprefix('mcpServers.shop.')}: {problem.message}" for problem in found]


@pytest.mark.requirement("S4/R2")
def test_two_endpoints_with_one_name_are_refused(tmp_path: Path) -> None:
    assert said(tmp_path, {}, {}) == ['endpoints[1]: There are two endpoints "get_item".']


@pytest.mark.requirement("S4/UNDECIDED-2")
def test_path_and_path_parameters_belong_together(tmp_path: Path) -> None:
    assert said(tmp_path, {"path": "/items/{number}"}) == [
        'endpoints[0].path: There is no path parameter "number".',
        "endpoints[0].path: The path has no {id}.",
    ]
    assert said(tmp_path, {"path": "/x", "parameters": [parameter(**{"in": "path"})]}) == [
        "endpoints[0].path: The path has no {q}.",
        'endpoints[0].parameters[0]: The path parameter "q" is not required.',
    ]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (parameter(style="matrix"), "The style matrix does not exist in the query."),
        (parameter(**{"in": "body"}, style="form"), "The style form does not exist in the body."),
        (
            parameter(name="Authorization", **{"in": "header"}),
            'The header "Authorization" can\'t be an argument.',
        ),
        (parameter(name="x-key", **{"in": "header"}), 'The header "x-key" can\'t be an argument.'),
        (parameter(name="Accept", **{"in": "header"}), 'The header "Accept" is written by the gateway itself.'),
        (parameter(name="Host", **{"in": "header"}), 'The header "Host" is written by the gateway itself.'),
        (parameter(name="a b", **{"in": "header"}), '"a b" can\'t be the name of a header.'),
    ],
)
def test_a_parameter_stands_where_it_can(settings: dict[str, Any], message: str, tmp_path: Path) -> None:
    found = said(tmp_path, {"path": "/x", "parameters": [settings]}, headers={"X-Key": "abcdefgh"})
    assert found == [f"endpoints[0].parameters[0]: {message}"]


def test_two_arguments_of_one_name_need_another_one(tmp_path: Path) -> None:
    body = {"schema": {"type": "object", "properties": {"id": TEXT}}}
    assert said(tmp_path, {"body": body}) == ['endpoints[0]: Two arguments are called "id".']
    twice = [*GET_ITEM["parameters"], parameter(name="id", argument="id_in_query")]
    assert loaded(tmp_path, api(endpoints=[GET_ITEM | {"parameters": twice}])).servers["shop"].endpoints


def test_a_body_is_given_once_and_responses_fit_their_kind(tmp_path: Path) -> None:
    parts = {"path": "/x", "parameters": [parameter(**{"in": "body"})], "body": {}}
    assert said(tmp_path, parts) == ["endpoints[0].body: There are a body and parameters in the body."]
    assert said(tmp_path, {"method": "HEAD"}) == ["endpoints[0].response: A response to HEAD has no content."]
    odd = {"response": "text", "outputSchema": {"type": "object"}, "expect": {"required": ["a"]}}
    assert [line.partition(":")[0] for line in said(tmp_path, odd)] == [
        "endpoints[0].outputSchema",
        "endpoints[0].expect",
    ]


@pytest.mark.requirement("S4/UNDECIDED-2")
@pytest.mark.parametrize(
    ("settings", "place"),
    [
        ({"parameters": [GET_ITEM["parameters"][0] | {"schema": {"type": "txt"}}]}, "parameters[0].schema"),
        ({"body": {"schema": {"minimum": "x"}}}, "body.schema"),
        ({"outputSchema": {"type": 5}}, "outputSchema"),
    ],
)
def test_a_schema_that_is_none_stops_the_start(settings: dict[str, Any], place: str, tmp_path: Path) -> None:
    assert said(tmp_path, settings) == [f"endpoints[0].{place}: This is not a valid JSON Schema."]


def test_examples_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    assert said(tmp_path, {"examples": [{}, {"id": "1", "x": 1}]}) == [
        "endpoints[0].examples[0]: This example lacks id.",
        "endpoints[0].examples[1]: This example has x, an unknown argument.",
    ]


def test_an_endpoint_needs_a_base_url_of_its_own_or_its_servers(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, {"mcpServers": {"shop": {"endpoints": [GET_ITEM]}}})
    assert "baseUrl" in problem.message
    own = {"mcpServers": {"shop": {"endpoints": [GET_ITEM | {"baseUrl": "https://x.example"}]}}}
    assert loaded(tmp_path, own).servers["shop"].base_url is None


def test_which_bodies_can_be_spread() -> None:
    assert spreads({"type": "object", "properties": {"a": {}}})
    assert not spreads({"type": "object", "properties": {"a": {}}, "anyOf": []})
    assert list(arguments_of({"body": {"schema": {"type": "array"}}})) == ["body"]
    assert list(arguments_of({"body": {"argument": "all"}})) == ["all"]
