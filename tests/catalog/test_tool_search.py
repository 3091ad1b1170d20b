"""The right tool is found by a user's words, the same for the same tools, in whatever words a definition has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.catalog.tool_search import ToolSearch, stem, terms_of
from pactgate.core.values import Tool
from pactgate.protocol.messages import encode_json
from tests.support.retrieval import FOLDER, measure, questions, real_tools


def tool(name: str, description: str = "", **schema: object) -> Tool:
    data = encode_json({"name": f"s__{name}", "description": description, "inputSchema": schema})
    return Tool("s", name, f"s.{name}", f"s__{name}", b"{}", data, "")


def found(tools: list[Tool], query: str) -> list[str]:
    return [one.name for one in ToolSearch(tools).find(query)]


def test_the_right_tool_is_first_for_60_and_among_five_for_90_of_100_questions() -> None:
    """On definitions of real servers; and on questions that were written after the ranking was settled."""
    for file in ("questions.txt", "held_out.txt"):
        result = measure(file)
        assert result.tools >= 250
        assert result.first >= 60, file
        assert result.first_five >= 90, file
    assert measure().questions >= 150


def test_every_question_asks_for_tools_that_there_are() -> None:
    names = {one.full_name for one in real_tools()}
    for file in sorted(FOLDER.glob("*.txt")):
        for question in questions(file.name):
            assert question.answers
            assert question.answers <= names, question


def test_names_count_more_than_descriptions_and_these_more_than_arguments() -> None:
    tools = [
        tool("one", properties={"invoice": {"description": "x"}}),
        tool("two", "An invoice."),
        tool("invoice"),
        tool("three", properties={"kind": {"enum": ["invoice"]}}),
        tool("other"),
    ]
    assert found(tools, "invoice") == ["invoice", "two", "one", "three"]


def test_ties_keep_the_order_of_the_list() -> None:
    tools = [tool(f"t{number}", "Same words.") for number in range(20)]
    assert found(tools, "same words") == [one.name for one in tools]
    assert found(tools[::-1], "same words") == [one.name for one in tools[::-1]]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("createPullRequest", ["creat", "pull", "request"]),
        ("get_HTTPStatus2", ["get", "http", "statu", "2"]),
        ("the branches of a repository", ["branch", "repository"]),
        ("Größe", ["gr", "öß"]),
        ("", []),
    ],
)
def test_names_and_sentences_are_split_into_words(text: str, terms: list[str]) -> None:
    assert [term for term in terms_of(text) if len(term) > 1 or term.isdigit()] == terms


@pytest.mark.parametrize(
    "words",
    [
        ("create", "creates", "creating", "created"),
        ("run", "running", "runs"),
        ("branch", "branches"),
        ("entry", "entries"),
    ],
)
def test_forms_of_a_word_are_one(words: tuple[str, ...]) -> None:
    assert len(set(map(stem, words))) == 1


@given(st.text(max_size=40), st.lists(st.text(max_size=20), max_size=5))
def test_any_query_is_survived_and_finds_tools_of_the_list_only(query: str, descriptions: list[str]) -> None:
    tools = [tool(f"t{at}", text) for at, text in enumerate(descriptions)]
    first = found(tools, query)
    assert len(set(first)) == len(first)
    assert set(first) <= {one.name for one in tools}
    assert found(tools, query) == first


def test_definitions_of_any_shape_are_survived() -> None:
    odd = [tool("a", properties=[1]), tool("b", properties={"x": True, "y": {"enum": "z", "description": 5}})]
    assert found(odd, "y") == ["b"]
