"""The category of a tool, and who set it: the operator, else its contract, else its annotations, else nobody (D10).

A tool without any of these may change things. Annotations are hints of an untrusted server, so the operator's setting always wins, and a
tool that calls itself both read-only and destructive counts as neither safe nor known.
Must not: decide what a category means; limits, rates and caching do. Enforces the first half of S1/TIMEOUT-002.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from pactgate.core.contract import Contract
from pactgate.policy.tool_patterns import most_specific


class ToolCategory(StrEnum):
    """What a tool does, as the settings name it."""

    QUERY = "query"
    MUTATION = "mutation"
    SCAN = "scan"
    EXECUTION = "execution"


class RateClass(StrEnum):
    """The rate limit that applies to a category."""

    READ = "read"
    MUTATION = "mutation"
    EXECUTION = "execution"


HINTS: Final = ("readOnlyHint", "destructiveHint", "idempotentHint")
"""The annotations of a tool that its category and idempotency depend on."""


class Categorised(Struct, frozen=True, gc=False):
    """The category of a tool, with the reason as a phrase for people.

    `is_known` is False where the category is a cautious guess, `is_hinted` is True where only hints of the server set it.
    `is_idempotent` is None where nobody declared it.
    """

    category: ToolCategory
    reason: str
    rate_class: RateClass
    is_known: bool
    is_hinted: bool
    is_read_only: bool
    is_idempotent: bool | None


_RATE_CLASSES: Final = {
    ToolCategory.QUERY: RateClass.READ,
    ToolCategory.SCAN: RateClass.READ,
    ToolCategory.MUTATION: RateClass.MUTATION,
    ToolCategory.EXECUTION: RateClass.EXECUTION,
}


def categorise(
    full_name: str, annotations: Any, settings: Mapping[str, str], contract: Contract | None = None
) -> Categorised:
    """The category of a tool, from the setting `categories`, its contract, and the decoded `annotations` of its definition.

    `annotations` may be any value. The contract decides whether the tool is idempotent, whoever set the category.
    """
    hints = annotations if isinstance(annotations, dict) else {}
    kind = _by_hints(full_name, hints, settings, contract)
    return kind if contract is None else replace(kind, is_idempotent=contract.idempotent)


def _by_hints(
    full_name: str, hints: dict[str, Any], settings: Mapping[str, str], contract: Contract | None
) -> Categorised:
    pattern = most_specific(full_name, settings)
    if pattern is not None:
        return _categorised(ToolCategory(settings[pattern]), f'set by categories["{pattern}"]', hints)
    if contract is not None and "category" not in contract.assumed:
        return _categorised(ToolCategory(contract.category), "declared in its contract", hints)
    if contract is not None:
        return _categorised(ToolCategory.MUTATION, "not declared: may change things", hints, is_known=False)
    if hints.get("readOnlyHint") is True:
        if hints.get("destructiveHint") is True:
            reason = "the server says readOnlyHint and destructiveHint: may change things"
            return _categorised(ToolCategory.MUTATION, reason, hints, is_known=False)
        return _categorised(ToolCategory.QUERY, "the server says readOnlyHint", hints, is_hinted=True)
    if hints.get("readOnlyHint") is False:
        return _categorised(ToolCategory.MUTATION, "the server says it is not read-only", hints, is_hinted=True)
    return _categorised(ToolCategory.MUTATION, "nothing known: may change things", hints, is_known=False)


def _categorised(
    category: ToolCategory, reason: str, hints: dict[str, Any], *, is_known: bool = True, is_hinted: bool = False
) -> Categorised:
    rate_class = _RATE_CLASSES[category]
    is_read_only = rate_class is RateClass.READ
    said = hints.get("idempotentHint")
    is_idempotent = True if is_read_only else said if isinstance(said, bool) else None
    return Categorised(
        category=category,
        reason=reason,
        rate_class=rate_class,
        is_known=is_known,
        is_hinted=is_hinted,
        is_read_only=is_read_only,
        is_idempotent=is_idempotent,
    )
