"""The text of a document: JSON and YAML give the same values, and no text can hurt."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.upstreams.openapi import document_text
from pactgate.upstreams.openapi.document_text import MAX_DEPTH, UnreadableDocumentError, read_text


@pytest.mark.parametrize("text", ['{"a": [1, "x", null, true, 2.5]}', "a:\n- 1\n- x\n- null\n- true\n- 2.5\n"])
def test_json_and_yaml_say_the_same(text: str) -> None:
    assert read_text(text.encode()) == {"a": [1, "x", None, True, 2.5]}


def test_a_byte_order_mark_and_leading_lines_are_fine() -> None:
    assert read_text("\ufeff \n{}".encode()) == {}
    assert read_text("\ufeff# a comment\n---\na: b\n".encode()) == {"a": "b"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("1:30", "1:30"),
        ("2020-01-02", "2020-01-02"),
        ("'200'", "200"),
        ("0x1f", 31),
        ("0o17", 15),
        ("017", 17),
        ("+1", 1),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("1e9999", "1e9999"),
        ("~", None),
        ("!!binary abcd", "abcd"),
        ("!ruby/object:X {}", {}),
    ],
)
def test_plain_words_of_yaml_mean_what_yaml_1_2_says_and_tags_make_nothing(text: str, value: Any) -> None:
    assert read_text(f"a: {text}\n".encode()) == {"a": value}


def test_keys_are_strings_whatever_they_look_like() -> None:
    assert read_text(b"200: a\ntrue: b\n1.0: c\n") == {"200": "a", "true": "b", "1.0": "c"}


def test_an_alias_is_the_value_itself_and_merge_keys_fill_in_what_is_missing() -> None:
    read = read_text(b"base: &b {a: 1, b: 2}\nuse: *b\nmore: {<<: *b, b: 3}\nmost: {<<: [*b, {c: 4}]}\n")
    assert read["use"] is read["base"]
    assert read["more"] == {"a": 1, "b": 3}
    assert read["most"] == {"a": 1, "b": 2, "c": 4}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"\xff\xfe{}", "is not UTF-8 text"),
        (b'{"a":', "is not JSON"),
        (b"[" * 100_000, "is nested too deep"),
        (b"a: [1,\n", "is not YAML"),
        (b"a: \x01", "character is not allowed"),
        (b"a: 1\n---\nb: 2\n", "several YAML documents"),
        (b"a: &a [*a]\n", "alias"),
        (b"a: *nobody\n", "alias"),
        (b"{1: 2}", "is not JSON"),
        (b"? [a]\n: b\n", "key must be a string"),
        (b"x: &k [1]\n*k : 1\n", "key must be a string"),
        (b"- " * (MAX_DEPTH + 1) + b"x", "nested more than"),
        (b'a: "\\ud800"\n', "surrogate|invalid Unicode"),
        (b"a:\n  b: 1\n  b: 2\n", "in line 3: The key .*b.* is given twice \\(first in line 2\\)"),
        (b"<!doctype html><html></html>", "is a web page"),
    ],
)
def test_what_cant_be_read_says_why(data: bytes, why: str) -> None:
    with pytest.raises(UnreadableDocumentError, match=why):
        read_text(data)


def test_a_text_of_aliases_cant_multiply_itself() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    with pytest.raises(UnreadableDocumentError, match="those of aliases included"):
        read_text("\n".join(lines).encode())


def test_a_document_is_bounded_in_bytes_and_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_text, "MAX_VALUES", 10)
    with pytest.raises(UnreadableDocumentError, match="more than 10 values"):
        read_text(b"a: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]")
    monkeypatch.setattr(document_text, "MAX_DOCUMENT_BYTES", 1024 * 1024)
    with pytest.raises(UnreadableDocumentError, match="more than 1 MiB"):
        read_text(b" " * (1024 * 1024 + 1))


_text = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S")), max_size=6).filter("<<".__ne__)
_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | _text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_text, inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(_text, _values, max_size=3))
def test_what_json_writes_yaml_reads_alike(value: dict[str, Any]) -> None:
    text = json.dumps(value, ensure_ascii=False).encode()
    assert read_text(b"# as YAML\n" + text) == value == read_text(text)


@given(st.binary(max_size=200) | st.text("{}[]&*!|>-:,'\"\\#%@ \nab<?~0x", max_size=60).map(str.encode))
def test_no_text_does_anything_but_read_or_say_why_not(data: bytes) -> None:
    with suppress(UnreadableDocumentError):
        read_text(data)
