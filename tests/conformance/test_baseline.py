"""The file of known failures."""

from __future__ import annotations

from pathlib import Path

import pytest

from pactgate.conformance.baseline import BaselineError, load
from pactgate.conformance.report import BaselineEntry


@pytest.mark.parametrize(
    "text",
    [
        "server:\n  - INV-002\n  - {rule_id: gw-040, server_label: a, reason: r, tracking: t}\n",
        "- INV-002\n- rule_id: GW-040\n  server_label: a\n  reason: r\n  tracking: t\n",
        '{"server": ["inv-002", {"rule_id": "GW-040", "server_label": "a", "reason": "r", "tracking": "t"}]}',
        "\ufeff- INV-002\n- {rule_id: GW-040, server_label: a, reason: r, tracking: t}\n",
    ],
    ids=["mapping", "list", "json", "bom"],
)
def test_a_baseline_is_a_list_of_rules_bare_or_with_reasons(tmp_path: Path, text: str) -> None:
    path = tmp_path / "baseline.yml"
    path.write_text(text, encoding="utf-8")
    assert load(path) == (BaselineEntry("INV-002"), BaselineEntry("GW-040", "a", "r", "t"))


def test_an_empty_list_expects_nothing(tmp_path: Path) -> None:
    path = tmp_path / "baseline.yml"
    path.write_text("server: []\n")
    assert load(path) == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7",
        "a: 1",
        "server: INV-002",
        "- INV-999",
        "- 7",
        "- {rule: INV-001}",
        "- {rule_id: 7}",
        "- {reason: x}",
        "- [",
        "- !!python/object:os.system x",
    ],
)
def test_what_is_no_baseline_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "baseline.yml"
    path.write_text(text)
    with pytest.raises(BaselineError, match=r"baseline\.yml"):
        load(path)


def test_a_missing_or_unreadable_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BaselineError):
        load(tmp_path / "missing.yml")
    (tmp_path / "bytes.yml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BaselineError):
        load(tmp_path / "bytes.yml")
