"""The entry point `pactgate`. Exit codes: 0 good, 1 findings or failures, 2 wrong invocation or configuration."""

from __future__ import annotations

import os
import sys


def main() -> None:
    sys.exit(run(sys.argv[1:]))


def run(words: list[str]) -> int:
    from pactgate.cli.commands import run_command
    from pactgate.cli.terminal import prepare_output

    prepare_output()
    try:
        code = run_command(words)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader closed the pipe, as `| head` does. Python must not complain when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code
