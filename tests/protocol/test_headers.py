"""Header values survive HTTP whatever they say; mirrored arguments and their headers agree or are refused."""

from __future__ import annotations

import base64
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pactgate.protocol.headers import (
    HeaderParam,
    check_mirror,
    decode_value,
    encode_value,
    header_params,
    mirror,
    without_nulls,
)

texts = st.text(st.characters(codec="utf-8"))
tricky = st.sampled_from(
    ["", " ", "=?base64?", "?=", "=?base64?=", "=?base64??=", "=?base64?YQ==?=", "=?BASE64?YQ==?="]
)


def encoded(text: str) -> str:
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


@given(texts | tricky | st.tuples(tricky, texts, tricky).map("".join))
def test_any_text_survives_as_a_header_value(text: str) -> None:
    value = encode_value(text)
    assert decode_value(value) == text
    assert value.isascii()
    assert all(letter.isprintable() for letter in value)
    assert value == value.strip()


@given(texts | tricky | st.tuples(tricky, texts, tricky).map("".join))
def test_the_official_sdk_reads_what_we_write_and_writes_what_we_read(text: str) -> None:
    from mcp.shared.inbound import decode_header_value, encode_header_value

    assert decode_header_value(encode_value(text)) == text
    assert decode_value(encode_header_value(text)) == text


@pytest.mark.parametrize(
    "text", ["", "lookup", "a b", "=?", "=?base64?YQ==", "YQ==?=", "=?BASE64?YQ==?=", "file:///a?b=c"]
)
def test_plain_texts_are_sent_and_read_as_they_are(text: str) -> None:
    assert encode_value(text) == text
    assert decode_value(text) == text


@pytest.mark.parametrize(
    "text", [" a", "a ", "\t", "a\nb", "a\tb", "\x7f", "é", "日本", "=?base64?YQ==?=", "=?base64??="]
)
def test_texts_that_http_would_change_or_a_reader_misread_are_encoded(text: str) -> None:
    assert encode_value(text) == encoded(text)


@pytest.mark.parametrize(
    "value",
    [
        "=?base64?YQ?=",
        "=?base64?Y===?=",
        "=?base64?YR==?=",
        "=?base64?Y Q==?=",
        "=?base64?YQ==\n?=",
        "=?base64?é?=",
        "=?base64?YQ==YQ==?=",
        "=?base64?/w==?=",
        "=?base64?7aCA?=",
        "é",
        "a\x00",
        "\x7f",
        "a\tb",
    ],
)
def test_a_value_no_sender_could_have_meant_is_none(value: str) -> None:
    assert decode_value(value) is None


def test_an_empty_encoded_value_is_an_empty_text() -> None:
    assert decode_value("=?base64??=") == ""


@given(st.text())
def test_decoding_a_value_never_raises(value: str) -> None:
    decode_value(value)
    decode_value(f"=?base64?{value}?=")


# Annotations in schemas


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def test_annotated_properties_are_found_at_any_depth_of_properties_in_order() -> None:
    annotated = schema(
        tenant={"type": "string", "x-mcp-header": "Tenant"},
        place=schema(zone={"type": "integer", "x-mcp-header": "zone-id"}, other={"type": "string"}),
        dry={"type": "boolean", "x-mcp-header": "Dry"},
    )
    assert header_params(annotated) == (
        HeaderParam("Tenant", ("tenant",)),
        HeaderParam("zone-id", ("place", "zone")),
        HeaderParam("Dry", ("dry",)),
    )


@pytest.mark.parametrize(
    "plain",
    [
        {},
        None,
        True,
        [],
        schema(),
        schema(a=True, b=None),
        schema(**{"x-mcp-header": {"type": "string"}}),
        schema(a={"type": "string", "default": {"x-mcp-header": "A"}, "enum": [{"x-mcp-header": "A"}]}),
        schema(a={"const": {"x-mcp-header": "A"}, "examples": [{"x-mcp-header": "A"}]}),
        {"properties": [{"x-mcp-header": "A"}], "allOf": {"x-mcp-header": "A"}, "$defs": []},
    ],
)
def test_data_and_names_are_not_annotations(plain: Any) -> None:
    assert header_params(plain) == ()


