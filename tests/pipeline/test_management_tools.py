"""The declarations of the built-in tools: closed, complete, and true to the contract."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from pactgate.core.failures import RETRYABLE_ERRORS, ErrorCode
from pactgate.pipeline.management_tools import CONTRACT_KEY, DECLARED

DEFINITIONS: list[dict[str, Any]] = [json.loads(bytes(declared.definition())) for declared in DECLARED]


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda definition: definition["name"])
def test_every_tool_declares_what_the_contract_asks(definition: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator.check_schema(definition["inputSchema"])
    assert definition["inputSchema"]["additionalProperties"] is False
    contract = definition["_meta"][CONTRACT_KEY]
    assert contract["category"] in ("query", "mutation", "scan", "execution")
    assert isinstance(contract["idempotent"], bool)
    assert definition["annotations"]["idempotentHint"] is contract["idempotent"]
    assert definition["annotations"]["readOnlyHint"] is (contract["category"] in ("query", "scan"))
    assert set(contract["effects"]) <= {"filesystem.read", "filesystem.write", "network", "process", "state"}
    assert "SIDE EFFECTS:" in definition["description"]
    for code in contract["errorCodes"]:
        assert code["code"] in set(ErrorCode)
        assert code["retryable"] is (contract["idempotent"] and code["code"] in RETRYABLE_ERRORS)


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda definition: definition["name"])
def test_only_the_tool_that_answers_for_another_has_no_output_schema(definition: dict[str, Any]) -> None:
    if definition["name"] == "tool_invoke":
        assert "outputSchema" not in definition
    else:
        jsonschema.Draft202012Validator.check_schema(definition["outputSchema"])
        assert definition["outputSchema"]["required"]


def test_a_tool_that_changes_nothing_declares_no_change() -> None:
    for definition in DEFINITIONS:
        contract = definition["_meta"][CONTRACT_KEY]
        if definition["annotations"]["readOnlyHint"]:
            assert not set(contract["effects"]) - {"network"}
