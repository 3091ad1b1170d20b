"""A text is read by the reader of its format, and by that one alone."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pactgate.config.problems import ConfigFindings
from pactgate.config.reader import FORMATS, Format, read


@pytest.mark.parametrize(("form", "text"), [(Format.JSON, '{"a": 1}'), (Format.YAML, "a: 1"), (Format.TOML, "a = 1")])
def test_each_format_has_its_reader(form: Format, text: str) -> None:
    assert read(text, form, ConfigFindings("")) == {"a": 1}


@pytest.mark.parametrize("form", Format)
def test_what_can_not_be_read_is_a_problem_instead_of_a_value(form: Format) -> None:
    found = ConfigFindings("pactgate")
    assert read("{[", form, found) is None
    assert [problem.path for problem in found.problems] == [""]


def test_names_of_files_are_looked_for_in_one_order() -> None:
    assert list(FORMATS) == [".json", ".jsonc", ".yaml", ".yml", ".toml"]


@pytest.mark.parametrize(("form", "imported"), [("JSON", []), ("YAML", ["yaml"]), ("TOML", ["tomllib"])])
def test_only_the_reader_that_is_needed_is_imported(form: str, imported: list[str]) -> None:
    code = (
        "import sys; from pactgate.config import load, persist, problems, reader; "
        f"reader.read('', reader.Format.{form}, problems.ConfigFindings('')); "
        "print([name for name in ('yaml', 'tomllib', 'tomlkit') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout.strip() == str(imported)
