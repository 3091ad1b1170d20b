"""Doctor, this machine: Python, the packages, the features of the kernel, and the programs that start servers."""

from __future__ import annotations

import asyncio
import os
import platform
import re
import shutil
import signal
import sys
from collections.abc import Iterable, Iterator
from importlib import metadata
from typing import Final

from pactgate import __version__
from pactgate.cli.doctor.finding import Finding, fail, ok, warn
from pactgate.config.server_settings import ServerConfig
from pactgate.core.display import flat
from pactgate.upstreams.process.child import child_environment
from pactgate.upstreams.process.sandbox import probe

_TOPIC: Final = "machine"
_ONLY_ON_LINUX: Final = (
    "the kernel can't enforce the effects of servers (declared and observed only) or bound their memory and processes, "
    "and a server that detaches itself may outlive the gateway"
)
_OPTIONAL: Final = {"uvloop": "The gateway works without it, but slower. Run: pip install uvloop"}
_REQUIREMENT: Final = re.compile(r"([A-Za-z0-9._-]+)[^;]*?>=([0-9.]+)")
_PROGRAM_S: Final = 5.0
_LAUNCHERS: Final = {"npx": ("node", "npx"), "npm": ("node", "npm")}
_VERSIONED: Final = frozenset({"node", "npx", "npm", "uvx", "uv", "deno", "bun", "bunx", "pipx", "docker"})
_OLDEST_NODE: Final = 18


def examine_machine() -> list[Finding]:
    return [
        ok(
            _TOPIC,
            f"pactgate {__version__}, Python {platform.python_version()}, {platform.system()} {platform.release()}",
        ),
        *_packages(),
        *_kernel(),
    ]


def _packages() -> Iterator[Finding]:
    """Compare the requirements of the package with what is installed."""
    try:
        wanted = metadata.requires("pactgate") or []
    except metadata.PackageNotFoundError:
        yield warn(
            _TOPIC, "pactgate is not installed as a package, so its requirements can't be checked", "Run: make setup"
        )
        wanted = [f"{name}>=0" for name in _OPTIONAL]
    present: list[str] = []
    for line in wanted:
        parts = _REQUIREMENT.match(line)
        if parts is None or "extra ==" in line:
            continue
        name, least = parts[1], parts[2]
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            yield _missing(name, least)
            continue
        present.append(f"{name} {version}")
        if _numbers(version) < _numbers(least):
            yield fail(_TOPIC, f"{name} {version} is older than {least}", f"Run: pip install --upgrade {name}")
    yield ok(_TOPIC, f"packages: {', '.join(present)}")


def _missing(name: str, least: str) -> Finding:
    if name in _OPTIONAL:
        return warn(_TOPIC, f"{name} is not installed", _OPTIONAL[name])
    return fail(_TOPIC, f"{name} is not installed", f'Run: pip install "{name}>={least}"')


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version.split("+")[0])[:3])


def _kernel() -> Iterator[Finding]:
    if sys.platform != "linux":
        system = {"darwin": "macOS"}.get(sys.platform, sys.platform)
        yield warn(
            _TOPIC, f"{system}: {_ONLY_ON_LINUX}", "Clients and servers work as on Linux; run it there for protection."
        )
        return
    if _has_pidfd():
        yield ok(_TOPIC, "pidfd: the end of a child process is noticed at once")
    else:
        yield warn(_TOPIC, "no pidfd: the end of a child process is noticed a little later", "Use Linux 5.3 or newer.")
    if os.access("/bin/sh", os.X_OK):
        yield ok(_TOPIC, "/bin/sh: child processes are ended even when the gateway is killed")
    else:
        yield warn(
            _TOPIC, "there is no /bin/sh: child processes may outlive a gateway that is killed", "Install a shell."
        )
    support = probe()
    if support.landlock:
        yield ok(_TOPIC, f"Landlock, ABI {support.abi}: the kernel can confine child processes")
    else:
        hint = "Use Linux 5.13 or newer with landlock among the security modules (the boot option lsm=)."
        yield warn(_TOPIC, "no Landlock: the kernel can't confine child processes", hint)


def _has_pidfd() -> bool:
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True


async def examine_programs(servers: Iterable[ServerConfig]) -> list[Finding]:
    """The versions of the launchers that start these servers, each program once."""
    found: dict[str, dict[str, str]] = {}
    for server in servers:
        if server.command is not None:
            env = child_environment(server.command, server.env, os.environ)
            name = os.path.basename(server.command)
            for program in _LAUNCHERS.get(name, (name,)):
                path = shutil.which(program, path=env["PATH"]) if program in _VERSIONED else None
                if path is not None:
                    found.setdefault(path, env)
    return list(await asyncio.gather(*(_version(path, env) for path, env in found.items())))


async def _version(path: str, env: dict[str, str]) -> Finding:
    try:
        process = await asyncio.create_subprocess_exec(
            path,
            "--version",
            env=env,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as problem:
        return warn(_TOPIC, f"{path} can't be run: {problem.strerror}", "Install it again.")
    output = b""
    try:
        async with asyncio.timeout(_PROGRAM_S):
            output, _ = await process.communicate()
    except TimeoutError:
        return warn(_TOPIC, f"{path} --version took longer than {_PROGRAM_S:.0f} s", "Run it by hand to see why.")
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    version = flat(output.decode(errors="replace").partition("\n")[0], 60)
    return _version_finding(path, version, process.returncode)


def _version_finding(path: str, version: str, code: int | None) -> Finding:
    name = os.path.basename(path)
    if code:
        return warn(_TOPIC, f"{path} --version failed with exit code {code}", "Run it by hand to see why.")
    major = re.match(r"v(\d+)", version)
    if name == "node" and major and int(major[1]) < _OLDEST_NODE:
        hint = f"Most MCP servers need Node.js {_OLDEST_NODE} or newer."
        return warn(_TOPIC, f"{name} {version} at {path} is old", hint)
    return ok(_TOPIC, f"{name}: {version} at {path}")
