"""What functions of a file of tools are given beside their arguments, and what they may return beside JSON: the call, images, messages.

Must not: import the gateway, or anything that takes time.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from concurrent.futures import Future
from typing import Any, Final, Literal, Protocol

from msgspec import Struct

LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
WhyNotAnswered = Literal["declined", "cancelled", "unavailable"]
_SAID: Final = {
    "declined": "The question was declined.",
    "cancelled": "The question was not answered.",
    "unavailable": "This client can't ask its user.",
}


class Image(Struct, frozen=True):
    """An image to return: `Image(data, "image/png")`, also in a list beside texts."""

    data: bytes
    mime_type: str = "image/png"


class Message(Struct, frozen=True):
    """One message of a prompt."""

    text: str
    role: Literal["user", "assistant"] = "user"


class ToolCaller(Struct, frozen=True):
    """Who calls. `name` is what logs and limits call it, `client` the name of its program, as it says itself."""

    name: str = "nobody"
    client: str = ""
    roles: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


class NotAnswered(Exception):  # noqa: N818 - what a person did is no error of the tool
    """Nobody answered `call.ask`. `reason` is declined, cancelled, or unavailable where the client can't ask anybody."""

    def __init__(self, reason: WhyNotAnswered) -> None:
        super().__init__(_SAID[reason])
        self.reason = reason


class CallHost(Protocol):
    """What a call can do: the runner's side of it. Called from any thread."""

    def progress(self, done: float, total: float | None, message: str | None) -> None: ...
    def log(self, level: LogLevel, message: str) -> None: ...
    def ask(self, question: str, kind: Any) -> Future[Any]: ...


class _Told:
    """What `progress` returns: may be awaited, need not be."""

    def __await__(self) -> Generator[None, None, None]:
        yield


class Call:
    """The call a tool is answering. Ask for it with a parameter `call: Call`; callers don't see it.

    One made without arguments tells nobody anything, is never cancelled and can't ask: for tests that call the function itself.
    """

    def __init__(self, host: CallHost | None = None, caller: ToolCaller | None = None) -> None:
        self._host = host
        self._cancelled = threading.Event()
        self.caller: Final = caller or ToolCaller()

    @property
    def is_cancelled(self) -> bool:
        """Whether nobody waits for the answer any more. An `async` tool is cancelled by itself; others should look now and then."""
        return self._cancelled.is_set()

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> _Told:
        """Say how far it is, to a caller that asked to be told. In an `async` tool `await` it to let others run."""
        if self._host is not None and not self.is_cancelled:
            self._host.progress(done, total, message)
        return _Told()

    def log(self, message: str, level: LogLevel = "info") -> None:
        """Send a log message to the caller, if it wants messages of this level."""
        if self._host is not None and not self.is_cancelled:
            self._host.log(level, message)

    def ask(self, question: str, kind: Any = str) -> Any:
        """Ask the person at the client. In an `async` tool, `await` it. Raises NotAnswered.

        `kind` is the type of the answer: `str`, `int`, `float`, `bool`, a `Literal` or `Enum` to choose from, or a class with such fields.
        """
        if self._host is None or self.is_cancelled:
            raise NotAnswered("unavailable" if self._host is None else "cancelled")
        answer = self._host.ask(question, kind)
        import asyncio  # here: who only declares tools waits for no import

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return answer.result()
        return asyncio.wrap_future(answer)

    def wait(self, seconds: float) -> bool:
        """Let time pass in a tool that is not `async`; True as soon as the call was cancelled."""
        return self._cancelled.wait(seconds)

    def cancel(self) -> None:
        self._cancelled.set()
