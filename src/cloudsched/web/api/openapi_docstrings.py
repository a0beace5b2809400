"""Reads the docstrings of a model's fields from its source, on demand.

Pydantic can do this itself (``use_attribute_docstrings``), but does so when a model class is created. That would be a
quarter of what our own modules add to a cold start, and only the API's description needs it.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import BaseModel


def read_field_docstrings(model: type[BaseModel]) -> dict[str, str]:
    """Return the docstrings of fields, including inherited ones, by the fields' names."""
    found: dict[str, str] = {}
    for cls in reversed(model.__mro__):
        if cls.__module__.startswith("cloudsched."):
            (tree,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
            found |= _read_class_docstrings(tree) if isinstance(tree, ast.ClassDef) else {}
    return found


def _read_class_docstrings(tree: ast.ClassDef) -> dict[str, str]:
    found = {}
    for field, after in zip(tree.body, tree.body[1:], strict=False):
        match field, after:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = inspect.cleandoc(text)
    return found
