"""What `import cloudsched` offers: whole, imported when it is used, and typed."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

from tests.cases import try_each

import cloudsched
import cloudsched.errors

ROOT = Path(__file__).parents[2]


@try_each("name", cloudsched.__all__)
def test_a_public_name_can_be_imported_and_says_what_it_is(name: str) -> None:
    """Each name leads to an object of that name, with a docstring."""
    found = getattr(cloudsched, name)
    assert found.__name__ == name
    assert found.__doc__
    assert found is getattr(sys.modules[found.__module__], name)


def test_what_type_checkers_see_is_what_is_there() -> None:
    """The imports under TYPE_CHECKING are exactly the names that are loaded lazily."""
    tree = ast.parse(Path(cloudsched.__file__).read_text("utf-8"))
    seen = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    seen -= {"TYPE_CHECKING", "import_module", "pause_collection"}
    assert seen == set(cloudsched.__all__) == set(cloudsched._MODULES)  # noqa: SLF001
