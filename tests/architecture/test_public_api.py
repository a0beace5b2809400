"""What `import cloudsched` offers: whole, in order, imported when it is used, and typed."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

from tests.cases import try_each

import cloudsched
import cloudsched.errors

ROOT = Path(__file__).parents[2]


def test_all_is_sorted_and_without_doubles() -> None:
    """A reader finds a name where it belongs."""
    assert cloudsched.__all__ == sorted(set(cloudsched.__all__))
    assert dir(cloudsched) == cloudsched.__all__


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


def test_an_unknown_name_is_an_attribute_error() -> None:
    """As for any module, so that hasattr and friends work."""
    assert not hasattr(cloudsched, "Nothing")


def test_every_error_has_the_one_root_and_is_drawn() -> None:
    """The tree in the docstring of errors.py names every error, and each derives from CloudschedError."""
    drawn = cloudsched.errors.__doc__ or ""
    for name, kind in vars(cloudsched.errors).items():
        if isinstance(kind, type) and issubclass(kind, Exception):
            assert issubclass(kind, cloudsched.CloudschedError)
            assert name in drawn
