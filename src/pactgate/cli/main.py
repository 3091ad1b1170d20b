"""The entry point `pactgate`. Exit codes: 0 good, 1 findings or failures, 2 wrong invocation or configuration.

`serve` with plain options goes straight to work; the command tree with its help, completion and tables is imported only for
everything else, because a gateway should neither wait for it nor carry it.
"""

from __future__ import annotations

import os
import sys

INTERRUPTED = 130


def main() -> None:
    sys.exit(run(sys.argv[1:]))


def run(words: list[str]) -> int:
    try:
        return _run(words)
    except BrokenPipeError:
        # The reader has seen enough, as with `| head`. Nothing may be written when Python flushes at the end either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return INTERRUPTED


def _run(words: list[str]) -> int:
    from pactgate.cli.terminal import prepare_output

    prepare_output()
    if words[:1] == ["serve"]:
        from pactgate.cli.options import parse

        options = parse(words[1:])
        if options is not None:
            from pactgate.cli.serve import run as run_gateway

            return run_gateway(options)
    from pactgate.cli.commands import run_command

    return run_command(words)
