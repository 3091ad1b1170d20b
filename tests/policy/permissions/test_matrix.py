"""The matrix says for each class and tool whether a call is allowed, and on what it depends."""

from __future__ import annotations

from pactgate.config.model import Config
from pactgate.config.sections.permissions import CallerClass, PermissionRule
from pactgate.core.values import Tool
from pactgate.policy.permissions.matrix import OTHERS, cells_of, class_names

TOOLS = [Tool("crm", name, f"crm.{name}", f"crm__{name}", b"{}", b"{}", "0") for name in ("read", "refund", "drop")]
RULES = (
    PermissionRule(allow=("crm.read",), to=("*",)),
    PermissionRule(allow=("crm.refund",), to=("finance",), when="arguments.amount < 100"),
)


def answers(config: Config, name: str) -> list[str]:
    return [cell.answer for cell in cells_of(config, name, TOOLS).values()]


def test_without_rules_every_class_may_call_everything() -> None:
    assert class_names(Config()) == [OTHERS]
    assert answers(Config(), OTHERS) == ["yes", "yes", "yes"]


def test_each_class_is_told_what_it_may_call_and_when() -> None:
    config = Config(callers={"finance": CallerClass(groups=("finance",))}, permissions=RULES)
    assert class_names(config) == ["finance", OTHERS]
    assert answers(config, "finance") == ["yes", "if", "no"]
    assert answers(config, OTHERS) == ["yes", "no", "no"]
    assert cells_of(config, "finance", TOOLS)["crm.refund"].conditions == ("when arguments.amount < 100",)


def test_a_class_that_takes_everybody_leaves_no_others() -> None:
    assert class_names(Config(callers={"all": CallerClass()})) == ["all"]
