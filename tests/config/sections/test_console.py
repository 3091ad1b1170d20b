from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pactgate.config.model import Config
from pactgate.config.sections.auth import Auth
from pactgate.config.sections.console import ConsoleSection
from pactgate.config.sections.listen import ListenSection
from tests.config.writing import problems


@pytest.mark.parametrize(
    ("host", "enabled", "anonymous", "is_served"),
    [
        ("127.0.0.1", None, None, True),
        ("127.0.0.1", False, None, False),
        ("0.0.0.0", None, None, False),
        ("0.0.0.0", True, None, True),
        ("0.0.0.0", True, True, False),
    ],
)
def test_beyond_loopback_the_console_has_to_be_enabled_and_needs_credentials(
    host: str, enabled: bool | None, anonymous: bool | None, is_served: bool
) -> None:
    config = Config(
        listen=ListenSection(host=host), console=ConsoleSection(enabled=enabled), auth=Auth(anonymous=anonymous)
    )
    assert config.has_console is is_served


def test_a_console_for_everybody_is_a_problem_of_the_configuration(tmp_path: Path) -> None:
    file: dict[str, Any] = {"listen": {"host": "0.0.0.0"}, "console": {"enabled": True}, "auth": {"anonymous": True}}
    assert any(problem.path == "console.enabled" for problem in problems(tmp_path, file))
