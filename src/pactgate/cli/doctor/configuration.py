"""Doctor, configuration: whether it exists and is valid, who may read it, and whether its variables are set.

Must not: show the values of variables.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from pactgate.cli.doctor.finding import Finding, FindingLevel, fail, ok, warn
from pactgate.config.load import find, load
from pactgate.config.model import Config
from pactgate.config.problems import ConfigProblem, ConfigurationError
from pactgate.config.validate import PLAIN_VARIABLES
from pactgate.core.failures import GatewayFailure
from pactgate.state.key_file import KeyFile

_TOPIC: Final = "configuration"


def examine_configuration(path: str | None, environ: Mapping[str, str]) -> tuple[Config | None, list[Finding]]:
    """The configuration, or None where it is invalid. Without a file it has no servers: `serve` runs its demo then."""
    variables = _WatchedEnvironment(environ)
    try:
        file = Path(path) if path is not None else find(Path.cwd(), environ)
        config = load(file, environ=variables)
    except ConfigurationError as error:
        found = [_finding(FindingLevel.FAIL, problem) for problem in error.problems]
        return None, [*found, warn(_TOPIC, "the servers are not checked until the configuration is valid")]
    if file is None:
        demo = "no file here: `pactgate serve` runs its demo, which is checked instead"
        return config, [ok(_TOPIC, demo)]
    count = len(config.servers)
    good = ok(_TOPIC, f"{file} is valid: {count} server{'s' * (count != 1)}")
    missing = [_finding(FindingLevel.FAIL, problem) for problem in config.unresolved]
    warnings = (_finding(FindingLevel.WARN, warning) for warning in config.warnings)
    found = [*(missing or [good]), *warnings, *_owner(file), *_keys(config), *variables.findings(missing)]
    return config, found


def _finding(level: FindingLevel, problem: ConfigProblem) -> Finding:
    return Finding(_TOPIC, level, str(replace(problem, hint="")), problem.hint)


def _owner(file: Path) -> Iterator[Finding]:
    """Who owns the file. The loader checks who may write it, and who may read the secrets in it."""
    try:
        status = file.stat()
    except OSError:
        return  # it was there a moment ago: it is being replaced
    if status.st_uid not in (os.getuid(), 0):
        hint = "It decides which programs are started: make sure that you trust its owner."
        yield warn(_TOPIC, f"{file} belongs to another user", hint)


def _keys(config: Config) -> Iterator[Finding]:
    """The file of API keys, where there is one."""
    try:
        ring = None if config.key_file is None else KeyFile(config.key_file).read()
    except GatewayFailure as failure:
        yield fail(_TOPIC, failure.message, "The gateway does not start with it.")
        return
    if ring is not None:
        live = sum(key.is_live(time.time()) for key in ring.keys)
        yield ok(_TOPIC, f"{config.key_file}: {live} API key{'s' * (live != 1)}")


class _WatchedEnvironment(Mapping[str, str]):
    """An environment that remembers which variables were read."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._read: dict[str, None] = {}

    def __getitem__(self, name: str) -> str:
        self._read[name] = None
        return self._environ[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._environ)

    def __len__(self) -> int:
        return len(self._environ)

    def findings(self, missing: Sequence[Finding]) -> Iterator[Finding]:
        """A variable that is not set is not needed, unless it is `missing`. Those of OpenTelemetry are read whatever the file says."""
        read = [name for name in self._read if name not in PLAIN_VARIABLES and not name.startswith("OTEL_")]
        filled = [name for name in read if self._environ.get(name)]
        if filled:
            yield ok(_TOPIC, f"variables that are set: {', '.join(filled)}")
        for name in read:
            if name not in self._environ:
                if not any(name in finding.text for finding in missing):
                    yield ok(_TOPIC, f"the variable {name} is not set: it has a default, or its server is disabled")
            elif not self._environ[name]:
                yield warn(_TOPIC, f"the variable {name} is set and empty", f"Set {name} before you start the gateway.")
