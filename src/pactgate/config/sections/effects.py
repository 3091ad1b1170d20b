"""What a server's program may do beside answering: the section `effects` of one entry of `mcpServers`.

A declaration is complete: what it does not name is not allowed. A path that does not exist gives a warning.
Must not: know how effects are enforced. Enforces the declared part of S2/MCP-002 (decision D12).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final

from msgspec import Meta

from pactgate.config.problems import ConfigFindings, Path, show
from pactgate.config.sections import Folder, Section, doc, path_type

MAX_PATHS: Final = 64
MAX_PORTS: Final = 256
MIN_MEMORY: Final = 16 * 2**20
MAX_MEMORY: Final = 2**50
_UNITS: Final = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}

Port = Annotated[int, Meta(ge=1, le=65535)]
BoundPort = Annotated[int, Meta(ge=0, le=65535)]
Program = Annotated[str, path_type(lambda text: os.sep in text)]
"""A name without a slash is looked up when the program starts."""
Programs = Annotated[tuple[Program, ...], Meta(max_length=MAX_PATHS)]


MemorySize = Annotated[str, Meta(pattern=r"^[1-9][0-9]{0,8}(KiB|MiB|GiB)$")]


class Effects(Section, frozen=True, kw_only=True):
    """What the program may do beside answering; what is not named here is denied. Its own code, its interpreter and the system's
    libraries can always be read, but no files of the gateway (configuration, secrets, audit log, captures) and no `.env`."""

    read: Annotated[
        tuple[Folder, ...], doc("Files, and folders with everything in them, it may read.", max_length=MAX_PATHS)
    ] = ()
    write: Annotated[
        tuple[Folder, ...],
        doc("Files, and folders with everything in them, it may change and read.", max_length=MAX_PATHS),
    ] = ()
    connect: Annotated[
        tuple[Port, ...],
        doc("TCP ports, of any host, it may connect to. Looking up names needs `sockets`.", max_length=MAX_PORTS),
    ] = ()
    bind: Annotated[
        tuple[BoundPort, ...], doc("TCP ports it may listen on; 0 means any free one.", max_length=MAX_PORTS)
    ] = ()
    run: Annotated[
        bool | Programs,
        doc(
            "Whether it may start programs it can read, or a list of those it may start, by name or path. Package "
            "runners such as `npx` and `uvx` and most shell scripts need `true`."
        ),
    ] = False
    sockets: Annotated[bool, doc("Whether it may use UDP and Unix sockets.")] = False
    memory: Annotated[
        Annotated[int, Meta(ge=MIN_MEMORY, le=MAX_MEMORY)] | MemorySize | None,
        doc(
            "Memory it may use, in bytes or as `512MiB`: each process its private memory (RLIMIT_DATA, allocations beyond "
            "fail), and all of them together what is resident (checked five times a second, the server is ended beyond)."
        ),
    ] = None
    processes: Annotated[
        Annotated[int, Meta(ge=1, le=10000)] | None,
        doc(
            "Processes it may have at the same time, itself included; the first one beyond is refused, and the server ended."
        ),
    ] = None
    enforce: Annotated[bool, doc("Whether the kernel enforces this (Linux); `false` trusts the program.")] = True
    best_effort: Annotated[
        bool,
        doc(
            "Where this kernel can't enforce everything: `false` refuses to start the program, `true` starts it and "
            "says what is not enforced."
        ),
    ] = False

    @property
    def memory_bytes(self) -> int:
        """0 without a bound."""
        return bytes_of(self.memory or 0)


def bytes_of(size: int | str) -> int:
    return int(size[:-3]) * _UNITS[size[-3:]] if isinstance(size, str) else size


def check_effects(effects: dict[str, Any], path: Path, found: ConfigFindings) -> None:
    """Refuse bounds that have no effect or leave no room for a program, and warn of paths that do not exist."""
    for key in ("memory", "processes"):
        if effects.get(key) is not None and effects.get("enforce") is False:
            found.add(
                (*path, key), "This has no effect while enforce is false.", f"Remove {key}, or set enforce to true."
            )
    if (size := effects.get("memory")) is not None and not MIN_MEMORY <= bytes_of(size) <= MAX_MEMORY:
        found.add((*path, "memory"), f"{show(size)} is out of range.", "Use 16MiB to 1048576GiB.", at_value=True)
    for key in ("read", "write", "run"):
        texts = effects.get(key)
        for number, text in enumerate(texts if isinstance(texts, list) else ()):
            if os.path.isabs(text) and not os.path.exists(text):
                hint = "Nothing is allowed there if it is created after the start."
                found.warn((*path, key, number), f"{show(text)} does not exist.", hint)


def warn_of_own_files(servers: Mapping[str, Any], private: Iterable[str], found: ConfigFindings) -> None:
    """Warn of declared paths that have files of the gateway in them: a program that can change the configuration can change its rules."""
    for server, settings in servers.items():
        effects: Effects | None = settings.effects
        if effects is None or not effects.enforce:
            continue
        for key, verb, paths in (("read", "read", effects.read), ("write", "change", effects.write)):
            for number, path in enumerate(paths):
                if own := [one for one in private if _is_within(one, path)]:
                    message = f"The program can {verb} files of the gateway: {', '.join(show(os.path.basename(one)) for one in own)}."
                    hint = "Keep them in another folder, or name the folders the program needs."
                    found.warn(("mcpServers", server, "effects", key, number), message, hint)


def _is_within(path: str, folder: str) -> bool:
    real, outer = os.path.realpath(path), os.path.realpath(folder)
    return real == outer or real.startswith(outer.rstrip(os.sep) + os.sep)
