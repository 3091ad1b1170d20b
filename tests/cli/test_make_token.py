"""`pactgate token` makes a token that a gateway accepts by its digest alone."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.program import Served, demo, run, write_config


def test_a_gateway_that_knows_only_the_digest_accepts_the_token(tmp_path: Path) -> None:
    made = run(tmp_path, "token", "ann")
    token = made.stdout.strip()
    assert token not in made.stderr
    line = next(line for line in made.stderr.splitlines() if '"auth"' in line)
    write_config(tmp_path, {"almanac": demo("almanac")}, **json.loads(f"{{{line}}}"))
    with Served(tmp_path) as gateway:
        gateway.wait_for("ok +almanac")
        assert gateway.run("status", PACTGATE_TOKEN=token).returncode == 0
        assert "did not accept" in gateway.run("status", PACTGATE_TOKEN=f"{token}x").stderr


def test_programs_get_both_as_json(tmp_path: Path) -> None:
    made = json.loads(run(tmp_path, "token", "--json").stdout)
    assert len(made["token"]) >= 43
    assert made["digest"].startswith("sha256:")
