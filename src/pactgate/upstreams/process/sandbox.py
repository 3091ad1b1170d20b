"""Turns a declaration of effects into sandbox rules, finds out which of them this kernel can enforce, and builds the launcher's command.

A declaration is complete, so the rules list everything: what is declared, and the little that every program needs to start.
Must not: restrict this process (`launcher.py` restricts the child), or call a rule "enforced" that is not.
Enforces S2/MCP-002 for child processes (decision D12).

The level says what no kernel can enforce yet: with `write` declared, modes, owners and times of files elsewhere; with `bind` declared,
listening without binding first. Two limits remain: rules are about ports, not hosts; and a list in `run` is about programs the kernel is
asked to start. All code in the child, however it got there, runs under the same rules.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import Struct

from pactgate.config.sections.effects import Effects
from pactgate.upstreams.process import launcher
from pactgate.upstreams.process.child import Launch, SpawnError, explain_spawn_error
from pactgate.upstreams.process.executable import Executable, resolve_executable

LAUNCHER: Final = str(Path(launcher.__file__))

SYSTEM_READ: Final = (
    *("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/nix/store"),
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/ssl/openssl.cnf"),
    *("/dev/zero", "/dev/random", "/dev/urandom"),
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/sys/vm", "/sys/devices/system/cpu"),
    *(f"/proc/self/{name}" for name in ("auxv", "cgroup", "cmdline", "comm", "environ", "io", "limits", "maps")),
    *(f"/proc/self/{name}" for name in ("oom_score_adj", "smaps", "smaps_rollup", "stat", "statm", "status")),
)
"""Paths every program may read: the system's programs and libraries, what loaders and language runtimes read when they start, and what
/proc has about the program itself. Not the connections and mounts of the machine, which are there as well (`/proc/self/net`,
`/proc/self/mounts`), /etc/passwd, temporary directories, home directories or other processes."""

SYSTEM_LIST: Final = ("/proc/self",)
"""Folders every program may list, with all folders in them: its descriptors and threads."""

SYSTEM_WRITE: Final = ("/dev/null", "/dev/full")

NETWORK_READ: Final = (
    *("/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/nsswitch.conf", "/etc/gai.conf", "/etc/services"),
    *("/etc/ssl/certs", "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted", "/etc/ca-certificates"),
)
"""Paths a program with network access may read as well: name resolution and certificate authorities. No private keys."""

DECLARED: Final = "declared"
ENFORCED: Final = "enforced"
METADATA_ELSEWHERE: Final = "modes, owners and times of files elsewhere"
NUMBER_OF_PROCESSES: Final = "the number of processes"
ANY_FREE_PORT: Final = "listening on a port the kernel chooses"


class SandboxSupport(Struct, frozen=True):
    """What this kernel can enforce. `details` says in words what it can't."""

    abi: int
    landlock: bool
    seccomp: bool
    details: tuple[str, ...] = ()


class SandboxRules(Struct, frozen=True):
    """What the launcher is told. Every list names all that is allowed. `lists` is about folders that may be listed, but not read.

    `memory` is in bytes; 0 is no bound. `forks` is the launcher's end of the socket of a `ForkGate`, or -1.
    """

    lists: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    execute: tuple[str, ...] = ()
    connect: tuple[int, ...] = ()
    bind: tuple[int, ...] = ()
    run: Literal["any", "listed", "none"] = "none"
    sockets: bool = False
    devices: tuple[str, ...] = ()
    memory: int = 0
    forks: int = -1
    best_effort: bool = False


class SandboxedLaunch(Struct, frozen=True):
    """A program ready to start in its sandbox, and how much of its declaration is enforced."""

    launch: Launch
    level: str


def probe() -> SandboxSupport:
    """Find out what this kernel can enforce. Changes nothing."""
    abi, seccomp = launcher.landlock_abi(), launcher.syscall_numbers() is not None
    return SandboxSupport(abi, abi > 0, seccomp, tuple(_lacks(abi, seccomp)))


def _lacks(abi: int, seccomp: bool) -> Iterable[str]:
    if abi == 0:
        yield "no Landlock: files, TCP ports and signals can't be enforced"
    needed = ((launcher.ABI_TRUNCATE, "cutting files short"), (launcher.ABI_TCP, "TCP ports"))
    for since, what in (*needed, (launcher.ABI_SCOPE, "signals")):
        if 0 < abi < since:
            yield f"Landlock ABI {abi}: {what} can't be enforced (needs ABI {since})"
    if not seccomp:
        yield "no seccomp filter for this machine: UDP, Unix sockets and starting programs can't be enforced"


