"""Schemas of tools: what fits, and what is said about what doesn't."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any, ClassVar

import jsonschema
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from pactgate.policy.schema import validation
from pactgate.policy.schema.findings import SchemaError
from pactgate.policy.schema.validation import MAX_ERRORS, MAX_SCHEMA_BYTES, MAX_SCHEMA_DEPTH, Schema, compile_schema
from pactgate.protocol import messages
from tests.policy.schema_making import SCHEMAS, VALUES

READ: dict[str, Any] = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "limit": {"type": "integer", "minimum": 1, "default": 10}},
    "required": ["path"],
}
DRAFT_7 = "http://json-schema.org/draft-07/schema#"


def compiled(schema: Any) -> Schema:
    found = compile_schema(json.dumps(schema).encode())
    assert isinstance(found, Schema), found
    return found


def refused(schema: Any) -> str:
    found = compile_schema(schema if isinstance(schema, bytes) else json.dumps(schema).encode())
    assert isinstance(found, str)
    return found


def wrong(schema: Any, value: Any) -> list[tuple[str, str]]:
    """What is wrong, as keyword and pointer."""
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return [(error.keyword, error.pointer) for error in compiled(schema).check(text)]


def nested(levels: int, inside: Any, key: str = "a") -> Any:
    for _ in range(levels):
        inside = {key: inside}
    return inside


@pytest.mark.requirement("S0/ECO-300")
class TestArguments:
    def test_arguments_that_fit_have_no_errors(self) -> None:
        assert wrong(READ, {"path": "/tmp/x", "limit": 5}) == []

    def test_a_missing_argument_is_named(self) -> None:
        assert compiled(READ).check(b'{"limit":5}') == (SchemaError("", "", 'missing member "path"', "required"),)

    def test_an_argument_of_the_wrong_type_is_named(self) -> None:
        assert compiled(READ).check(b'{"path":5}') == (SchemaError("/path", "path", "path must be a string", "type"),)

    def test_extra_arguments_pass_unless_the_schema_closes_itself(self) -> None:
        extra = {"path": "x", "more": 1}
        assert wrong(READ, extra) == []
        assert wrong({**READ, "additionalProperties": False}, extra) == [("additionalProperties", "/more")]
        assert wrong({**READ, "additionalProperties": {"type": "string"}}, extra) == [("type", "/more")]
        (error,) = wrong({**READ, "unevaluatedProperties": False}, extra)
        assert error[0] == "unevaluatedProperties"

    @pytest.mark.parametrize(
        ("kind", "value"),
        [
            ("integer", "5"),
            ("integer", True),
            ("integer", 5.5),
            ("integer", None),
            ("number", "5"),
            ("number", False),
            ("string", 5),
            ("boolean", 1),
            ("boolean", "true"),
            ("array", {}),
            ("array", "a,b"),
            ("object", []),
            ("null", ""),
        ],
    )
    def test_nothing_is_coerced(self, kind: str, value: Any) -> None:
        assert wrong({"properties": {"a": {"type": kind}}}, {"a": value}) == [("type", "/a")]

    def test_true_is_not_one_and_false_is_not_zero(self) -> None:
        assert wrong({"properties": {"a": {"const": 1}}}, {"a": True}) == [("const", "/a")]
        assert wrong({"properties": {"a": {"enum": [0, 2]}}}, {"a": False}) == [("enum", "/a")]

    @pytest.mark.parametrize("number", ["1.0", "1e3", "1E+2", "-0.0", "18446744073709551616", "1e400", "9" * 350])
    def test_a_number_without_fraction_is_a_whole_number(self, number: str) -> None:
        assert wrong({"items": {"type": "integer"}}, f"[{number}]".encode()) == []

    def test_large_numbers_are_exact(self) -> None:
        for bound in (2**53, 2**64, 10**60):
            assert wrong({"items": {"maximum": bound}}, [bound]) == []
            assert wrong({"items": {"maximum": bound}}, [bound + 1]) == [("maximum", "/0")]
            assert wrong({"items": {"const": bound}}, [bound + 1]) == [("const", "/0")]

    def test_no_default_is_filled_in_and_nothing_is_changed(self) -> None:
        schema = compiled({**READ, "required": ["path", "limit"]})
        value = {"path": "x"}
        assert [error.keyword for error in schema.check(b'{"path":"x"}', value)] == ["required"]
        assert value == {"path": "x"}

    @pytest.mark.parametrize("form", ["email", "date-time", "uri", "uuid", "regex", "ipv4", "made-up"])
    @pytest.mark.parametrize("dialect", [None, DRAFT_7, "https://json-schema.org/draft/2019-09/schema"])
    def test_a_format_is_only_a_remark(self, form: str, dialect: str | None) -> None:
        schema = {"$schema": dialect, "items": {"format": form}} if dialect else {"items": {"format": form}}
        assert wrong(schema, ["[not that"]) == []

    def test_encodings_of_content_are_only_remarks(self) -> None:
        schema = {"$schema": DRAFT_7, "items": {"contentEncoding": "base64", "contentMediaType": "application/json"}}
        assert wrong(schema, ["###"]) == []

    def test_references_and_choices_work(self) -> None:
        schema = {
            "properties": {"at": {"$ref": "#/$defs/place"}, "size": {"oneOf": [{"minimum": 5}, {"maximum": 2}]}},
            "$defs": {"place": {"type": "object", "required": ["x"], "properties": {"x": {"$ref": "#/$defs/n"}}}, "n": {"type": "number"}},
        }  # fmt: skip
        assert wrong(schema, {"at": {"x": 1.5}, "size": 1}) == []
        assert wrong(schema, {"at": {"x": "1.5"}, "size": 3}) == [("type", "/at/x"), ("oneOf", "/size")]

    def test_references_need_not_be_escaped(self) -> None:
        for name in ("List<Item>", "a b", "[]", "é", "x%y"):
            reference = f"#/definitions/{name.replace('%', '%25')}"
            assert wrong({"items": {"$ref": reference}, "definitions": {name: {"type": "null"}}}, [5]) == [
                ("type", "/0")
            ]

    @pytest.mark.parametrize("value", [b"null", b"[]", b'"x"', b"5", b"true"])
    def test_what_is_no_object_is_refused_where_one_is_asked_for(self, value: bytes) -> None:
        assert wrong({"type": "object"}, value) == [("type", "")]

    def test_no_arguments_are_the_same_as_empty_ones(self) -> None:
        for schema in (compiled(READ), compiled({"type": "object"})):
            assert schema.check(None) == schema.check(b"{}")
        assert [error.keyword for error in compiled(READ).check(None)] == ["required"]

    def test_a_value_that_was_decoded_already_is_not_decoded_again(self) -> None:
        text = b'{"path":5}'
        assert compiled(READ).check(text, messages.value(text)) == compiled(READ).check(text)
        assert compiled({"type": "null"}).check(b"null", None) == ()


@pytest.mark.requirement("S0/ECO-300")
class TestReferencesAreNeverFetched:
    def test_a_remote_reference_is_refused_without_a_connection(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.setblocking(False)
            url = f"http://127.0.0.1:{listener.getsockname()[1]}/schema.json"
            for schema in (
                {"$ref": url},
                {"properties": {"a": {"items": {"$ref": f"{url}#/x"}}}},
                {"$defs": {"unused": {"$ref": url}}},
                {"$id": url, "$ref": "other.json"},
                {"$schema": url},
                {"$schema": DRAFT_7, "definitions": {"a": {"$id": url, "$ref": "x.json#/b"}}},
            ):
                assert refused(schema)
            with pytest.raises(BlockingIOError):
                listener.accept()

    def test_a_file_is_never_opened(self, tmp_path: Path) -> None:
        (tmp_path / "s.json").write_text('{"type":"string"}')
        for reference in (f"file://{tmp_path}/s.json", f"{tmp_path}/s.json", "s.json", "./s.json", "//x/s.json"):
            assert "nothing is fetched" in refused({"$ref": reference})

    def test_even_the_meta_schema_is_not_looked_up(self) -> None:
        assert "nothing is fetched" in refused({"$ref": "https://json-schema.org/draft/2020-12/schema"})

    def test_a_reference_in_an_example_or_choice_is_no_reference(self) -> None:
        remote = {"$ref": "http://127.0.0.1:9/x"}
        schema = {"properties": {"a": {"enum": [remote], "default": remote, "examples": [remote]}}}
        assert wrong(schema, {"a": remote}) == []
        assert wrong({"properties": {"$ref": {"type": "string"}}}, {"$ref": 5}) == [("type", "/$ref")]


@pytest.mark.requirement("S0/ECO-300", "S2/MCP-001")
@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b'{"type":"string"', "not JSON"),
        (b'"\xff"', "not JSON"),
        ([], "not an object"),
        (True, "not an object"),
        ({"type": "strin"}, "/type"),
        ({"type": 5}, "/type"),
        ({"properties": {"a": {"type": "strin"}}}, "/properties/a/type"),
        ({"properties": []}, "/properties"),
        ({"properties": {"a": {"required": True}}}, "/properties/a/required"),
        ({"required": "path"}, "/required"),
        ({"minimum": "5"}, "/minimum"),
        ({"pattern": "["}, "its pattern ["),
        ({"pattern": "a" * 5000}, "4000 characters"),
        ({"pattern": "((a{1,100}){1,100}){1,100}"}, "too large"),
        ({"properties": {str(n): {"pattern": f"^.{{900}}{n}"} for n in range(9)}}, "patterns are too large"),
        ({"$schema": "https://example.org/my-dialect"}, "https://example.org/my-dialect"),
        ({"$schema": 5}, "dialect"),
        ({"$ref": "#/nowhere"}, "leads nowhere"),
        ({"$ref": "#nowhere"}, "leads nowhere"),
        ({"$ref": "#/required/0", "required": ["a"]}, "leads nowhere"),
        ({"$ref": 5}, "/$ref"),
        ({"$ref": "#"}, "without end"),
        ({"allOf": [{"anyOf": [{"$ref": "#"}]}]}, "without end"),
        ({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"not": {"$ref": "#/$defs/a"}}}}, "without end"),
        ({"$dynamicRef": "#x", "$dynamicAnchor": "x"}, "$dynamicRef"),
        ({"$defs": {"a": {"$recursiveRef": "#"}}}, "$recursiveRef"),
        ({"title": "x" * MAX_SCHEMA_BYTES}, "bytes"),
        (nested(MAX_SCHEMA_DEPTH, {}, "not"), "deeper"),
        ({"allOf": [{}] * 6000}, "subschemas"),
    ],
)  # fmt: skip
def test_a_schema_that_can_not_be_used_says_why(schema: Any, why: str) -> None:
    found = refused(schema)
    assert why in found
    assert len(found) < 500


def test_an_engine_that_gives_up_makes_a_schema_unusable(monkeypatch: pytest.MonkeyPatch) -> None:
    def engine(schema: Any) -> Any:
        raise ValueError("Recursion limit reached")

    monkeypatch.setattr(validation, "compile_engine", engine)
    assert refused({}) == "it can't be compiled: Recursion limit reached"


def test_a_refusal_does_not_move_the_cursor() -> None:
    assert "\x1b" not in refused({"type": "\x1b[2J"}) + refused({"$schema": "\x1b[2J"}) + refused({"$ref": "\x1b[2J"})


class TestDialects:
    def test_without_a_name_it_is_2020_12(self) -> None:
        schema = {"prefixItems": [{"type": "string"}], "items": False}
        assert wrong(schema, ["a"]) == []
        assert wrong(schema, ["a", "b"]) == [("false", "/1")]

    def test_without_a_name_what_only_draft_7_allows_is_draft_7(self) -> None:
        schema = {"properties": {"a": {"items": [{"type": "string"}], "additionalItems": False}}}
        assert wrong(schema, {"a": ["x"]}) == []
        assert wrong(schema, {"a": [5]}) == [("type", "/a/0")]
        assert wrong(schema, {"a": ["x", "y"]}) == [("false", "/a/1")]

    @pytest.mark.parametrize(
        "name",
        [
            "http://json-schema.org/draft-04/schema#",
            "http://json-schema.org/draft-06/schema#",
            "http://json-schema.org/draft-07/schema",
            "https://json-schema.org/draft-07/schema#",
            "https://json-schema.org/draft/2019-09/schema",
            "https://json-schema.org/draft/2020-12/schema",
            "https://json-schema.org/draft/2020-12/schema#",
        ],
    )
    def test_the_known_ones_can_be_named(self, name: str) -> None:
        schema = {"$schema": name, "type": "object", "required": ["a"], "definitions": {"x": {"minimum": 1}}}
        assert wrong(schema, {"a": 1}) == []
        assert wrong(schema, {}) == [("required", "")]

    def test_a_keyword_counts_only_where_the_dialect_has_it(self) -> None:
        items: dict[str, Any] = {"prefixItems": [{"type": "string"}], "items": {"type": ["string", "integer"]}}
        assert wrong({"$schema": DRAFT_7, **items}, [5]) == []
        assert wrong(items, [5]) == [("type", "/0")]
        assert wrong({"$schema": DRAFT_7, "unevaluatedProperties": False}, {"a": 1}) == []

    def test_in_draft_7_a_reference_hides_its_neighbours(self) -> None:
        schema = {"$ref": "#/definitions/x", "required": ["a"], "definitions": {"x": {"type": "object"}}}
        assert wrong({"$schema": DRAFT_7, **schema}, {}) == []
        assert wrong({"$schema": DRAFT_7, **schema}, []) == [("type", "")]
        assert wrong(schema, {}) == [("required", "")]

    def test_draft_4_bounds_are_exclusive_by_a_flag(self) -> None:
        name = "http://json-schema.org/draft-04/schema#"
        schema = {"$schema": name, "items": {"minimum": 1, "exclusiveMinimum": True, "maximum": 5}}
        assert wrong(schema, [1, 2, 5, 6]) == [("exclusiveMinimum", "/0"), ("maximum", "/3")]
        assert wrong({"$schema": name, "items": {"minimum": 1, "exclusiveMinimum": False}}, [1, 0]) == [
            ("minimum", "/1")
        ]

    def test_a_part_that_names_a_dialect_of_its_own_is_read_like_the_whole(self) -> None:
        schema = {"properties": {"a": {"$schema": DRAFT_7, "type": "object", "required": ["b"]}}}
        assert wrong(schema, {"a": {}}) == [("required", "/a")]

    def test_an_id_need_not_be_a_uri(self) -> None:
        assert wrong({"$id": "my tool %%", **READ}, {}) == [("required", "")]


class TestErrors:
    SECRET = "hunter2-hunter2"

    def test_members_of_arguments_are_called_arguments(self) -> None:
        schema = compile_schema(b'{"required":["a"],"properties":{"b":{"required":["c"]}}}', noun="argument")
        assert isinstance(schema, Schema)
        said = [error.message for error in schema.check(b'{"b":{}}')]
        assert sorted(said) == ['missing argument "a"', 'missing member "c" in b']

    def test_all_that_is_wrong_is_told_at_once_up_to_a_bound(self) -> None:
        schema = {"additionalProperties": {"type": "integer"}}
        assert len(wrong(schema, {f"k{n}": "x" for n in range(3)})) == 3
        assert len(wrong(schema, {f"k{n}": "x" for n in range(500)})) == MAX_ERRORS

    @pytest.mark.parametrize(
        ("part", "value"),
        [
            ({"type": "integer"}, SECRET),
            ({"enum": ["a", "b"]}, SECRET),
            ({"const": "a"}, SECRET),
            ({"maxLength": 3}, SECRET),
            ({"minLength": 30}, SECRET),
            ({"pattern": "^x"}, SECRET),
            ({"not": {"type": "string"}}, SECRET),
            ({"anyOf": [{"type": "null"}, {"maxLength": 3}]}, SECRET),
            ({"oneOf": [{}, {"type": "string"}]}, SECRET),
            ({"if": {"type": "string"}, "then": False}, SECRET),
            ({"uniqueItems": True}, [SECRET, SECRET]),
            ({"contains": {"const": 1}}, [SECRET]),
            ({"maxItems": 0}, [SECRET]),
            ({"additionalProperties": False}, {"k": SECRET}),
            ({"unevaluatedProperties": False}, {"k": SECRET}),
        ],
    )
    def test_no_error_repeats_a_value(self, part: Any, value: Any) -> None:
        errors = compiled({"properties": {"a": part}}).check(json.dumps({"a": value}).encode())
        assert errors
        assert self.SECRET not in str([error.facts() for error in errors])

    def test_an_error_is_shown_with_its_place_in_both_spellings(self) -> None:
        (error,) = compiled({"properties": {"a.b": {"items": {"type": "null"}}}}).check(b'{"a.b":[null,1]}')
        assert error.facts() == {
            "path": "a.b[1]",
            "pointer": "/a.b/1",
            "keyword": "type",
            "message": "a.b[1] must be null",
        }

    def test_messages_stay_short_and_plain_whatever_schema_and_keys_say(self) -> None:
        schema = {"additionalProperties": {"enum": ["\x1b[2J" * 100, *map(str, range(3000))]}}
        for error in compiled(schema).check(json.dumps({"k\n" * 5000: "x"}).encode()):
            assert len(error.message) <= 500
            assert error.message.isprintable()


@pytest.mark.requirement("S2/MCP-001")
class TestResults:
    ROW: ClassVar = {"type": "object", "properties": {"at": {"pattern": r"^\d{4}-\d{2}-\d{2}$"}}, "required": ["id"]}
    SCHEMA: ClassVar = {"properties": {"rows": {"type": "array", "items": ROW}}, "required": ["rows"]}

    def test_a_result_that_breaks_its_schema_is_found_out(self) -> None:
        assert wrong(self.SCHEMA, {"rows": [{"id": 1}, {}]}) == [("required", "/rows/1")]
        assert wrong(self.SCHEMA, {}) == [("required", "")]

    def test_a_large_result_is_checked_whole(self) -> None:
        rows = [{"id": n, "name": f"row {n}", "at": "2024-01-01"} for n in range(20_000)]
        assert wrong(self.SCHEMA, {"rows": rows}) == []
        del rows[-1]["id"]
        assert wrong(self.SCHEMA, {"rows": rows}) == [("required", "/rows/19999")]
        assert wrong({"anyOf": [self.SCHEMA]}, {"rows": rows}) == [("schema", "")]  # too large to look for the row


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(schema=SCHEMAS, value=VALUES)
def test_verdicts_are_those_of_an_independent_validator(schema: dict[str, Any], value: Any) -> None:
    found = compile_schema(json.dumps(schema).encode())
    if isinstance(found, str):
        assert "without end" in found
        return
    try:
        expected = jsonschema.Draft202012Validator(schema).is_valid(value)
    except RecursionError:
        assume(False)
    errors = found.check(json.dumps(value).encode())
    assert (errors == ()) == expected
    assert all(error.keyword and error.message for error in errors)


JSON_LIKE = st.one_of(st.binary(max_size=60), st.text('{}[]":,0123456789.eE-ntf \\u', max_size=60).map(str.encode))


@given(text=JSON_LIKE)
def test_no_text_makes_a_compilation_or_a_check_raise(text: bytes) -> None:
    compile_schema(text)
    for schema in (CLOSED, OPEN):
        assert len(schema.check(text)) <= MAX_ERRORS


CLOSED, OPEN = compiled({**READ, "additionalProperties": False}), compiled({"additionalProperties": {"$ref": "#"}})

HOSTILE_PARTS: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([True, False, {}, 5, None, "x", [], {"$ref": "#"}, {"$ref": "#/a"}, {"$ref": 1}, {"$id": "x"}]),
    lambda inner: st.dictionaries(
        st.sampled_from(
            [
                *(
                    "allOf",
                    "anyOf",
                    "not",
                    "if",
                    "items",
                    "contains",
                    "properties",
                    "patternProperties",
                    "$defs",
                    "$ref",
                ),
                *(
                    "dependencies",
                    "dependentSchemas",
                    "pattern",
                    "enum",
                    "required",
                    "uniqueItems",
                    "$anchor",
                    "$schema",
                ),
            ]
        ),
        inner | st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
        max_size=4,
    ),
    max_leaves=12,
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(part=HOSTILE_PARTS, value=VALUES)
def test_no_schema_however_malformed_makes_anything_raise(part: Any, value: Any) -> None:
    found = compile_schema(json.dumps(part).encode())
    if isinstance(found, Schema):
        found.check(json.dumps(value).encode())
