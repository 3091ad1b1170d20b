"""Selectors choose by name, server and kind, with the protocol's defaults for annotations."""

from __future__ import annotations

import pytest

from pactgate.config.selectors import read_selector
from pactgate.core.contract import Contract, Effect
from pactgate.core.values import Tool, Traits
from pactgate.policy.permissions.selection import SelectedEntries, Subject, bits, selects
from pactgate.protocol.messages import encode_json


def tool(
    annotations: dict[str, bool] | None = None, *, is_read_only: bool = False, effects: tuple[Effect, ...] | None = None
) -> Tool:
    contract = None if effects is None else Contract("query", True, effects)
    traits = Traits(is_read_only=is_read_only, is_idempotent=True)
    definition = encode_json({"annotations": annotations} if annotations is not None else {})
    return Tool("crm", "get", "crm.get", "crm__get", definition, b"{}", "", traits=traits, contract=contract)


@pytest.mark.parametrize(
    ("selector", "one", "is_selected"),
    [
        ("annotation:destructive", tool(), True),
        ("annotation:destructive", tool({"destructiveHint": False}), False),
        ("annotation:destructive", tool({"readOnlyHint": True}, is_read_only=True), False),
        ("annotation:readOnly", tool({"readOnlyHint": True}), False),  # said, and not believed of its category
        ("annotation:readOnly", tool({"readOnlyHint": True}, is_read_only=True), True),
        ("annotation:idempotent", tool({"idempotentHint": True}), True),
        ("annotation:idempotent", tool(), False),
        ("annotation:openWorld", tool(), True),
        ("annotation:openWorld", tool({"openWorldHint": False}), False),
        ("effect:network", tool(), False),
        ("effect:network", tool(effects=(Effect.NETWORK,)), True),
        ("effect:network", tool(effects=()), False),
        ("category:mutation", tool(), True),
        ("crm.g?t", tool(), True),
        ("crm.g", tool(), False),
        ("crm.[g]et", tool(), False),
        ("server:crm", tool(), True),
    ],
)
def test_a_selector_chooses_a_tool(selector: str, one: Tool, is_selected: bool) -> None:
    assert selects(read_selector(selector), Subject.of(one)) is is_selected
    assert SelectedEntries("crm", [Subject.of(one)]).mask([read_selector(selector)]) == int(is_selected)


@pytest.mark.parametrize("selector", ["category:query", "annotation:openWorld", "effect:state"])
def test_kinds_of_tools_choose_no_prompt_and_no_resource(selector: str) -> None:
    assert not selects(read_selector(selector), Subject("crm", "crm+file:///a"))


def test_a_pattern_of_another_server_is_not_even_compared() -> None:
    entries = SelectedEntries("crm", [Subject.of(tool())])
    assert entries.mask([read_selector("files.*"), read_selector("server:files")]) == 0


def test_bits_are_the_places_of_a_mask() -> None:
    assert list(bits(0b101001)) == [0, 3, 5]