ANNOTATED = {"type": "string", "x-mcp-header": "A"}


@pytest.mark.parametrize(
    "broken",
    [
        ANNOTATED,
        {"type": "object", "x-mcp-header": "A"},
        schema(a=ANNOTATED | {"x-mcp-header": ""}),
        schema(a=ANNOTATED | {"x-mcp-header": "A B"}),
        schema(a=ANNOTATED | {"x-mcp-header": "A\r\nX"}),
        schema(a=ANNOTATED | {"x-mcp-header": "A\n"}),
        schema(a=ANNOTATED | {"x-mcp-header": "é"}),
        schema(a=ANNOTATED | {"x-mcp-header": None}),
        schema(a=ANNOTATED | {"x-mcp-header": 5}),
        schema(a=ANNOTATED | {"type": "number"}),
        schema(a=ANNOTATED | {"type": "object"}),
        schema(a=ANNOTATED | {"type": ["string", "null"]}),
        schema(a={"x-mcp-header": "A"}),
        schema(a=ANNOTATED, b=ANNOTATED | {"x-mcp-header": "a"}),
        schema(a=ANNOTATED, b=schema(c=ANNOTATED)),
        schema(a={"type": "array", "items": ANNOTATED}),
        schema(a={"type": "array", "items": [ANNOTATED]}),
        schema(a={"type": "array", "prefixItems": [ANNOTATED]}),
        schema(a={"anyOf": [ANNOTATED]}),
        schema(a={"items": schema(b=ANNOTATED)}),
        {"allOf": [schema(a=ANNOTATED)]},
        {"$defs": {"a": ANNOTATED}},
        {"patternProperties": {"^a": ANNOTATED}},
        {"if": ANNOTATED},
        {"not": schema(a=ANNOTATED)},
        {"additionalProperties": ANNOTATED},
    ],
)
def test_an_annotation_against_the_rules_says_why(broken: Any) -> None:
    assert isinstance(header_params(broken), str)


def test_a_schema_of_any_depth_is_walked() -> None:
    deep: dict[str, Any] = ANNOTATED
    for _ in range(5000):
        deep = schema(a=deep)
    found = header_params(deep)
    assert isinstance(found, tuple)
    assert len(found[0].path) == 5000


keywords = st.sampled_from(["properties", "items", "allOf", "$defs", "type", "x-mcp-header", "default", "not", "a"])
words = st.sampled_from(["string", "integer", "number", "A", "a", "B", "no token", ""])
schemas = st.recursive(
    words | st.none() | st.integers(),
    lambda inner: st.dictionaries(keywords, inner, max_size=4) | st.lists(inner, max_size=3),
    max_leaves=25,
)


@given(schemas)
def test_we_refuse_the_schemas_the_official_sdk_refuses(input_schema: Any) -> None:
    from mcp.shared.inbound import find_invalid_x_mcp_header, x_mcp_header_map

    ours = header_params(input_schema)
    if find_invalid_x_mcp_header(input_schema) is not None:
        assert isinstance(ours, str)
    elif isinstance(ours, tuple):
        assert {param.path: param.header for param in ours} == x_mcp_header_map(input_schema)
    else:
        assert "no chain of properties" in ours  # the older array form of `items`, which the SDK does not enter


# Arguments in headers

PARAMS = (HeaderParam("Tenant", ("tenant",)), HeaderParam("Zone", ("place", "zone")))


def received(*headers: tuple[str, str]) -> dict[str, list[str]]:
    collected: dict[str, list[str]] = {"accept": ["*/*"]}
    for name, value in headers:
        collected.setdefault(name.lower(), []).append(value)
    return collected


