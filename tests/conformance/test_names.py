"""Which names carry a server's."""

from __future__ import annotations

import pytest

from pactgate.conformance.names import is_prefixed


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("files__read", True),
        ("my-files__read__all", True),
        ("files.read", True),
        ("read", False),
        ("read_file", False),
        ("__read", False),
        ("read__", False),
        (".read", False),
        ("read.", False),
        ("", False),
    ],
)
def test_a_prefix_is_a_server_and_one_of_two_separators(name: str, expected: bool) -> None:
    assert is_prefixed(name) is expected
