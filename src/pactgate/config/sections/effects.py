"""What a server's program may do beside answering: the section `effects` of one entry of `mcpServers`.

A declaration is complete: what it does not name is not allowed. Paths are made absolute here, so that nothing later depends on
where the gateway was started. A path that does not exist gives a warning. Must not: know how effects are enforced.
Enforces the declared part of S2/MCP-002 (decision D12).
"""

from __future__ import annotations

import os.path
from typing import Annotated, Any, Final

from msgspec import Meta

from pactgate.config.problems import ConfigFindings, Path, show
from pactgate.config.sections import Folder, Section, doc

MAX_PATHS: Final = 64
MAX_PORTS: Final = 256

Port = Annotated[int, Meta(ge=1, le=65535)]
BoundPort = Annotated[int, Meta(ge=0, le=65535)]
Programs = Annotated[tuple[Folder, ...], Meta(max_length=MAX_PATHS)]


class Effects(Section, frozen=True, kw_only=True):
    """What the program may do beside answering; what is not named here is denied. Its own files, its interpreter and the system's
    libraries can always be read."""

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
    enforce: Annotated[bool, doc("Whether the kernel enforces this (Linux); `false` trusts the program.")] = True
    best_effort: Annotated[
        bool,
        doc(
            "Where this kernel can't enforce everything: `false` refuses to start the program, `true` starts it and "
            "says what is not enforced."
        ),
    ] = False


def settle_effects(effects: dict[str, Any], path: Path, found: ConfigFindings, folder: str) -> dict[str, Any]:
    """The declaration with absolute paths. Names of programs without a slash stay names: they are looked up when it starts."""
    base = os.path.abspath(folder or ".")
    settled = dict(effects)
    for key in ("read", "write", "run"):
        texts = effects.get(key)
        if not isinstance(texts, list):
            continue
        settled[key] = [text if key == "run" and os.sep not in text else _absolute(base, text) for text in texts]
        for number, (text, full) in enumerate(zip(texts, settled[key], strict=True)):
            if os.path.isabs(full) and not os.path.exists(full):
                hint = "Nothing is allowed there if it is created after the start."
                found.warn((*path, key, number), f"{show(text)} does not exist.", hint)
    return settled


def _absolute(base: str, text: str) -> str:
    return os.path.normpath(os.path.join(base, text))
