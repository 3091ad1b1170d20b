"""References: inside the document, to files beside it, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest

from pactgate.upstreams.openapi import references as reference_module
from pactgate.upstreams.openapi.document_text import DocumentError, UnreadableDocumentError
from pactgate.upstreams.openapi.references import DocumentNode, References

ROOT: dict[str, Any] = {
    "a/b": {"~": 1},
    "list": [{"x": 2}],
    "one": {"$ref": "#/two"},
    "two": {"$ref": "parts/p.yaml#/three"},
    "loop": {"$ref": "#/loop"},
}
FILES: dict[str, Any] = {
    "parts/p.yaml": {"three": {"$ref": "q.yaml#"}, "back": {"$ref": "../top.yaml#/k"}},
    "parts/q.yaml": {"end": True},
    "top.yaml": {"k": {"here": 1}},
}


def reader(name: str) -> Any:
    if name not in FILES:
        raise UnreadableDocumentError("can't be read: No such file or directory")
    return FILES[name]


def test_a_reference_is_followed_through_files_from_where_it_stands() -> None:
    references = References(ROOT, reader)
    assert references.follow(DocumentNode({"$ref": "#/one"})) == DocumentNode({"end": True}, "parts/q.yaml")
    assert references.follow(DocumentNode({"$ref": "parts/p.yaml#/back"})) == DocumentNode({"here": 1}, "top.yaml")


def test_a_value_without_a_reference_is_itself() -> None:
    assert References(ROOT).follow(DocumentNode({"$ref": 7}, "f")) == DocumentNode({"$ref": 7}, "f")


def test_pointers_are_unescaped_and_lead_into_lists() -> None:
    references = References(ROOT)
    assert references.locate("#/a~1b/~0", "")[1].value == 1
    assert references.locate("#/a%7E1b", "")[1].value == {"~": 1}
    assert references.locate("#/list/0/x", "")[1].value == 2
    assert references.locate("#", "")[1].value is ROOT


def test_all_spellings_of_a_place_have_one_key() -> None:
    references = References(ROOT, reader)
    keys = {references.locate(text, "")[0] for text in ("parts/q.yaml#/end", "./parts/../parts/q.yaml#/end")}
    keys.add(references.locate("q.yaml#/end", "parts/p.yaml")[0])
    assert keys == {"parts/q.yaml#/end"}


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ("https://evil.example/x.yaml#/a", "nothing is fetched"),
        ("//evil.example/x.yaml", "nothing is fetched"),
        ("file:///etc/passwd", "nothing is fetched"),
        ("/etc/passwd", "nothing is fetched"),
        ("..\\secret.yaml", "nothing is fetched"),
        ("a\x00b.yaml", "nothing is fetched"),
        ("../secret.yaml", "out of the document's folder"),
        ("parts/../../secret.yaml", "out of the document's folder"),
        ("%2e%2e/secret.yaml", "out of the document's folder"),
        ("missing.yaml#/a", "missing.yaml, which it refers to, can't be read"),
        ("#/nowhere", "leads nowhere"),
        ("#/list/9", "leads nowhere"),
        ("#/list/-1", "leads nowhere"),
        ("#/list/²", "leads nowhere"),
        ("#anchor", "is not a JSON Pointer"),
        ("#/loop", "refers to itself"),
    ],
)
def test_what_leads_nowhere_or_elsewhere_says_so(reference: str, why: str) -> None:
    with pytest.raises(DocumentError, match=why):
        References(ROOT, reader).follow(DocumentNode({"$ref": reference}))


def test_a_document_from_a_url_has_no_files_beside_it() -> None:
    with pytest.raises(DocumentError, match="another document, and nothing is fetched"):
        References(ROOT).follow(DocumentNode({"$ref": "parts/p.yaml"}))


def test_files_are_read_once_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def counted(name: str) -> Any:
        read.append(name)
        return {}

    references = References({}, counted)
    for name in ("a", "a", "b"):
        references.locate(f"{name}.yaml", "")
    assert read == ["a.yaml", "b.yaml"]
    monkeypatch.setattr(reference_module, "MAX_FILES", 2)
    with pytest.raises(DocumentError, match="more than 2 files"):
        references.locate("c.yaml", "")


def test_a_spot_looks_inside_without_stumbling() -> None:
    spot = DocumentNode({"a": {"b": [1, "x"]}, "t": "text", "yes": True})
    assert spot.inside("a", "b").value == [1, "x"]
    assert spot.inside("a", "b", "c", "d").value is None
    assert [one.value for one in spot.inside("a", "b").items()] == [1, "x"]
    assert spot.inside("t").items() == []
    assert (spot.text("t"), spot.text("yes"), spot.is_set("yes"), spot.is_set("t")) == ("text", None, True, False)
