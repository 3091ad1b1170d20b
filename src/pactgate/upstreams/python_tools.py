"""Python tools as an upstream: the channel to the runner that serves a file of them (`python -m pactgate.runner`).

The runner is a child process like any other, with the same child reaper, bounds and sandbox. Must not: import the tools, or the runner.
Enforces S2/MCP-002 for Python tools: without a sandbox they are observed, with one they are held as well (D12).
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from msgspec.structs import replace

from pactgate.config.sections.effects import Effects
from pactgate.config.server_settings import ServerConfig
from pactgate.core.events import Emit
from pactgate.upstreams.channel import OutputLog
from pactgate.upstreams.process.child_reaper import ChildReaper
from pactgate.upstreams.process.stdio import StdioChannel
from pactgate.upstreams.tool_interpreter import folders_of, interpreter_of


def python_tools(
    config: ServerConfig,
    emit: Emit,
    child_reaper: ChildReaper,
    max_frame_bytes: int,
    private_paths: Sequence[str] = (),
    output: OutputLog | None = None,
) -> StdioChannel:
    assert config.tools is not None
    command, *words = interpreter_of(config.tools, config.python)
    return StdioChannel(
        config.id,
        command,
        (*words, *runner_options(config.tools, config.undeclared_effects, max_frame_bytes)),
        config.env,
        config.cwd or os.path.dirname(config.tools),
        emit,
        child_reaper=child_reaper,
        effects=_with_ours(config.effects, config.python),
        private_paths=private_paths,
        max_frame_bytes=max_frame_bytes,
        output=output,
    )


def runner_options(file: str, undeclared: str, max_frame_bytes: int) -> tuple[str, ...]:
    return ("--reports", "--undeclared", undeclared, "--max-result-bytes", str(max_frame_bytes), file)


def _with_ours(effects: Effects | None, python: str | None) -> Effects | None:
    return None if effects is None else replace(effects, read=(*effects.read, *folders_of(python)))
