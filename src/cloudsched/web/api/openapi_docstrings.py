"""The docstrings of a model's fields, read from its source when somebody asks for them.

Pydantic can do this itself (``use_attribute_docstrings``), but does it while a model is being made: that is a quarter
of what our own modules add to a cold start, and only the API's description needs it.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import BaseModel


def read_field_docstrings(model: type[BaseModel]) -> dict[str, str]:
    """Return the docstring of each field that has one, those of the classes it inherits from included."""
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
