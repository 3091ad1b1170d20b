"""OpenAPI documents that mean harm: each is refused or mapped in little time, none reaches out, none spoils its neighbours."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from pactgate.config.server_settings import ServerConfig
from pactgate.policy.schema.validation import Schema, compile_schema
from pactgate.protocol.messages import encode_json
from pactgate.upstreams.openapi.document_text import UnreadableDocumentError
from pactgate.upstreams.openapi.mapping import MappedDocument
from pactgate.upstreams.openapi.source import map_file
from pactgate.upstreams.rest.tool_definition import definition
from tests.support.openapi import document, operation

SPENT_S = 4.0
BOMB = "\n".join(
    ["a0: &a0 {type: string}", *(f"a{n}: &a{n} {{anyOf: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 40))]
)
HEAD = "openapi: 3.1.0\ninfo: {title: x, version: '1'}\nservers: [{url: 'https://a.example'}]\n"
QUERY = "paths: {/x: {get: {parameters: [{name: q, in: query, required: true, schema: SCHEMA}]}}}"


def asking(schema: Any, **schemas: Any) -> str:
    given = [{"name": "q", "in": "query", "required": True, "schema": schema}]
    return json.dumps(document({"/x": {"get": operation(parameters=given)}}, components={"schemas": schemas}))


def answering(schema: Any, **schemas: Any) -> str:
    content = {"200": {"description": "", "content": {"application/json": {"schema": schema}}}}
    return json.dumps(document({"/x": {"get": operation(responses=content)}}, components={"schemas": schemas}))


def ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def item(**more: Any) -> str:
    return json.dumps(document({"/x": {"get": operation(**more)}}))


def at(path: str) -> str:
    return json.dumps(document({path: {"get": operation()}}))


def served_at(url: str) -> str:
    return json.dumps({**document({"/x": {"get": operation()}}), "servers": [{"url": url}]})


DOUBLING = {
    f"S{n}": {"type": "object", "properties": {"a": ref(f"S{n + 1}"), "b": ref(f"S{n + 1}")}} for n in range(60)
}
ALL_OF = {f"S{n}": {"allOf": [ref(f"S{n + 1}"), ref(f"S{n + 1}")]} for n in range(60)}
MANY = {f"/p{n}/{{id}}": {"get": operation("same")} for n in range(10_000)}

NESTED: Any = "x"
for _ in range(900):
    NESTED = [NESTED]

HOSTILE = {
    "yaml anchors in schemas": f"{HEAD}{BOMB}\n{QUERY.replace('SCHEMA', '*a39')}",
    "yaml anchors in defaults": f"{HEAD}{BOMB}\n{QUERY.replace('SCHEMA', '{default: *a39}')}",
    "yaml anchors in paths": f"{HEAD}{BOMB}\npaths: {{/x: *a39}}",
    "yaml that is its own part": f"{HEAD}paths: &p {{/x: *p}}",
    "yaml tags": f"{HEAD}paths: !!python/object/apply:os.system ['true']",
    "a reference to itself": asking(ref("A"), A=ref("A")),
    "references in a circle": asking(ref("A"), A=ref("B"), B=ref("C"), C=ref("A")),
    "a schema in itself": asking(ref("A"), A={"allOf": [ref("A")]}),
    "definitions that double": asking(ref("S0"), **DOUBLING, S60={"type": "string"}),
    "parts that double": asking(ref("S0"), **ALL_OF, S60={"type": "string"}),
    "answers that double": answering(ref("S0"), **DOUBLING, S60={"type": "string"}),
    "a remote reference": asking({"$ref": "http://127.0.0.1:1/schema.json"}),
    "a file elsewhere": asking({"$ref": "file:///etc/passwd"}),
    "a folder above": asking({"$ref": "../../../../../../etc/passwd"}),
    "a path item elsewhere": json.dumps(document({"/x": {"$ref": "//evil.example/x"}})),
    "a pattern that explodes": asking({"type": "string", "pattern": "^(a+)+$"}),
    "a pattern of repetitions": asking({"type": "string", "pattern": "((a{50}){50}){50}"}),
    "deep nesting": json.dumps(document({})).replace("{}", "[" * 5000 + "]" * 5000),
    "deep values": asking({"type": "array", "default": NESTED, "enum": [NESTED], "example": NESTED, "const": NESTED}),
    "dot segments": at("/a/../../admin"),
    "encoded dot segments": at("/a/%2e%2e/admin"),
    "another host in the path": at("//evil.example/x"),
    "a fragment in the path": at("/x#y"),
    "a server in a file": served_at("file:///etc"),
    "a server with credentials": served_at("https://user:pass@a.example"),
    "ten thousand operations of one name": json.dumps(document(MANY)),
    "a header that breaks out": item(parameters=[{"name": "X\r\nHost: evil", "in": "header", "required": True}]),
    "a security scheme out of nowhere": item(security=[{"x" * 100_000: []}] * 1000),
}


def read(text: str, file: Path) -> tuple[MappedDocument | None, list[dict[str, Any]]]:
    """What a document is mapped to, and its tools: nothing where it is refused."""
    file.write_text(text)
    try:
        mapped = map_file(ServerConfig(id="api", openapi=str(file), output_validation="enforce"))
    except UnreadableDocumentError:
        return None, []
    return mapped, [json.loads(bytes(definition(one))) for one in mapped.endpoints]


@pytest.mark.timing
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_document_costs_little(name: str, tmp_path: Path) -> None:
    started = time.process_time()
    read(HOSTILE[name], tmp_path / "api.yaml")
    assert time.process_time() - started < SPENT_S


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_document_is_refused_or_mapped(name: str, tmp_path: Path) -> None:
    mapped, tools = read(HOSTILE[name], tmp_path / "api.yaml")
    for tool in tools[:100]:
        assert isinstance(compile_schema(encode_json(tool["inputSchema"])), Schema | str)
        assert ".." not in tool["name"]
    if mapped is not None:
        assert all(len(str(one)) < 2000 for one in mapped.left_out)
        assert all("evil" not in (one.base_url or "") and "\\r" not in str(one.parameters) for one in mapped.endpoints)
