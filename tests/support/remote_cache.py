"""A cache store that answers later, as one in another process would, and misbehaves on request."""

from __future__ import annotations

import asyncio
from typing import Any

from pactgate.state.ports import MISS, Lookup

_STUBBORN_S = 5


class RemoteStore:
    """Keeps entries in a dict and answers after a turn of the loop; `hangs` names the operations that wait for `release`."""

    def __init__(
        self,
        *,
        hangs: set[str] | None = None,
        raises: BaseException | None = None,
        says: Any = ...,
        ignores_cancellation: bool = False,
    ) -> None:
        self.hangs = hangs or set()
        self.raises = raises
        self.says = says
        self.ignores_cancellation = ignores_cancellation
        self.release = asyncio.Event()
        self.asked: list[str] = []
        self.entries: dict[bytes, tuple[str, Lookup]] = {}
        self._open = 0

    async def get(self, key: bytes) -> Any:
        await self._turn("get")
        return self.entries.get(key, ("", MISS))[1] if self.says is ... else self.says

    async def put(
        self, key: bytes, value: bytes, *, ttl_ms: int | None = None, tag: str = "", mark: bytes = b""
    ) -> bool:
        await self._turn("put")
        self.entries[key] = (tag, Lookup(True, value, mark, 0, ttl_ms))
        return True

    async def drop(self, tag: str) -> int:
        await self._turn("drop")
        gone = [key for key, (owner, _) in self.entries.items() if owner == tag]
        for key in gone:
            del self.entries[key]
        return len(gone)

    async def quiet(self) -> None:
        """Wait until nothing that could end is under way."""
        async with asyncio.timeout(5):
            await asyncio.sleep(0)
            while self._open > 0:
                await asyncio.sleep(0)

    async def _turn(self, operation: str) -> None:
        self.asked.append(operation)
        if operation in self.hangs:
            await self._hang()
        self._open += 1
        await asyncio.sleep(0)
        self._open -= 1
        if self.raises is not None:
            raise self.raises

    async def _hang(self) -> None:
        """Wait for `release`. Even a stubborn store gives in at last, so that a test that fails also ends."""
        asyncio.get_running_loop().call_later(_STUBBORN_S, self.release.set)
        while not self.release.is_set():
            try:
                await self.release.wait()
            except asyncio.CancelledError:
                if not self.ignores_cancellation:
                    raise