def rules_of(effects: Effects, program: Executable, listed: tuple[Executable, ...] = ()) -> SandboxRules:
    """The rules for a program with these effects. `listed` are the existing programs that `run` names."""
    uses_network = bool(effects.connect or effects.bind or effects.sockets)
    executes = [file for one in (program, *listed) for file in one.executes] if listed else []
    reads = [
        *SYSTEM_READ,
        *(NETWORK_READ if uses_network else ()),
        *program.reads,
        *(place for one in listed for place in one.reads),
    ]
    return SandboxRules(
        lists=_once((*SYSTEM_LIST, *program.lists, *(place for one in listed for place in one.lists))),
        read=_once((*reads, *effects.read)),
        write=_once(effects.write),
        execute=_once(executes),
        connect=effects.connect,
        bind=effects.bind,
        run="listed" if listed else "any" if effects.run is True else "none",
        sockets=effects.sockets,
        devices=SYSTEM_WRITE,
        memory=effects.memory_bytes,
        best_effort=effects.best_effort,
    )


def _once(places: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(places))


def unenforceable(rules: SandboxRules, support: SandboxSupport) -> tuple[str, ...]:
    """The rules this kernel can't enforce, in words."""
    return tuple(launcher.unenforceable_rules(msgspec.to_builtins(rules), support.abi, support.seccomp))


def level_of(rules: SandboxRules, support: SandboxSupport) -> str:
    """How much of the declaration is enforced, as shown to users."""
    if not support.landlock and not support.seccomp:
        return DECLARED
    missing = [*unenforceable(rules, support)]
    if rules.write:
        missing.append(METADATA_ELSEWHERE)
    if rules.bind and 0 not in rules.bind:
        missing.append(ANY_FREE_PORT)
    return all_but(ENFORCED, *missing)


def all_but(level: str, *missing: str) -> str:
    """The level without what could not be enforced."""
    if not missing or level == DECLARED:
        return level
    return f"{'partly enforced: all but' if level == ENFORCED else f'{level},'} {', '.join(missing)}"


def command_line(rules: SandboxRules, program: Executable) -> tuple[str, ...]:
    """The launcher with its rules, followed by the program."""
    text = msgspec.json.encode(rules).decode()
    return (sys.executable, "-I", "-S", LAUNCHER, text, "--", *program.argv)


def confine(
    launch: Launch,
    effects: Effects,
    *,
    private: Sequence[str] = (),
    forks: int = -1,
    ask: Callable[[], SandboxSupport] = probe,
) -> SandboxedLaunch:
    """The same program, started through the launcher. Raises SpawnError if it does not exist or its rules can't be enforced.

    `private` are files and folders of the gateway that are not opened, unless `effects` itself names them. `forks` is the launcher's end
    of a `ForkGate`.
    """
    if not effects.enforce:
        return SandboxedLaunch(launch, DECLARED)
    program = resolve_executable(launch.argv, launch.cwd, launch.env, private)
    if program is None:
        raise explain_spawn_error(_why_not_found(launch), launch)
    names = effects.run if isinstance(effects.run, tuple) else ()
    resolved = {name: resolve_executable((name,), launch.cwd, launch.env, private) for name in names}
    if lost := ", ".join(repr(name) for name, one in resolved.items() if one is None):
        raise SpawnError(f"`effects.run` names programs that can't be found or run: {lost}", permanent=True)
    rules, support = rules_of(effects, program, tuple(filter(None, resolved.values()))), ask()
    if (missing := unenforceable(rules, support)) and not effects.best_effort:
        raise SpawnError(
            f"this kernel can't enforce its `effects`: {', '.join(missing)} ({'; '.join(support.details)}); set "
            "`effects.bestEffort` to start it with what can be enforced, or `effects.enforce` to false to trust it",
            permanent=True,
        )
    if not support.seccomp:
        forks = -1  # no filter asks, and the program must not get the socket
    rules = msgspec.structs.replace(rules, read=tuple(filter(_is_here, rules.read)), forks=forks)
    confined = Launch(command_line(rules, program), launch.env, launch.cwd, (forks,) if forks >= 0 else ())
    return SandboxedLaunch(confined, level_of(rules, support))


def opened_for_itself(launch: Launch, private: Sequence[str]) -> tuple[str, ...]:
    """What a program may read without a declaration, beside the system's own files: its files and its interpreter's."""
    program = resolve_executable(launch.argv, launch.cwd, launch.env, private)
    reads = program.reads if program is not None else ()
    return tuple(path for path in reads if not any(path == one or path.startswith(one + "/") for one in SYSTEM_READ))


def _is_here(place: str) -> bool:
    """Whether a path is kept: system paths only if they exist. The launcher reports a declared path that is missing."""
    return place not in (*SYSTEM_READ, *NETWORK_READ) or os.path.exists(place)


def _why_not_found(launch: Launch) -> OSError:
    file = os.path.join(launch.cwd or "", launch.argv[0])
    number = errno.EACCES if os.sep in launch.argv[0] and os.path.exists(file) else errno.ENOENT
    return OSError(number, os.strerror(number))
