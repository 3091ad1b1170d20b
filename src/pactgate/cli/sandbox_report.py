"""What `pactgate check` says about confined programs: the files that are opened for each of them without a declaration.

Looks at files and starts nothing. Must not: import the sandbox unless a server declares its effects.
"""

from __future__ import annotations

import os
import sys
from typing import Final

from pactgate.cli import terminal
from pactgate.config.model import Config
from pactgate.config.server_settings import ServerConfig

_SHOWN_PATHS: Final = 8


def opened_files(config: Config) -> dict[str, tuple[str, ...]]:
    """The paths by the id of the server, for servers whose effects are enforced."""
    confined = [
        one for one in config.servers.values() if one.enabled and one.effects is not None and one.effects.enforce
    ]
    if not confined:
        return {}
    from pactgate.upstreams.process.child import Launch, child_environment
    from pactgate.upstreams.process.sandbox import opened_for_itself

    def launch_of(server: ServerConfig) -> Launch:
        argv = (server.python or sys.executable, server.tools) if server.tools else (server.command or "", *server.args)
        return Launch(argv, child_environment(argv[0], server.env, os.environ), server.cwd)

    return {server.id: opened_for_itself(launch_of(server), config.private_paths) for server in confined}


def show_opened_files(opened: dict[str, tuple[str, ...]]) -> None:
    for server, paths in opened.items():
        more = f", … and {len(paths) - _SHOWN_PATHS} more; --json lists them all" if len(paths) > _SHOWN_PATHS else ""
        shown = ", ".join(paths[:_SHOWN_PATHS]) or "nothing beside the system's files"
        terminal.item("opens", "cyan", f"{server} may always read {shown}{more}")
