"""Generates what the API's description says about each field: the docstrings of the models' fields, as JSON.

    python -m tests.architecture.field_descriptions

Pydantic can read them at run time (``use_attribute_docstrings``), but only from the source, and when a model class is
created: that would be a quarter of what our own modules add to a cold start.
"""

from __future__ import annotations

import ast
import inspect
import json
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src/cloudsched"
GENERATED = PACKAGE / "web/api/field_descriptions.json"
_FOLDERS = ("domain", "web/api")
"""Where the models are that the API's description names."""


def generate() -> str:
    """Return the file's content: for each class, the docstrings of its own fields by their names."""
    found: dict[str, dict[str, str]] = {}
    for folder in _FOLDERS:
        for file in sorted((PACKAGE / folder).rglob("*.py")):
            module = ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts)
            for node in ast.parse(file.read_text("utf-8")).body:
                if isinstance(node, ast.ClassDef) and (texts := _read_class(node)):
                    found[f"{module}.{node.name}"] = texts
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def _read_class(node: ast.ClassDef) -> dict[str, str]:
    texts = {}
    for field, after in zip(node.body, node.body[1:], strict=False):
        match field, after:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                texts[name] = inspect.cleandoc(text)
    return texts


if __name__ == "__main__":
    GENERATED.write_text(generate(), "utf-8")
