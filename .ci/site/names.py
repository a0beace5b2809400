"""Check that the built reference of Python is complete: each public name, and each public member of the classes.

Usage: python .ci/site/names.py SITE
"""

from __future__ import annotations

import inspect
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from check import Page
from pages import PYTHON

if TYPE_CHECKING:
    from collections.abc import Iterator


def find_missing(site: Path) -> list[str]:
    """Return what a page of the reference lacks, one line each."""
    missing = []
    for title, name in PYTHON.items():
        path = site / "reference" / f"{title}.html"
        anchors = Page(path).anchors if path.is_file() else set()
        missing += [f"reference/{title}.html lacks {each}" for each in list_names(name) if each not in anchors]
    return missing


def list_names(name: str) -> Iterator[str]:
    """Yield the anchors that the page of a module must have."""
    module = import_module(name)
    for each in module.__all__:
        value = getattr(module, each)
        home = getattr(value, "__module__", name)
        path = f"{home if home.startswith('cloudsched.') else name}.{each}"
        yield path
        if inspect.isclass(value) and value.__name__ == each:  # of what is made by parameters only the name is seen
            yield from (f"{path}.{member}" for member in _list_members(value))


def _list_members(kind: type) -> Iterator[str]:
    """Yield the public methods and properties that a class says something about, its own and those of its bases."""
    for member in dir(kind):
        if member.startswith("_"):
            continue
        home = next(base for base in kind.__mro__ if member in vars(base))
        value = inspect.unwrap(getattr(vars(home)[member], "__func__", vars(home)[member]))
        is_member = inspect.isfunction(value) or isinstance(value, property)
        if inspect.isfunction(value) and not value.__qualname__.startswith(f"{home.__name__}."):
            continue  # another class's, which documents it
        is_ours = home.__module__.startswith("cloudsched.") and not getattr(value, "__module__", "").startswith(
            "pydantic"
        )
        if is_ours and is_member and value.__doc__:
            yield member


if __name__ == "__main__":
    found = find_missing(Path(sys.argv[1]).resolve())
    print(*found or ["the reference of Python has every public name"], sep="\n")
    sys.exit(bool(found))
