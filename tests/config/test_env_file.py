from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pactgate.config.env_file import parse_env_file, with_variables
from pactgate.config.load import load
from pactgate.config.problems import ValueFault
from tests.config.writing import problems, written

TEXT = """
# a comment
A=1
export B = "two words" # why
C='as $it is'
D=
E=a#b # c
"""


def test_the_usual_form_is_read() -> None:
    assert parse_env_file(TEXT) == {"A": "1", "B": "two words", "C": "as $it is", "D": "", "E": "a#b"}


def test_a_line_that_is_none_is_named_and_not_repeated() -> None:
    fault = parse_env_file("A=1\nsecret stuff")
    assert isinstance(fault, ValueFault)
    assert "2" in fault.message
    assert "secret" not in fault.message


@given(
    st.dictionaries(
        st.from_regex(r"[A-Z_][A-Z0-9_]{0,9}", fullmatch=True),
        st.text(st.characters(codec="utf-8") | st.sampled_from('\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"\\=')),
    )
)
def test_what_is_written_is_read_back(variables: dict[str, str]) -> None:
    assert parse_env_file(with_variables("", variables)) == variables


def test_a_variable_is_replaced_and_the_rest_of_the_file_stays() -> None:
    assert with_variables("# mine\nA=1\nB=2\n", {"A": "3"}) == "# mine\nB=2\nA=3\n"


def configuration(folder: Path, variables: str, **entry: object) -> Path:
    (folder / "secrets.env").write_text(variables)
    (folder / "secrets.env").chmod(0o600)
    settings = {"envFile": "secrets.env", "mcpServers": {"x": {"command": "x", **entry}}}
    return written(folder, json.dumps(settings))


def test_the_variables_of_the_file_fill_the_configuration_and_are_masked(tmp_path: Path) -> None:
    config = load(configuration(tmp_path, "KEY=s3cret-value\n", env={"K": "${KEY}"}), environ={})
    assert config.servers["x"].env == {"K": "s3cret-value"}
    assert "s3cret-value" in config.secrets
    assert config.secret_files == (str(tmp_path / "secrets.env"),)
    assert str(tmp_path / "secrets.env") in config.private_paths


def test_the_environment_goes_before_the_file(tmp_path: Path) -> None:
    config = load(configuration(tmp_path, "KEY=file\n", env={"K": "${KEY}"}), environ={"KEY": "environment"})
    assert config.servers["x"].env == {"K": "environment"}


def test_a_file_that_others_may_read_is_a_warning_and_a_missing_one_a_problem(tmp_path: Path) -> None:
    path = configuration(tmp_path, "KEY=1\n")
    (tmp_path / "secrets.env").chmod(0o644)
    assert [warning.path for warning in load(path, environ={}).warnings] == ["envFile"]
    (tmp_path / "secrets.env").unlink()
    assert [problem.path for problem in problems(tmp_path, path.read_text())] == ["envFile"]


def test_a_server_gets_the_variables_of_its_own_file_as_in_an_editor(tmp_path: Path) -> None:
    (tmp_path / "github.env").write_text("TOKEN=t0ken-of-github\nMODE=slow\n")
    settings = {
        "servers": {"gh": {"command": "gh", "envFile": "${workspaceFolder}/github.env", "env": {"MODE": "fast"}}}
    }
    config = load(written(tmp_path, json.dumps(settings)), environ={})
    assert config.servers["gh"].env == {"TOKEN": "t0ken-of-github", "MODE": "fast"}
    assert "t0ken-of-github" in config.secrets
    (tmp_path / "github.env").unlink()
    assert [one.path for one in load(tmp_path / "pactgate.json", environ={}).unresolved] == ["servers.gh.envFile"]
