"""A live server on the command line: what is called there, and the file its findings are shown at."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from pactgate.cli import main
from pactgate.cli.errors import CommandError
from pactgate.cli.live_target import location_of, target_of
from pactgate.conformance.probe import ProbeTarget

RUDE = Path(__file__).parents[1] / "support" / "rude_upstream.py"


def test_calls_are_tools_with_their_arguments_as_json() -> None:
    found = target_of(["server"], [], ['echo={"message": "a=b"}', "ping"])
    assert found.calls == (("echo", {"message": "a=b"}), ("ping", {}))
    for wrong in ("echo={", "echo=[]", '={"a": 1}'):
        with pytest.raises(CommandError, match=r"not JSON|A call is written"):
            target_of(["server"], [], [wrong])


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository, from a folder below its root."""
    here = tmp_path / "servers"
    (tmp_path / ".git").mkdir()
    (here / "src" / "my_server").mkdir(parents=True)
    for file in ("serve.py", "src/my_server/__main__.py", "package.json"):
        (here / file).write_text("")
    monkeypatch.chdir(here)
    return tmp_path


def test_findings_are_shown_at_the_script_of_the_command(repository: Path) -> None:
    def shown(*command: str, given: str | None = None) -> str | None:
        return location_of(ProbeTarget(command=command), given)

    assert shown(sys.executable, "serve.py", "--port", "1") == "servers/serve.py"
    assert shown("python", str(repository / "servers" / "serve.py")) == "servers/serve.py"
    assert shown("python", "-m", "my_server") == "servers/src/my_server/__main__.py"
    assert shown("npx", "-y", "my-server") == "servers/package.json", "without a script: what describes the project"
    assert shown("python", str(RUDE)) == "servers/package.json", "not a file outside of the repository"
    assert location_of(ProbeTarget(url="http://127.0.0.1/mcp"), None) == "servers/package.json"
    assert shown("npx", "my-server", given="serve.py") == "servers/serve.py"
    with pytest.raises(CommandError, match="there is no file"):
        shown("npx", "my-server", given="nothing.py")


def test_without_any_such_file_there_is_no_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert location_of(ProbeTarget(command=("npx", "my-server")), None) is None


def judge(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main.run(["compliance", "invariants", "--live", *words, "--", sys.executable, "rude.py"]) == 1
    return capsys.readouterr().out


def test_the_annotations_of_a_live_server_point_into_the_repository(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pactgate.conformance.probe._SINGLE_S", 0.5)  # the server answers one request under another id
    (repository / "servers" / "rude.py").write_text(RUDE.read_text())
    (run,) = json.loads(judge(capsys, "--format", "sarif"))["runs"]
    places = [result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in run["results"]]
    assert set(places) == {"servers/rude.py"}
    lines = judge(capsys, "--format", "github", "--call", 'tell={"what": "x"}').splitlines()
    assert any(line.startswith("::error file=servers/rude.py,line=1,title=INV-007 ") for line in lines)
    assert any(line.startswith("::warning file=servers/rude.py,line=1,title=GW-042 ") for line in lines)


def test_what_needs_a_live_server_is_refused_without_one(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--call", "x={}"], ["--sarif-location", "x"]):
        assert main.run(["compliance", "invariants", "--capture", "x.json", *words]) == 2
    assert "need --live" in capsys.readouterr().err
