"""The fair share: how much of a bounded resource one principal may hold while other principals may come.

One principal holds at most three times as much as stays free, and may always take its first unit. A principal alone therefore gets three
quarters of a resource, the next one three quarters of the rest, and so on: no principal can take the last of anything while it has some.
Must not: count; the owner of a resource knows who holds what.
"""

from __future__ import annotations

from typing import Final

_TIMES_FREE: Final = 3


def is_fair(held: int, free: int, wanted: int = 1) -> bool:
    """Whether a principal that holds `held` may take `wanted` more of what is free."""
    return wanted <= free and (not held or held + wanted <= _TIMES_FREE * (free - wanted))


def uncontended(total: int) -> int:
    """While fewer units than this are taken in all, every principal is within its share: nobody has to be counted."""
    return _TIMES_FREE * total // (_TIMES_FREE + 1)
