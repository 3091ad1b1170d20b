"""OpenAPI documents of real APIs, from their packages: they become tools without a crash, and what can't is said with its reason.

The documents are pinned, so the counts are too: a number that changes is a mapping that changed.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pactgate.app import Gateway
from pactgate.config.model import Config
from pactgate.config.sections.openapi import IncludedOperations
from pactgate.config.server_settings import ServerConfig
from pactgate.policy.schema.validation import Schema, compile_schema
from pactgate.protocol.messages import encode_json
from pactgate.upstreams.openapi.document_text import read_text
from pactgate.upstreams.openapi.mapping import MappedDocument
from pactgate.upstreams.openapi.source import map_file
from pactgate.upstreams.rest.request import RequestPlan
from pactgate.upstreams.rest.tool_definition import definition
from tests.interop.pairings import PREPARE
from tests.interop.processes import ROOT

FOLDER = ROOT / ".tools" / "openapi"
PACKAGES = FOLDER / "node_modules"

pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(
        not (FOLDER / ".installed").is_file(), reason=f"NOT RUN: the OpenAPI documents are not installed: {PREPARE}"
    ),
]


class Real(NamedTuple):
    """A document, how many tools it makes, and what of it is left out."""

    file: str
    tools: int
    left_out: dict[str, int]


DEPRECATED = "it is deprecated"
DOCUMENTS = (
    Real(
        "@octokit/openapi/generated/api.github.com.json", 1185, {DEPRECATED: 37, "it takes a body of another kind": 1}
    ),
    Real("@figma/rest-api-spec/openapi/openapi.yaml", 50, {DEPRECATED: 4}),
    Real("@directus/specs/dist/openapi.json", 134, {"it uploads files": 2}),
    Real("@scalar/galaxy/dist/3.1.yaml", 9, {"it uploads files": 1}),
    Real("@readme/oas-examples/3.0/json/star-trek.json", 120, {}),
    Real("@readme/oas-examples/3.1/yaml/train-travel.yaml", 7, {}),
    Real("@readme/oas-examples/3.1/json/readme.json", 54, {}),
)


def described(file: str, **settings: Any) -> ServerConfig:
    """A server for a document, with a credential for every scheme it has."""
    path = PACKAGES / file
    schemes = read_text(path.read_bytes()).get("components", {}).get("securitySchemes", {})
    return ServerConfig(
        id="real",
        openapi=str(path),
        base_url="https://api.example",
        credentials=dict.fromkeys(schemes, "user:secret"),
        **{"output_validation": "enforce", **settings},
    )


def counted(mapped: MappedDocument) -> dict[str, int]:
    return dict(Counter(one.reason.partition(" (")[0] for one in mapped.left_out))


@pytest.mark.parametrize("real", DOCUMENTS, ids=lambda real: Path(real.file).name)
def test_a_real_document_becomes_tools_with_schemas_that_compile(real: Real) -> None:
    config = described(real.file, output_validation="off" if "octokit" in real.file else "enforce")
    mapped = map_file(config)
    assert (len(mapped.endpoints), counted(mapped)) == (real.tools, real.left_out)
    names = [endpoint.name for endpoint in mapped.endpoints]
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in names)
    assert len(set(map(str.casefold, names))) == len(names)
    assert names == [endpoint.name for endpoint in map_file(config).endpoints]
    for endpoint in mapped.endpoints:
        RequestPlan(endpoint, "")
        tool = json.loads(bytes(definition(endpoint)))
        for schema in (tool["inputSchema"], tool.get("outputSchema", {})):
            compiled = compile_schema(encode_json(schema))
            assert isinstance(compiled, Schema), (endpoint.name, compiled)


@pytest.mark.parametrize("file", sorted(PACKAGES.glob("@readme/oas-examples/3.*/*/*.*")), ids=lambda file: file.name)
def test_every_example_of_a_collection_is_read(file: Path) -> None:
    mapped = map_file(described(str(file.relative_to(PACKAGES)), include=IncludedOperations(deprecated=True)))
    assert all(one.reason for one in mapped.left_out)


async def test_a_document_of_a_thousand_operations_is_served_within_two_seconds() -> None:
    config = described(DOCUMENTS[0].file, output_validation="off")
    started = time.process_time()
    async with Gateway.open(Config(servers={"real": config})) as gateway:
        async with asyncio.timeout(20):
            await gateway.discover()
        spent_s = time.process_time() - started
        catalog = gateway.connections.unfiltered
        assert len(catalog.tools.entries()) == DOCUMENTS[0].tools
        assert gateway.connections.rows()[0]["leftOut"]
    assert spent_s < 2.0, f"{spent_s:.2f} s of CPU"


async def test_schemas_that_only_warn_never_cost_a_document_its_tools() -> None:
    config = described(DOCUMENTS[0].file, output_validation="warn", connection_timeout_ms=60000)
    async with Gateway.open(Config(servers={"real": config})) as gateway:
        async with asyncio.timeout(60):
            await gateway.discover()
        row = gateway.connections.rows()[0]
        modes = Counter(tool["outputValidation"] for tool in gateway.snapshot()["tools"])
    assert (row["toolCount"], row["lastError"]) == (DOCUMENTS[0].tools, None)
    assert modes["warn"] > 100
    assert any(reason.startswith("its responses are not validated") for reason in row["leftOut"])
