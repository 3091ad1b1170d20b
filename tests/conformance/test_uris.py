"""What a resource lies inside of."""

from __future__ import annotations

from pactgate.conformance.uris import around


def test_a_resource_lies_in_itself_and_in_what_encloses_it() -> None:
    enclosing = set(around("file:///a/b?c#d"))
    assert {"file:///a/b?c#d", "file:///a/b?c", "file:///a/b", "file:///a", "file:///a/"} <= enclosing
    assert "file:///a/bb" not in enclosing
    assert "" not in enclosing


def test_a_name_that_only_begins_alike_is_another_resource() -> None:
    assert "file:///a" not in set(around("file:///ab"))


def test_an_endless_uri_is_only_itself() -> None:
    uri = "a:" + "/" * 10_000
    assert list(around(uri)) == [uri]
