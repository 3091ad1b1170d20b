"""The log and the event loop of a serving process."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable

from pactgate.cli import terminal
from pactgate.cli.announce import SHOWN
from pactgate.config.model import Config
from pactgate.telemetry.log import LOGGER
from pactgate.telemetry.log_handler import LineHandler


def install_log(config: Config, *, is_announced: bool) -> None:
    """Write log lines to stderr. On a terminal, events that the announcer prints are not logged as well."""
    log = config.log
    on_terminal = terminal.is_terminal(sys.stderr)
    as_json = log.format == "json" or (log.format == "auto" and not on_terminal)
    hidden = SHOWN if is_announced and on_terminal and not as_json else frozenset()
    handler = LineHandler(sys.stderr.fileno(), as_json=as_json, hidden=frozenset(kind.__name__ for kind in hidden))
    handler.install(_level(config))


def set_level(config: Config) -> None:
    """Apply a level that was changed while the gateway runs."""
    LOGGER.setLevel(_level(config))


def _level(config: Config) -> int:
    return logging.getLevelNamesMapping()[config.log.level.upper()]


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
