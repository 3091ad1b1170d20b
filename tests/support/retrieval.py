"""How often the search surface finds the right tool, on the frozen set of real definitions and hand-written questions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from pactgate.catalog.tool_search import ToolSearch
from pactgate.core.values import Tool
from pactgate.protocol.messages import encode_json

FOLDER = Path(__file__).parents[1] / "policy" / "retrieval"


class Question(NamedTuple):
    text: str
    answers: frozenset[str]


class Retrieval(NamedTuple):
    """The share of questions whose right tool is the first, and is among the first five, in percent."""

    tools: int
    questions: int
    first: float
    first_five: float


def real_tools() -> list[Tool]:
    rows = json.loads((FOLDER / "tools.json").read_text(encoding="utf-8"))
    return [
        Tool(
            row["server"],
            row["name"],
            f"{row['server']}.{row['name']}",
            f"{row['server']}__{row['name']}",
            b"{}",
            encode_json({key: value for key, value in row.items() if key != "server"}),
            "",
        )
        for row in rows
    ]


def questions(file: str = "questions.txt") -> list[Question]:
    lines = (FOLDER / file).read_text(encoding="utf-8").splitlines()
    split = [line.rpartition("|") for line in lines if line and not line.startswith("#")]
    return [Question(text.strip(), frozenset(answers.split())) for text, _, answers in split]


def measure(file: str = "questions.txt") -> Retrieval:
    tools, asked = real_tools(), questions(file)
    index = ToolSearch(tools)
    found = [[tool.full_name for tool in index.find(question.text)[:5]] for question in asked]
    first = sum(bool(names) and names[0] in question.answers for question, names in zip(asked, found, strict=True))
    five = sum(not question.answers.isdisjoint(names) for question, names in zip(asked, found, strict=True))
    return Retrieval(len(tools), len(asked), 100 * first / len(asked), 100 * five / len(asked))
