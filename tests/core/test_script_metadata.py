"""The packages that a file asks for (PEP 723)."""

from __future__ import annotations

import pytest

from pactgate.core.script_metadata import ScriptMetadata, read_script_metadata

BLOCK = """\
#!/usr/bin/env python
# /// script
# requires-python = ">=3.12"
# dependencies = [
#   "requests<3",
#
#   "rich",
# ]
# [tool.uv]
# x = 1
# ///
import requests
"""


def test_a_block_is_read_as_its_specification_says() -> None:
    assert read_script_metadata(BLOCK) == ScriptMetadata(("requests<3", "rich"), ">=3.12")
    assert read_script_metadata("# /// script\n# ///\n") is None  # a block has at least one line
    assert read_script_metadata("# /// script\n#\n# ///\n") == ScriptMetadata()
    assert read_script_metadata("x = '# /// script'\n") is None


@pytest.mark.parametrize("content", ["# dependencies = 1", "# dependencies = [", '# dependencies = "x"'])
def test_a_block_that_can_not_be_read_is_said_so(content: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        read_script_metadata(f"# /// script\n{content}\n# ///\n")
    with pytest.raises(ValueError, match="two blocks"):
        read_script_metadata("# /// script\n#\n# ///\n\n# /// script\n#\n# ///\n")
