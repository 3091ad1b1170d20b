"""Pocket tools: a shopping list, dice, checksums. Python functions under the contract, one of which does not keep to it.

Served by `"tools": "pocket.py"`; the gateway knows the category, the effects and the error codes of each from its declaration.
"""

from __future__ import annotations

import hashlib
import random
import threading
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

from pactgate import ToolError, tool

MAX_ITEMS = 100

_items: list[str] = []
_guard = threading.Lock()


class ShoppingList(Struct):
    items: list[str]


class Roll(Struct):
    dice: list[int]
    sum: int


@tool(
    category="mutation",
    idempotent=True,
    effects=["state"],
    errors={"LIST_FULL": f"The list holds {MAX_ITEMS} things already."},
)
def shopping_add(item: Annotated[str, Meta(min_length=1, max_length=100)]) -> ShoppingList:
    """Puts a thing on the shopping list; what is on it already stays there once.

    Args:
        item: What to buy.
    """
    with _guard:
        if item not in _items:
            if len(_items) >= MAX_ITEMS:
                raise ToolError("LIST_FULL", "The list is full; buy something first.", {"count": len(_items)})
            _items.append(item)
        return ShoppingList([*_items])


@tool(category="query", idempotent=True, effects=[])
def shopping_list() -> ShoppingList:
    """Shows the shopping list."""
    with _guard:
        return ShoppingList([*_items])


@tool(category="execution", idempotent=False, effects=[])
def roll_dice(count: Annotated[int, Meta(ge=1, le=100)] = 2, sides: Annotated[int, Meta(ge=2, le=1000)] = 6) -> Roll:
    """Rolls dice. Not idempotent: the next roll is another one.

    Args:
        count: How many dice.
        sides: How many sides each has.
    """
    dice = [random.randint(1, sides) for _ in range(count)]
    return Roll(dice, sum(dice))


@tool(category="query", idempotent=True, effects=[], cache_ttl_ms=60_000)
def checksum(text: str, algorithm: Literal["sha256", "blake2b", "md5"] = "sha256") -> str:
    """Computes the checksum of a text.

    Args:
        text: The text, taken as UTF-8.
        algorithm: How.
    """
    return hashlib.new(algorithm, text.encode()).hexdigest()


@tool(category="query", idempotent=True, effects=[])
def fib() -> str:
    """Says that it touches nothing, and reads a file: call it to see that the gateway notices."""
    return Path("/proc/sys/kernel/ostype").read_text().strip()
