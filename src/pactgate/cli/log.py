"""The log and the event loop of a serving process."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable

from pactgate.cli import terminal
from pactgate.cli.announce import SHOWN
from pactgate.config.model import Config
from pactgate.telemetry.log import Level, Telemetry


def make_telemetry(config: Config, *, is_announced: bool) -> Telemetry:
    """A log on stderr. On a terminal it leaves out what the announcer prints there."""
    log = config.log
    on_terminal = terminal.is_terminal(sys.stderr)
    as_json = log.format == "json" or (log.format == "auto" and not on_terminal)
    return Telemetry(
        sys.stderr.fileno(),
        level=Level[log.level.upper()],
        as_json=as_json,
        secrets=config.secrets,
        hidden=SHOWN if is_announced and on_terminal and not as_json else frozenset(),
    )


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
