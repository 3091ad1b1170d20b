"""Observes the effects of running tools with Python's audit hook and attributes each to its tool.

A context variable names the watch of the running tool; asyncio carries it, and threads and thread pools are patched to do so. The hook is
installed once, can't be removed, and never raises outside a tool. Imports and the interpreter's own files do not count.
Raising in the hook prevents the operation, but is not a security boundary: native code is not seen, and of a child process only
the start; the kernel's sandbox is for that. Must not: hold more than its bounds, or wait. Enforces the observed level of S2/MCP-002 (D12).
"""

from __future__ import annotations

import _thread
import concurrent.futures
import gc
import os
import sys
import sysconfig
import threading
from collections.abc import Callable, Collection
from contextvars import ContextVar, copy_context
from typing import Any, Final

from msgspec import Struct, field

from pactgate.core.contract import MAX_OPERATIONS, MAX_TARGET_CHARS, Effect, Operation, covers
from pactgate.core.display import flat

MAX_UNDECLARED: Final = 50
"""So many undeclared operations are always shown, whatever else a tool did."""
MAX_LATE: Final = 20

_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_IMPORTING: Final = "<frozen importlib"
_Seen = tuple[Effect, str] | None


class UndeclaredEffectError(PermissionError):
    """An operation was refused because the tool does not declare it."""


class EffectWatch(Struct, eq=False):
    """The operations of one call, or of the file outside of any call (then `tool` is empty). Thread-safe."""

    tool: str
    effects: Collection[str]
    refuses: bool
    on_late: Callable[[EffectWatch, Operation], None]
    has_ended: bool = False
    """The call has its response: further operations are reported at once."""
    late: int = 0
    _declared: dict[Operation, None] = {}
    _undeclared: dict[Operation, None] = {}
    _more: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, kind: Effect, target: str) -> None:
        """Record an operation that is about to happen. Raises UndeclaredEffectError where it must not."""
        is_declared = covers(self.effects, kind)
        refused = self.refuses and not is_declared
        done = Operation(kind.value, target, refused)
        if self.has_ended:
            self._note_late(done, is_declared)
        else:
            self._keep(done, is_declared)
        if refused:
            raise UndeclaredEffectError(
                f"{self.tool or 'the file'} does not declare {kind.value}, so this is refused: {target}"
            )

    def operations(self) -> list[Operation]:
        """The recorded operations, undeclared ones first, within bounds and with the number of omitted ones."""
        with self._lock:
            seen = [*self._undeclared, *self._declared]
            more = self._more + max(0, len(seen) - MAX_OPERATIONS)
            return [*seen[:MAX_OPERATIONS], *([Operation(more=more)] if more else [])]

    def tell_unanswered(self) -> None:
        """The call was cancelled and has no response: report its undeclared operations as late ones."""
        with self._lock:
            seen = [*self._undeclared]
        for done in seen:
            self._note_late(done, False)

    def _keep(self, done: Operation, is_declared: bool) -> None:
        held, bound = (self._declared, MAX_OPERATIONS) if is_declared else (self._undeclared, MAX_UNDECLARED)
        with self._lock:
            if done not in held:
                if len(held) < bound:
                    held[done] = None
                else:
                    self._more += 1

    def _note_late(self, done: Operation, is_declared: bool) -> None:
        if not is_declared and self.late < MAX_LATE:
            self.late += 1
            self.on_late(self, done)


current: Final[ContextVar[EffectWatch | None]] = ContextVar("current", default=None)
own_files: Final[set[str]] = set()
"""The source files of the tools: a traceback or a warning may read them."""
_collecting: Final = threading.local()
_outside: list[EffectWatch] = []


def install(outside: EffectWatch) -> None:
    """Install the hook, once and for good. `outside` gets operations that belong to no call."""
    _outside.append(outside)
    _carry_context()
    gc.callbacks.append(_on_collection)
    sys.addaudithook(_hook)


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    see = _SEEN_BY.get(event)
    if see is None:
        return
    watch = current.get()
    if watch is None or sys._getframe(1).f_code.co_filename.startswith(_IMPORTING):
        return
    if getattr(_collecting, "is_on", False):
        watch = _outside[0]  # whoever happens to run when the collector does is not who did it
    seen = see(arguments)
    if seen is not None:
        watch.note(*seen)


def _on_collection(phase: str, _: dict[str, int]) -> None:
    _collecting.is_on = phase == "start"


# What an event means.


def _place(path: Any) -> str:
    if isinstance(path, int):
        return f"descriptor {path}"
    try:
        text = os.fsdecode(path)
    except TypeError:
        return flat(repr(path), MAX_TARGET_CHARS)
    return flat(os.path.abspath(text), MAX_TARGET_CHARS) if text else "."


def _on_open(arguments: tuple[Any, ...]) -> _Seen:
    path, _, flags = arguments
    if isinstance(path, int):
        return None  # what is open already was opened by somebody who was seen
    place = _place(path)
    if place in _NOBODY_MINDS:
        return None
    if flags & _WRITING:
        return Effect.WRITE, place
    return None if place in own_files or place.startswith(_OWN_PLACES) else (Effect.READ, place)


def _on_read(arguments: tuple[Any, ...]) -> _Seen:
    place = _place(arguments[0] if arguments[0] is not None else ".")
    return None if place.startswith(_OWN_PLACES) else (Effect.READ, place)


def _on_write(arguments: tuple[Any, ...]) -> _Seen:
    return Effect.WRITE, _place(arguments[0])


def _on_move(arguments: tuple[Any, ...]) -> _Seen:
    return Effect.WRITE, flat(f"{_place(arguments[0])} -> {_place(arguments[1])}", MAX_TARGET_CHARS)


