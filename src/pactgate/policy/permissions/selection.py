"""What the selectors of rules select: one subject, or all entries of a server at once as the bits of a number.

Rules are matched with entries once per catalog, not once per class of callers: 200 rules, 1,000 tools and 50 classes are ten million
pairs otherwise. Must not: know callers or verdicts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from pactgate.config.selectors import Selector, SelectorKind, matches, servers_of
from pactgate.core.values import Tool
from pactgate.protocol import messages


class Subject(NamedTuple):
    """What a rule is about: a tool or prompt by its full name, a resource by its full URI."""

    server: str
    name: str
    tool: Tool | None = None

    @classmethod
    def of(cls, tool: Tool) -> Subject:
        return cls(tool.server, tool.full_name, tool)


def selects(selector: Selector, subject: Subject) -> bool:
    kind, value = selector
    if kind is SelectorKind.NAME:
        return matches(value, subject.name)
    if kind is SelectorKind.SERVER:
        return subject.server == value
    tool = subject.tool
    if tool is None:
        return False
    if kind is SelectorKind.CATEGORY:
        return tool.traits.category == value
    if kind is SelectorKind.EFFECT:
        return tool.contract is not None and value in tool.contract.effects
    return has_annotation(tool, value)


def has_annotation(tool: Tool, name: str) -> bool:
    """An annotation with the protocol's defaults. A hint that the gateway does not believe of its category counts as absent."""
    annotations: Any = messages.value(tool.definition).get("annotations")
    said = annotations.get(f"{name}Hint") if isinstance(annotations, dict) else None
    if name == "readOnly":
        return said is True and tool.traits.is_read_only
    if name == "idempotent":
        return said is True and tool.traits.is_idempotent is True
    if name == "destructive":
        return said is not False and not has_annotation(tool, "readOnly")
    return said is not False


class SelectedEntries:
    """For the entries of one server: which of them each selector selects. Bit n stands for the n-th subject."""

    def __init__(self, server: str, subjects: Sequence[Subject]) -> None:
        self.subjects = subjects
        self._server = (server,)
        self._known: dict[Selector, int] = {}

    def mask(self, selectors: Iterable[Selector]) -> int:
        found = 0
        for selector in selectors:
            known = self._known.get(selector)
            if known is None:
                known = self._known[selector] = self._match(selector)
            found |= known
        return found

    def _match(self, selector: Selector) -> int:
        if not servers_of(selector, self._server):
            return 0
        if selector.is_everything or selector.kind is SelectorKind.SERVER:
            return (1 << len(self.subjects)) - 1
        return sum(1 << at for at, subject in enumerate(self.subjects) if selects(selector, subject))


def bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
