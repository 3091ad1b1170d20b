"""A view that shows nothing, or means something else than it says, is a problem with a place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.config.writing import loaded, problems

SERVERS = {"github": {"url": "http://127.0.0.1:1/mcp"}, "files": {"url": "http://127.0.0.1:2/mcp"}}


def settings(view: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"mcpServers": SERVERS, "views": {"review": view}, **more}


def test_a_view_with_everything_is_accepted(tmp_path: Path) -> None:
    view = {
        "tools": ["github.pull_*", "category:query"],
        "exclude": ["github.delete_*"],
        "prompts": ["github.*"],
        "resources": ["files+file:///docs/*"],
        "rename": {"github.pull_request_review": "review"},
        "describe": {"github.pull_request_review": "Review one pull request."},
        "arguments": {"github.*": {"owner": "acme"}},
        "surface": "search",
        "pin": ["github.search_issues"],
        "splitCalls": True,
    }
    config = loaded(tmp_path, settings(view, callers={"ci": {"view": "review"}}))
    assert config.warnings == ()
    assert config.callers["ci"].view == "review"


@pytest.mark.parametrize(
    ("view", "path"),
    [
        ({}, "views.review.tools"),
        ({"tools": []}, "views.review.tools"),
        ({"tools": ["git.*"]}, "views.review.tools[0]"),
        ({"tools": ["categori:query"]}, "views.review.tools[0]"),
        ({"tools": ["*"], "exclude": ["server:git"]}, "views.review.exclude[0]"),
        ({"tools": ["*"], "rename": {"review": "x"}}, "views.review.rename.review"),
        ({"tools": ["*"], "rename": {"github.a": "a b"}}, 'views.review.rename["github.a"]'),
        ({"tools": ["*"], "rename": {"github.a": "x", "github.b": "x"}}, 'views.review.rename["github.b"]'),
        ({"tools": ["*"], "rename": {"github.a": "find_tools"}}, 'views.review.rename["github.a"]'),
        ({"tools": ["*"], "rename": {"github.a": "files__read"}}, 'views.review.rename["github.a"]'),
        ({"tools": ["*"], "pin": ["github.a"]}, "views.review.pin"),
        ({"tools": ["*"], "splitCalls": True}, "views.review.splitCalls"),
        ({"tools": ["*"], "surface": "lazy"}, "views.review.surface"),
    ],
)
def test_a_view_without_meaning_is_refused(view: dict[str, Any], path: str, tmp_path: Path) -> None:
    [problem, *_] = problems(tmp_path, settings(view))
    assert problem.path == path
    assert problem.line is not None


def test_a_class_with_an_unknown_view_is_refused(tmp_path: Path) -> None:
    [problem] = problems(tmp_path, settings({"tools": ["*"]}, callers={"ci": {"view": "reviw"}}))
    assert (problem.path, problem.hint) == ("callers.ci.view", 'Did you mean "review"?')
