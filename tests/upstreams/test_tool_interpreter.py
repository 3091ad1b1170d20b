"""Which interpreter runs a file of tools, and that one with packages of its own needs no installation of ours."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from msgspec.structs import replace

from pactgate.core.failures import GatewayFailure
from pactgate.upstreams.tool_interpreter import PACKAGE_FOLDER, folders_of, interpreter_of
from tests.journeys.test_python_tools import opened_gateway
from tests.support.python_tools import kit

TOOL = """
from pactgate import tool
import only_there

@tool
def where() -> str:
    "Says where."
    return only_there.PLACE
"""


def file_with(tmp_path: Path, text: str) -> str:
    path = tmp_path / "kit.py"
    path.write_text(text)
    return str(path)


def test_the_gateways_own_runs_a_file_that_asks_for_nothing(tmp_path: Path) -> None:
    assert Path(PACKAGE_FOLDER, "pactgate", "runner").is_dir()
    start = (sys.executable, "-P", "-m", "pactgate.runner")  # -P: what lies about there is not imported
    assert interpreter_of(file_with(tmp_path, "x = 1"), None) == start
    assert interpreter_of(str(tmp_path / "absent.py"), None) == start


def test_a_file_that_names_its_packages_is_run_by_uv_with_them(tmp_path: Path) -> None:
    block = '# /// script\n# dependencies = ["requests<3", "rich"]\n# ///\n'
    words = interpreter_of(file_with(tmp_path, block), None)
    assert words[:6] == ("uv", "run", "--quiet", "--no-project", "--python", sys.executable)
    assert words[6:12] == ("--with", "requests<3", "--with", "rich", "--", "python")
    other = interpreter_of(file_with(tmp_path, block.replace("# dep", '# requires-python = ">=3.12"\n# dep')), None)
    assert other[5] == ">=3.12"
    assert "msgspec" in other  # ours is built for this version


def test_a_block_that_can_not_be_read_is_a_failure_with_the_file(tmp_path: Path) -> None:
    with pytest.raises(GatewayFailure, match=r"kit\.py can't be read"):
        interpreter_of(file_with(tmp_path, "# /// script\n# dependencies = 1\n# ///\n"), None)


def test_a_confined_runner_may_read_its_environment() -> None:
    assert folders_of(None) == (PACKAGE_FOLDER,)
    assert "/srv/.venv" in folders_of("/srv/.venv/bin/python")


@pytest.fixture
def python(tmp_path: Path) -> str:
    """The interpreter of an environment with a package that nobody else has."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "own")], check=True)
    python = str(tmp_path / "own" / "bin" / "python")
    where = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = Path(subprocess.run(where, capture_output=True, text=True, check=True).stdout.strip())
    packages.mkdir(parents=True, exist_ok=True)
    (packages / "only_there.py").write_text('PLACE = "there"')
    return python


async def test_an_environment_of_its_own_needs_no_package_of_ours(tmp_path: Path, python: str) -> None:
    server = replace(kit(tmp_path), tools=file_with(tmp_path, TOOL), python=python)
    async with asyncio.timeout(20), opened_gateway(server) as opened:
        assert (await opened.invoke("where"))["data"]["structuredContent"] == {"result": "there"}


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """A folder with a package that is nowhere else, so that nothing has to be fetched."""
    folder = tmp_path / "packages"
    folder.mkdir()
    with zipfile.ZipFile(folder / "only_there-1.0-py3-none-any.whl", "w") as wheel:
        about = "only_there-1.0.dist-info"
        wheel.writestr("only_there.py", 'PLACE = "fetched"')
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: only-there\nVersion: 1.0\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")
    return folder


@pytest.mark.skipif(shutil.which("uv") is None, reason="NOT RUN: there is no uv")
async def test_the_packages_of_a_file_are_there_when_uv_runs_it(tmp_path: Path, packages: Path) -> None:
    block = '# /// script\n# dependencies = ["only-there==1.0"]\n# ///\n'
    env = {"UV_FIND_LINKS": str(packages), "UV_OFFLINE": "1", "UV_CACHE_DIR": str(tmp_path / "cache")}
    server = replace(kit(tmp_path), tools=file_with(tmp_path, block + TOOL), env=env)
    async with asyncio.timeout(20), opened_gateway(server) as opened:
        assert (await opened.invoke("where"))["data"]["structuredContent"] == {"result": "fetched"}