@pytest.mark.parametrize(
    ("tenant", "value"),
    [
        ("t1", "t1"),
        ("", ""),
        ("Zoë", encoded("Zoë")),
        (True, "true"),
        (False, "false"),
        (42, "42"),
        (-7, "-7"),
        (2**64, "18446744073709551616"),
        (42.0, "42"),
        (1.5, "1.5"),
    ],
)
def test_a_present_argument_is_mirrored(tenant: Any, value: str) -> None:
    headers = mirror(PARAMS, {"tenant": tenant})
    assert headers == (("Mcp-Param-Tenant", value),)
    assert check_mirror(PARAMS, {"tenant": tenant}, received(*headers)) is None


def test_a_nested_argument_is_mirrored_from_its_place() -> None:
    arguments = {"place": {"zone": 3}, "tenant": "t"}
    assert mirror(PARAMS, arguments) == (("Mcp-Param-Tenant", "t"), ("Mcp-Param-Zone", "3"))


@pytest.mark.parametrize(
    "arguments",
    [
        None,
        {},
        [],
        "text",
        {"tenant": None},
        {"tenant": []},
        {"tenant": {}},
        {"tenant": Decimal("1e400")},
        {"place": 1},
    ],
)
def test_what_is_absent_or_no_scalar_has_no_header_and_needs_none(arguments: Any) -> None:
    assert mirror(PARAMS, arguments) == ()
    assert check_mirror(PARAMS, arguments, received()) is None
    assert check_mirror(PARAMS, arguments, received(("Mcp-Param-Tenant", "t"))) is not None


@pytest.mark.parametrize(
    ("tenant", "value"),
    [("t1", encoded("t1")), (42, "42.0"), (42, "042"), (-42, "-42.00"), (42.0, "42"), (0, "-0")],
)
def test_another_spelling_of_the_same_value_agrees(tenant: Any, value: str) -> None:
    assert check_mirror(PARAMS, {"tenant": tenant}, received(("Mcp-Param-Tenant", value))) is None


@pytest.mark.parametrize(
    ("tenant", "value"),
    [
        ("t1", "T1"),
        ("t1", ""),
        ("42", "42.0"),
        ("t1", "=?base64?dDE?="),
        (True, "True"),
        (True, "1"),
        (1, "true"),
        (42, "43"),
        (42, "42.5"),
        (42, "4.2e1"),
        (42, "+42"),
        (42, "\u0664\u0662"),
        (42, "4" * 5000),
        (1.5, "1.50"),
    ],
)
def test_a_header_that_says_something_else_is_refused(tenant: Any, value: str) -> None:
    assert check_mirror(PARAMS, {"tenant": tenant}, received(("Mcp-Param-Tenant", value))) is not None


def test_a_missing_or_doubled_header_is_refused_and_a_foreign_one_ignored() -> None:
    good = ("Mcp-Param-Tenant", "t")
    assert check_mirror(PARAMS, {"tenant": "t"}, received()) is not None
    assert check_mirror(PARAMS, {"tenant": "t"}, received(good, good)) is not None
    assert check_mirror(PARAMS, {"tenant": "t"}, received(good, ("Mcp-Param-Other", "x"))) is None
    assert check_mirror((), {"tenant": "t"}, received(good)) is None


scalars = texts | st.booleans() | st.integers() | st.floats() | st.none()


@given(scalars, scalars)
def test_what_is_mirrored_always_agrees(tenant: Any, zone: Any) -> None:
    arguments = {"tenant": tenant, "place": {"zone": zone}}
    assert check_mirror(PARAMS, arguments, received(*mirror(PARAMS, arguments))) is None


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"a": None, "b": None}, {"b": None}),
        ({"a": 0, "deep": {"c": None, "d": None}}, {"a": 0, "deep": {"d": None}}),
        ({"a": {"x": None}, "deep": None}, {"a": {"x": None}, "deep": None}),
        ({"deep": [None]}, {"deep": [None]}),
        ([], []),
    ],
)
def test_an_annotated_argument_that_is_null_counts_as_absent(arguments: Any, expected: Any) -> None:
    params = (HeaderParam("A", ("a",)), HeaderParam("C", ("deep", "c")))
    before = repr(arguments)
    assert without_nulls(params, arguments) == expected
    assert repr(arguments) == before
