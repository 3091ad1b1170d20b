"""Which packages a command line fetches without saying which version: `npx`, `bunx`, `uvx`, `docker run`, `podman run`.

Such a server is another program whenever somebody publishes one. Pure: looks at words only, and runs nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Final

_NPM: Final = ("npx", "bunx")
_PACKAGE_FLAGS: Final = {"-p", "--package", "--from"}
_VALUE_FLAGS: Final = {
    "-p",
    "--python",
    "--with",
    "--index-url",
    "--index",
    "--registry",
    "-c",
    "--call",
    "--directory",
}
_PLAIN_DOCKER_FLAGS: Final = {
    "--rm",
    "--init",
    "-i",
    "-t",
    "-d",
    "-it",
    "-ti",
    "--interactive",
    "--tty",
    "--privileged",
    "--read-only",
}
_VERSION: Final = re.compile(r"[^@]@v?\d|==|@[0-9a-f]{40}$")
_TAG: Final = re.compile(r":(?!latest$)[\w.-]+$")


def unpinned_package(command: str, args: Sequence[str]) -> str | None:
    """The package or image whose version is open; None where it is given, or nothing is fetched."""
    runner = os.path.basename(command).removesuffix(".cmd").removesuffix(".exe")
    if runner in ("docker", "podman"):
        image = _image(args)
        return None if image is None or "@sha256:" in image or _TAG.search(image) else image
    if runner in (*_NPM, "uvx"):
        package = _package(args, is_npm=runner in _NPM)
        is_local = package is None or package.startswith((".", "/", "~"))
        return None if is_local or package is None or _VERSION.search(package) else package
    return None


def _package(args: Sequence[str], *, is_npm: bool) -> str | None:
    flags = _PACKAGE_FLAGS if is_npm else {"--from"}
    words = iter(args)
    for word in words:
        name, equals, value = word.partition("=")
        if name in flags:
            return value if equals else next(words, None)
        if not word.startswith("-"):
            return word
        if word in _VALUE_FLAGS:
            next(words, None)
    return None


def _image(args: Sequence[str]) -> str | None:
    """The first word after `run` that is no flag and no value of one."""
    if "run" not in args:
        return None
    words = iter(args[list(args).index("run") + 1 :])
    for word in words:
        if not word.startswith("-"):
            return word
        if "=" not in word and word not in _PLAIN_DOCKER_FLAGS:
            next(words, None)
    return None
