"""Pocket tools: a shopping list. Python functions under the contract, one of which does not keep to it.

Served by `"tools": "pocket.py"`; the gateway knows the category, the effects and the error codes of each from its declaration.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from pactgate import ToolError, tool

MAX_ITEMS = 100
_items: list[str] = []
_guard = threading.Lock()


class ShoppingList(Struct):
    items: list[str]


@tool(category="mutation", idempotent=True, effects=["state"], errors={"LIST_FULL": "The list holds too many items."})
def shopping_add(item: Annotated[str, Meta(min_length=1, max_length=100)]) -> ShoppingList:
    """Puts an item on the shopping list, unless it is there already.

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


@tool(category="query", idempotent=True, effects=[])
def fib() -> str:
    """Says that it touches nothing, and reads a file: call it to see that the gateway notices."""
    return Path("/proc/sys/kernel/ostype").read_text().strip()
