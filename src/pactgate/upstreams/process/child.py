"""One child process and its process group: started without a shell, watched by its pid, ended for certain.

The process itself is watched, not its pipes, so a grandchild that holds the pipes can't hide its death. The group is killed before its
leader is reaped: until then the kernel can't reuse the number. Must not: read what a child writes, run a shell, or hand down more of the
gateway's environment than the names listed here. Enforces S1/XC-003 for child processes.

The child is started on the event loop, in about a millisecond. `Popen` uses vfork and holds the interpreter lock meanwhile, so a thread
would block as long; and as nothing waits between start and registration, no cancellation can lose a process.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from typing import IO, Final, Protocol

from msgspec import Struct

SAFE_ENVIRONMENT: Final = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER")
"""The variables of the gateway's environment that every child gets; all others come from the configuration."""

LAUNCHER_ENVIRONMENT: Final = (
    *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("NPM_CONFIG_CACHE", "NPM_CONFIG_REGISTRY", "NPM_CONFIG_USERCONFIG", "npm_config_cache", "npm_config_registry"),
    *("UV_CACHE_DIR", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_OFFLINE", "UV_PYTHON_INSTALL_DIR", "UV_TOOL_DIR"),
    *("PIP_INDEX_URL", "PIPX_HOME"),
)
"""Variables that package runners (`LAUNCHERS`) get as well: they download. Values with an `@` may hold a password and are skipped."""

LAUNCHERS: Final = frozenset({"npx", "npm", "pnpm", "yarn", "bunx", "bun", "deno", "uvx", "uv", "pipx"})

MARK_NAME: Final = "PACTGATE_CHILD"
"""The variable by which the child reaper finds processes that have detached from their group."""

EXIT_POLL_S: Final = 0.1
REAP_AFTER_KILL_S: Final = 0.5

_NO_RETRY: Final = frozenset(
    {errno.ENOENT, errno.EACCES, errno.ENOTDIR, errno.ENOEXEC, errno.E2BIG, errno.ELOOP, errno.ENAMETOOLONG}
)


class Launch(Struct, frozen=True):
    """A program to start. `env` is its whole environment, `fds` are the descriptors it gets beside the standard three."""

    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str | None = None
    fds: tuple[int, ...] = ()


class ShutdownSteps(Struct, frozen=True):
    """How long the gateway waits after each step of ending a child: closing its stdin, SIGTERM, SIGKILL."""

    eof_s: float = 1.0
    term_s: float = 2.0
    kill_s: float = 2.0


class SpawnError(Exception):
    """The program could not be started; the message says what to do. `permanent`: another attempt fails as well."""

    def __init__(self, text: str, *, permanent: bool) -> None:
        super().__init__(text)
        self.permanent = permanent


class GroupReaper(Protocol):
    """Ends process groups that outlive the gateway, and processes that have detached from them (`child_reaper`)."""

    def new_mark(self) -> str: ...

    def watch(self, pgid: int, mark: str) -> None: ...

    def release(self, pgid: int) -> None: ...


def child_environment(command: str, given: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, str]:
    """The environment of a child: the safe variables of the gateway, overridden by those of the configuration."""
    env = {name: ours[name] for name in SAFE_ENVIRONMENT if name in ours}
    if os.path.basename(command) in LAUNCHERS:
        env.update((name, ours[name]) for name in LAUNCHER_ENVIRONMENT if name in ours and "@" not in ours[name])
    env.setdefault("PATH", os.defpath)
    env.update(given)
    return env


def describe_exit(returncode: int) -> str:
    if returncode >= 0:
        return f"ended with exit code {returncode}"
    return f"was ended by {signal_name(-returncode)}"


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class ChildProcess:
    """A running child that leads its own session and group. `on_exit` is called once, on the loop, after the child was reaped."""

    def __init__(
        self, popen: subprocess.Popen[bytes], guard: GroupReaper | None, on_exit: Callable[[int], None]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._popen = popen
        self._guard = guard
        self._on_exit = on_exit
        self._exited: asyncio.Future[int] = self._loop.create_future()
        self._ending: asyncio.Task[None] | None = None
        self._watch = _ExitWatch(popen.pid, self._loop, self._on_death)

    @classmethod
    def spawn(
        cls, launch: Launch, on_exit: Callable[[int], None], *, guard: GroupReaper | None, output: int = subprocess.PIPE
    ) -> ChildProcess:
        """Start a program. Raises SpawnError."""
        mark = guard.new_mark() if guard is not None else ""
        try:
            popen = subprocess.Popen(  # argv only, never a shell
                launch.argv,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                bufsize=0,
                env=launch.env | {MARK_NAME: mark} if mark else launch.env,
                cwd=launch.cwd,
                close_fds=True,
                pass_fds=launch.fds,
                start_new_session=True,
            )
        except (OSError, ValueError) as problem:
            raise explain_spawn_error(problem, launch) from problem
        if guard is not None:
            guard.watch(popen.pid, mark)
        return cls(popen, guard, on_exit)

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def returncode(self) -> int | None:
        return self._popen.returncode

    @property
    def pipes(self) -> tuple[IO[bytes] | None, IO[bytes] | None, IO[bytes] | None]:
        """The child's stdin, stdout and stderr, unbuffered. The caller closes them."""
        return self._popen.stdin, self._popen.stdout, self._popen.stderr

    def signal_group(self, number: signal.Signals) -> None:
        """Signal all processes of the group. Does nothing after the leader was reaped, because the number may be reused."""
        if self.returncode is None:
            try:
                os.killpg(self.pid, number)
            except (ProcessLookupError, PermissionError):
                return  # no process is left, or the rest runs as another user

    async def end(self, shutdown_steps: ShutdownSteps) -> None:
        """End the child step by step. The caller has done the first step, closing its stdin.

        Bounded. Concurrent callers share it, and it goes on if a caller is cancelled.
        """
        if self._ending is None:
            if self.returncode is not None:
                return
            self._ending = self._loop.create_task(self._shut_down(shutdown_steps), name=f"end process {self.pid}")
            self._ending.add_done_callback(self._finish)
        await asyncio.shield(self._ending)

    async def _shut_down(self, shutdown_steps: ShutdownSteps) -> None:
        if await self._gone_within(shutdown_steps.eof_s):
            return
        self.signal_group(signal.SIGTERM)
        self.signal_group(signal.SIGCONT)  # a stopped process gets no other signal before it goes on
        if await self._gone_within(shutdown_steps.term_s):
            return
        self.signal_group(signal.SIGKILL)
        await self._gone_within(shutdown_steps.kill_s)

    async def _gone_within(self, timeout_s: float) -> bool:
        await asyncio.wait([self._exited], timeout=timeout_s)
        return self.returncode is not None

    def _finish(self, ending: asyncio.Task[None]) -> None:
        """If the ending itself was cancelled, the loop is shutting down: kill the child now."""
        if ending.cancelled() and self.returncode is None:
            self.signal_group(signal.SIGKILL)
            try:
                self._popen.wait(REAP_AFTER_KILL_S)
            except subprocess.TimeoutExpired:
                return  # stuck in the kernel; the exit watch reaps it when it dies
            self._on_death()

    def _on_death(self) -> None:
        """The leader is dead and not reaped yet: kill its group, then reap it."""
        self._watch.stop()
        self.signal_group(signal.SIGKILL)
        if self._guard is not None:
            self._guard.release(self.pid)
        returncode = self._popen.wait()
        self._on_exit(returncode)
        if not self._exited.done():
            self._exited.set_result(returncode)


class _ExitWatch:
    """Calls back once when a child is dead and not yet reaped. Uses a pidfd, or polls where there is none."""

    def __init__(self, pid: int, loop: asyncio.AbstractEventLoop, on_death: Callable[[], None]) -> None:
        self._pid = pid
        self._loop = loop
        self._on_death = on_death
        self._timer: asyncio.TimerHandle | None = None
        self._fd = _open_pidfd(pid)
        if self._fd is not None:
            loop.add_reader(self._fd, on_death)
        else:
            self._ask_later()

    def stop(self) -> None:
        if self._fd is not None:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ask_later(self) -> None:
        self._timer = self._loop.call_later(EXIT_POLL_S, self._ask)

    def _ask(self) -> None:
        if _is_dead(self._pid):
            self._on_death()
        else:
            self._ask_later()


def _open_pidfd(pid: int) -> int | None:
    """None where the kernel, a sandbox or Python has no pidfd, and when file descriptors have run out."""
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _is_dead(pid: int) -> bool:
    """Whether a child has ended. Does not reap it, so that the kernel can't reuse its number."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def explain_spawn_error(problem: OSError | ValueError, launch: Launch) -> SpawnError:
    """Why a program could not be started, what to do about it, and whether another attempt can help."""
    if isinstance(problem, ValueError):
        return SpawnError(
            f"its command, arguments or environment hold a character no program can be given ({problem})",
            permanent=True,
        )
    if launch.cwd is not None and not os.access(launch.cwd, os.X_OK):
        seen = "can't be entered" if os.path.isdir(launch.cwd) else "does not exist"
        return SpawnError(f"the working directory {launch.cwd!r} {seen}; create it or correct `cwd`", permanent=True)
    if problem.errno not in _NO_RETRY:
        return SpawnError(f"the system could not start {launch.argv[0]!r}: {problem.strerror}", permanent=False)
    return SpawnError(_why_not_runnable(problem.errno, launch), permanent=True)


def _why_not_runnable(number: int | None, launch: Launch) -> str:
    program = launch.argv[0]
    if number == errno.E2BIG:
        return f"the arguments and environment of {program!r} are longer than the system allows"
    if number == errno.ENOEXEC:
        return (
            f"{program!r} is no program this machine can run; a script needs a first line like `#!/usr/bin/env python3`"
        )
    if number == errno.EACCES:
        return f"{program!r} may not be executed; give the path of a program, or make the file executable (chmod +x)"
    if os.sep not in program:
        return f"the program {program!r} was not found on PATH; install it or give the full path"
    if os.path.isfile(os.path.join(launch.cwd or "", program)):
        return f"the interpreter named in the first line of {program!r} was not found; install it or correct that line"
    return f"the program {program!r} does not exist; install it or correct the path"
