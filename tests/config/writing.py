"""Configurations written to files, loaded, and what was said about them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pactgate.config.load import load
from pactgate.config.model import Config
from pactgate.config.problems import ConfigProblem, ConfigurationError

PROGRAM = {"command": "serve-files"}
TOKEN = "9c1e7b52d04f8a63-ops"


def written(folder: Path, text: str | bytes, suffix: str = ".json") -> Path:
    path = folder / f"pactgate{suffix}"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(0o600)
    return path


def loaded(folder: Path, settings: Mapping[str, Any] | str, suffix: str = ".json", **environ: str) -> Config:
    text = settings if isinstance(settings, str) else json.dumps(settings)
    return load(written(folder, text, suffix), environ=environ)


def problems(
    folder: Path, settings: Mapping[str, Any] | str | bytes, suffix: str = ".json", **environ: str
) -> tuple[ConfigProblem, ...]:
    """Every problem that `check` reports: those that stop the gateway, or those of servers whose variables are not set."""
    text = settings if isinstance(settings, str | bytes) else json.dumps(settings, indent=1)
    try:
        found = load(written(folder, text, suffix), environ=environ).unresolved
    except ConfigurationError as error:
        return error.problems
    assert found, "this configuration has no problem"
    return found


def paths(found: tuple[ConfigProblem, ...]) -> list[str]:
    return [problem.path for problem in found]


def server(**settings: Any) -> dict[str, Any]:
    """A configuration of one program with these settings."""
    return {"mcpServers": {"files": PROGRAM | settings}}


def remote(**settings: Any) -> dict[str, Any]:
    """A configuration of one remote server with these settings."""
    return {"mcpServers": {"crm": {"url": "https://crm.example/mcp"} | settings}}