def _on_database(arguments: tuple[Any, ...]) -> _Seen:
    name = os.fsdecode(arguments[0]) if isinstance(arguments[0], str | bytes | os.PathLike) else str(arguments[0])
    if not name or ":memory:" in name:
        return None
    is_read_only = name.startswith("file:") and ("mode=ro" in name or "immutable=1" in name)
    return (Effect.READ if is_read_only else Effect.WRITE), flat(f"database {name}", MAX_TARGET_CHARS)


def _on_address(arguments: tuple[Any, ...]) -> _Seen:
    address = arguments[-1]
    if isinstance(address, tuple) and len(address) >= 2:
        return Effect.NETWORK, flat(f"{address[0]}:{address[1]}", MAX_TARGET_CHARS)
    text = os.fsdecode(address) if isinstance(address, str | bytes) else repr(address)
    return Effect.NETWORK, flat(f"unix {text}", MAX_TARGET_CHARS)


def _on_name(arguments: tuple[Any, ...]) -> _Seen:
    return Effect.NETWORK, flat(f"look up {arguments[0]}", MAX_TARGET_CHARS)


def _on_program(arguments: tuple[Any, ...]) -> _Seen:
    words = arguments[1] if len(arguments) > 1 and isinstance(arguments[1], list | tuple) else arguments[:1]
    return Effect.PROCESS, flat("start " + " ".join(_word(word) for word in words), MAX_TARGET_CHARS)


def _word(word: Any) -> str:
    return os.fsdecode(word) if isinstance(word, str | bytes | os.PathLike) else str(word)


def _doing(effect: Effect, what: str) -> Callable[[tuple[Any, ...]], _Seen]:
    def see(arguments: tuple[Any, ...]) -> _Seen:
        told = " ".join(_word(one) for one in arguments[:2] if one is not None)
        return effect, flat(f"{what} {told}".strip(), MAX_TARGET_CHARS)

    return see


_SEEN_BY: Final[dict[str, Callable[[tuple[Any, ...]], _Seen]]] = {
    "open": _on_open,
    **dict.fromkeys(("os.listdir", "os.scandir", "os.getxattr", "os.listxattr"), _on_read),
    **dict.fromkeys(("os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.chmod", "os.chown"), _on_write),
    **dict.fromkeys(("os.chflags", "os.utime", "os.setxattr", "os.removexattr"), _on_write),
    **dict.fromkeys(("os.rename", "os.link", "os.symlink"), _on_move),
    "sqlite3.connect": _on_database,
    **dict.fromkeys(("socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg"), _on_address),
    **dict.fromkeys(("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"), _on_name),
    **dict.fromkeys(("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "pty.spawn"), _on_program),
    "os.spawn": lambda arguments: _on_program(arguments[1:]),
    "os.fork": _doing(Effect.PROCESS, "fork"),
    "os.forkpty": _doing(Effect.PROCESS, "fork"),
    "os.kill": _doing(Effect.PROCESS, "signal"),
    "os.killpg": _doing(Effect.PROCESS, "signal group"),
    "signal.pthread_kill": _doing(Effect.PROCESS, "signal thread"),
    "resource.prlimit": _doing(Effect.PROCESS, "limit"),
    "ctypes.dlopen": _doing(Effect.PROCESS, "native code of"),
    "ctypes.dlsym": lambda arguments: (Effect.PROCESS, flat(f"native code {arguments[-1]}", MAX_TARGET_CHARS)),
    "socket.sethostname": _doing(Effect.STATE, "host name"),
    "os.chdir": _doing(Effect.STATE, "working directory"),
    "os.putenv": _doing(Effect.STATE, "environment"),
    "os.unsetenv": _doing(Effect.STATE, "environment"),
}
"""Each operation once: events that only announce others (`shutil.*`, `urllib.Request`) are ignored."""

_NOBODY_MINDS: Final = frozenset({"/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/etc/localtime"})


def _own_places() -> tuple[str, ...]:
    """The folders of the interpreter, of installed packages and of the time zones."""
    named = sysconfig.get_paths()
    folders = {named[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")} | {"/usr/share/zoneinfo"}
    folders.add(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return tuple(sorted({place.rstrip("/") + "/" for one in folders for place in (one, os.path.realpath(one))}))


_OWN_PLACES: Final = _own_places()


# What Python does not carry by itself into threads.


def _carry_context() -> None:
    submit = concurrent.futures.ThreadPoolExecutor.submit
    start = threading.Thread.start

    def submit_in_context(
        self: concurrent.futures.ThreadPoolExecutor, work: Callable[..., Any], /, *args: Any, **named: Any
    ) -> Any:
        return submit(self, copy_context().run, work, *args, **named)

    def start_in_context(self: threading.Thread) -> None:
        context, run = copy_context(), self.run
        self.run = lambda: context.run(run)  # type: ignore[method-assign]
        start(self)

    concurrent.futures.ThreadPoolExecutor.submit = submit_in_context  # type: ignore[method-assign,assignment]
    threading.Thread.start = start_in_context  # type: ignore[method-assign]
    for name in ("start_new_thread", "start_new", "start_joinable_thread"):
        if hasattr(_thread, name):
            setattr(_thread, name, _in_context(getattr(_thread, name)))


def _in_context(begin: Callable[..., Any]) -> Callable[..., Any]:
    def begin_in_context(work: Callable[..., Any], *more: Any, **named: Any) -> Any:
        context = copy_context()
        return begin(lambda *args, **given: context.run(work, *args, **given), *more, **named)

    return begin_in_context
