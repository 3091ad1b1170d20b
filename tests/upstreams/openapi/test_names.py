"""Names of operations and arguments: legal, readable, and the same in every order."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.catalog.index import exposed_name
from pactgate.upstreams.openapi.names import (
    OperationKey,
    argument_names,
    assign_names,
    definition_names,
    is_legal_argument,
    limit_for,
)


def names(*subjects: OperationKey, limit: int = 64) -> list[str]:
    found = assign_names(subjects, limit)
    return [found[subject] for subject in subjects]


@pytest.mark.parametrize(
    ("operation_id", "name"),
    [
        ("listPets", "listPets"),
        ("repos/list-for-org", "repos_list-for-org"),
        ("Pets.list all!", "Pets_list_all"),
        ("read_items__id__get", "read_items__id__get"),
        ("créer_été", "creer_ete"),
        ("_private_", "private"),
    ],
)
def test_an_operation_is_called_by_its_id(operation_id: str, name: str) -> None:
    assert names(OperationKey("GET", "/x", operation_id)) == [name]


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("GET", "/users", "get_users"),
        ("GET", "/users/{id}", "get_users_by_id"),
        ("POST", "/orgs/{org}/repos", "post_orgs_repos"),
        ("GET", "/", "get"),
        ("DELETE", "/a/{x}-{y}", "delete_a_by_x_y"),
        ("GET", "/v1.2/weather:now", "get_v1_2_weather_now"),
        ("GET", "/文/{id}", "get_by_id"),
    ],
)
def test_without_an_id_it_is_called_by_method_and_path(method: str, path: str, name: str) -> None:
    assert names(OperationKey(method, path)) == [name]
    assert names(OperationKey(method, path, "获取")) == [name]


def test_where_several_would_have_one_name_all_of_them_take_a_longer_one() -> None:
    one, other, third = (
        OperationKey("GET", "/a", "get"),
        OperationKey("GET", "/b", "get"),
        OperationKey("GET", "/c", "Get"),
    )
    assert names(one, other, third) == ["get_a", "get_b", "get_c"]
    first, second = names(OperationKey("GET", "/orgs/{o}/x"), OperationKey("GET", "/orgs/x"))
    assert (first, second) == ("get_orgs_by_o_x", "get_orgs_x")


def test_a_name_somebody_else_has_is_not_taken_over() -> None:
    one, other, owner = (
        OperationKey("GET", "/a", "get"),
        OperationKey("GET", "/b", "get"),
        OperationKey("PUT", "/c", "get_a"),
    )
    first, second, third = names(one, other, owner)
    assert (second, third) == ("get_b", "get_a")
    assert first not in ("get_a", "get_b")
    assert re.fullmatch(r"get_a.*", first)


def test_a_long_name_is_cut_with_a_mark_of_its_own() -> None:
    long = "a" * 80
    first, second = names(OperationKey("GET", "/a", long + "1"), OperationKey("GET", "/b", long + "2"))
    assert len(first) == len(second) == 64
    assert first != second
    assert first == names(OperationKey("GET", "/a", long + "1"))[0]


@pytest.mark.parametrize("server", ["a", "github", "a" * 38])
def test_a_name_of_full_length_needs_no_cutting_when_it_is_exposed(server: str) -> None:
    (name,) = names(OperationKey("GET", "/a", "x" * 100), limit=limit_for(server))
    assert exposed_name(server, name, "__") == f"{server}__{name}"


_words = st.text("aAbB_/{}-. é文", max_size=12)
_subjects = st.lists(
    st.builds(OperationKey, st.sampled_from(["GET", "POST"]), _words.map("/".__add__), st.none() | _words),
    max_size=12,
    unique_by=lambda subject: (subject.method, subject.path),
)


@given(_subjects, st.randoms(use_true_random=False), st.integers(24, 64))
def test_names_are_legal_unique_and_the_same_in_every_order(
    subjects: list[OperationKey], random: st.DataObject, limit: int
) -> None:
    before = assign_names(subjects, limit)
    assert all(re.fullmatch(rf"[A-Za-z0-9_-]{{1,{limit}}}", name) for name in before.values())
    assert len({name.casefold() for name in before.values()}) == len(subjects)
    shuffled = list(subjects)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert assign_names(shuffled, limit) == before


def test_arguments_keep_their_names_unless_they_are_illegal_or_taken() -> None:
    wire = [("header", "id"), ("query", "id"), ("path", "id"), ("query", "filter[name]"), ("query", "$top")]
    assert argument_names(wire) == {
        ("path", "id"): "id",
        ("query", "id"): "query_id",
        ("header", "id"): "header_id",
        ("query", "filter[name]"): "filter_name",
        ("query", "$top"): "top",
    }


@given(st.lists(st.tuples(st.sampled_from(["path", "query", "header"]), st.text(max_size=80)), max_size=10))
def test_arguments_are_always_legal_and_different(wire: list[tuple[str, str]]) -> None:
    found = argument_names(wire)
    assert set(found) == set(wire)
    assert all(map(is_legal_argument, found.values()))
    assert len({name.casefold() for name in found.values()}) == len(found)


def test_definitions_of_one_name_are_told_apart_by_where_they_stand() -> None:
    found = definition_names({"#/a/Pet": "Pet", "b.yaml#/a/Pet": "Pet", "#/a/List<Pet>": "List<Pet>"})
    assert found["#/a/List<Pet>"] == "List_Pet"
    assert len(set(found.values())) == 3
