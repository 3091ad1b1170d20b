"""URIs find the resource or the template that serves them."""

from __future__ import annotations

import pytest

from pactgate.runner.uri_template import find_by_uri

RESOURCES = {"notes://all": "all"}
TEMPLATES = {"notes://{number}": "one", "notes://{number}/{part}.txt": "part"}


@pytest.mark.parametrize(
    ("uri", "found"),
    [
        ("notes://all", ("all", {})),
        ("notes://7", ("one", {"number": "7"})),
        ("notes://7/a%20b.txt", ("part", {"number": "7", "part": "a b"})),
        ("notes://7/a/b.txt", None),
        ("notes://", None),
        ("notes://7/axtxt", None),
    ],
)
def test_a_variable_is_one_part_of_the_path(uri: str, found: object) -> None:
    assert find_by_uri(uri, RESOURCES, TEMPLATES) == found


@pytest.mark.parametrize("part", ["..", ".", "..%2F..%2Fetc%2Fpasswd", "%2e%2e", "a%2Fb", "a%00b"])
def test_a_value_is_one_part_of_the_path_however_it_is_written(part: str) -> None:
    assert find_by_uri(f"notes://{part}", {}, {"notes://{name}": "offer"}) is None
