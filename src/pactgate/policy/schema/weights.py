"""How much work one value can be against a schema: its parts weighed, over all ways in which they can meet one value.

A step is ten nanoseconds of the engine's, measured. At most one of a table's named members applies to a value, and only one of
`items` and `properties`; everything else is taken to apply. So the weight of a schema, times the size of a value, is never less than
what the engine does. Must not: recurse, or look at a value. Serves S0/ECO-300 (★ exponential schemas).
"""

from __future__ import annotations

from itertools import chain
from types import NoneType
from typing import Any, Final

from pactgate.policy.schema.patterns import Unusable

MAX_CHAIN: Final = 64
"""Parts applied to one and the same value inside one another."""
MAX_LEVELS: Final = 64
MAX_WEIGHT: Final = 100_000
"""Steps one value may take against all parts that apply to it, patterns and what is inside it not counted: a millisecond."""
SATURATED: Final = 10**9

_PER_PLAIN_OPTION: Final = 15
_PER_OPTION: Final = 150

Part = dict[str, Any] | bool


class Node:
    """One part: the parts applied to the same value (`here`), those of which at most one applies to a value inside it (`one_item`,
    `one_member`), those that all may (`items`, `members`), and its own cost for the value, for each inside it, for each inside those."""

    __slots__ = (
        *("here", "items", "members", "one_item", "one_member"),
        *("part", "pattern_weight", "per_part", "per_part_of_parts", "resource", "times", "weight"),
    )

    def __init__(self, part: dict[str, Any], resource: dict[str, Any]) -> None:
        self.part = part
        self.resource = resource
        self.here: list[Part] = []
        self.one_item: list[Part] = []
        self.items: list[Part] = []
        self.one_member: list[Part] = []
        self.members: list[Part] = []
        self.weight = 1 + len(part)
        self.pattern_weight = 0
        self.per_part = 0
        self.per_part_of_parts = 0
        self.times = 1
        """How often the engine goes through `here`: to know what is unevaluated it asks the same again."""


def choice_weight(value: Any) -> int:
    """Texts, and whole numbers, are looked up; options of several kinds are compared one by one; others slowly."""
    kinds = {type(option) for option in value} if isinstance(value, list) else {type(value)}
    if kinds in ({str}, {int}):
        return 2
    if kinds <= {str, int, bool, NoneType}:
        return _PER_PLAIN_OPTION * (len(value) if isinstance(value, list) else 1)
    count, level = 0, [value]
    while level:
        count += len(level)
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
    return _PER_OPTION * count


def weights_of(nodes: list[Node], root: dict[str, Any]) -> tuple[tuple[int, ...], bool]:
    """The heaviest place at each level down, over all ways through the parts; circles are followed as deep as values may nest.

    Also whether there are circles.
    """
    numbers = {id(node.part): number for number, node in enumerate(nodes)}

    def numbered(parts: list[Part]) -> list[int]:
        return [numbers[id(part)] for part in parts if isinstance(part, dict)]

    here = [numbered(node.here) for node in nodes]
    inside = [tuple(map(numbered, (node.one_item, node.items, node.one_member, node.members))) for node in nodes]
    order = _innermost_first(here)
    level, with_patterns = [0] * len(nodes), [0] * len(nodes)
    for number in order:
        node = nodes[number]
        own = node.weight + len(node.here)
        level[number] = min(own + node.times * _sum(level, here[number]), SATURATED)
        own += node.pattern_weight
        with_patterns[number] = min(own + node.times * _sum(with_patterns, here[number]), SATURATED)
    if max(level) > MAX_WEIGHT:
        raise Unusable("it is too much work for one value: it combines parts in too many ways, or has too many choices")
    level, start = with_patterns, numbers[id(root)]
    heaviest = [level[start]]
    seen: list[list[int]] = []
    for depth in range(1, MAX_LEVELS + 1):
        above = level
        seen = [*seen[-3:], above]
        by_item, by_member = [0] * len(nodes), [0] * len(nodes)
        for number in order:
            node = nodes[number]
            one_item, items, one_member, members = inside[number]
            own = node.per_part_of_parts + (node.per_part if depth == 1 else 0)
            for level, one, several in ((by_item, one_item, items), (by_member, one_member, members)):
                applied = node.times * _sum(level, here[number])
                level[number] = min(own + _most(above, one) + _sum(above, several) + applied, SATURATED)
        level = list(map(max, by_item, by_member))
        heaviest.append(max(heaviest[-1], level[start]))
        if heaviest[-1] == SATURATED or (depth > 1 and level in seen):  # from here on it only repeats
            break
    weights = tuple(heaviest + heaviest[-1:] * (MAX_LEVELS + 1 - len(heaviest)))
    return weights, _has_circle([[*own, *chain(*others)] for own, others in zip(here, inside, strict=True)])


def _sum(weights: list[int], numbers: list[int]) -> int:
    return sum([weights[number] for number in numbers]) if numbers else 0


def _most(weights: list[int], numbers: list[int]) -> int:
    return max([weights[number] for number in numbers]) if numbers else 0


def _innermost_first(here: list[list[int]]) -> list[int]:
    """An order in which every part comes after those applied with it. Raises Unusable for circles and for endless chains."""
    heights = [0] * len(here)  # 0: not seen; -1: open; else the longest chain from here
    order: list[int] = []
    for start in range(len(here)):
        open_parts = [start] if heights[start] == 0 else []
        while open_parts:
            number = open_parts[-1]
            if heights[number] == 0:
                heights[number] = -1
                open_parts += [inner for inner in here[number] if heights[inner] == 0]
                if any(heights[inner] == -1 for inner in here[number]):
                    raise Unusable("it refers to itself without end")
                continue
            open_parts.pop()
            if heights[number] == -1:
                heights[number] = 1 + max((heights[inner] for inner in here[number]), default=0)
                if heights[number] > MAX_CHAIN:
                    raise Unusable(f"its parts apply each other more than {MAX_CHAIN} deep")
                order.append(number)
    return order


def _has_circle(edges: list[list[int]]) -> bool:
    """Whether some part leads back to itself: taking away, again and again, what nothing leads to leaves something over."""
    arriving = [0] * len(edges)
    for number in chain(*edges):
        arriving[number] += 1
    free = [number for number, count in enumerate(arriving) if count == 0]
    taken = 0
    while free:
        taken += 1
        for number in edges[free.pop()]:
            arriving[number] -= 1
            if arriving[number] == 0:
                free.append(number)
    return taken < len(edges)
