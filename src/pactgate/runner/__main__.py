"""`python -m pactgate.runner [options] FILE`: serve the tools of a file on stdin and stdout, or `--check` it."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from pathlib import Path

from pactgate.runner.process import check, run
from pactgate.runner.server import MAX_RESULT_BYTES


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m pactgate.runner", description=__doc__)
    parser.add_argument("file", type=Path, help="a Python file with tools")
    parser.add_argument(
        "--check", action="store_true", help="print what the file offers as JSON, or its problems; serve nothing"
    )
    parser.add_argument(
        "--undeclared",
        choices=("report", "refuse"),
        default="report",
        help="what happens to effects a tool does not declare",
    )
    parser.add_argument("--reports", action="store_true", help="tell the client what no answer can carry")
    parser.add_argument(
        "--max-result-bytes", type=int, default=MAX_RESULT_BYTES, metavar="N", help="longest line to write"
    )
    options = parser.parse_args()
    path = options.file.absolute()
    sys.path.insert(0, str(path.parent))
    if options.check:
        return asyncio.run(check(path))
    code = asyncio.run(
        run(
            path,
            refuses=options.undeclared == "refuse",
            reports=options.reports,
            max_result_bytes=options.max_result_bytes,
        )
    )
    if code:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # threads of tools that don't end would keep the process
    return 0


if __name__ == "__main__":
    sys.exit(main())
