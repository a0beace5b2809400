"""A function's docstring says what it does, so it opens with a verb; a property may open with the noun that it is."""

import ast
import re
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "cloudsched"

CLAUSE = re.compile(r"(how|what|when|where|whether|which|who|whom|whose|why)\b", re.IGNORECASE)
NOUN = re.compile(
    r"(an?|all|any|each|either|every|its?|no|none|one|only|our|several|some|such|that|the|their|there|these|they|this|those|your?"
    r"|after|also|and|as|at|because|before|between|by|for|from|if|in|of|on|out|through|to|under|until|upo?n?|with|within)\b"
    r"|[A-Za-z]+[^s\W]s\b|\W",
    re.IGNORECASE,
)
"""An article, a pronoun, a preposition; a plural, or a verb in the third person; a name in quotes."""


@cache
def find_docstrings() -> list[tuple[str, bool, str]]:
    """Return each function's place, whether it is a property, and its docstring."""
    found = []
    for file in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (text := ast.get_docstring(node)):
                is_property = any(ast.unparse(each).endswith("property") for each in node.decorator_list)
                found.append((f"{file.relative_to(SOURCE)}:{node.lineno} {node.name}", is_property, text))
    return found


def test_function_opens_with_verb() -> None:
    """No function's docstring opens with a relative clause, a noun or a preposition, or a verb in the third person."""
    wrong = [
        f"{place}: {text[:40]}"
        for place, is_property, text in find_docstrings()
        if not is_property and (CLAUSE.match(text) or NOUN.match(text))
    ]
    assert wrong == []


def test_property_opens_with_no_clause() -> None:
    """A property's docstring names its value, or says what it returns."""
    wrong = [
        f"{place}: {text[:40]}" for place, is_property, text in find_docstrings() if is_property if CLAUSE.match(text)
    ]
    assert wrong == []
    assert sum(is_property for _, is_property, _ in find_docstrings()) > 100


def test_patterns() -> None:
    """The patterns find what they are for, in either case, and let verbs pass."""
    for text in ("What is known.", "whether it is", "The day", "Runs it.", "`abc` as text", "Up to which"):
        assert CLAUSE.match(text) or NOUN.match(text)
    for text in (
        "Return it.",
        "Pass it on.",
        "Process all.",
        "Set it.",
        "Answer.",
        "Await it.",
        "Update it.",
        "Attach it.",
    ):
        assert not CLAUSE.match(text)
        assert not NOUN.match(text)
