"""docs/reference/errors.md has a row for each error, with the status that the API answers."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from cloudsched import errors
from cloudsched.web.api import problems

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "errors.md").read_text("utf-8")
ROWS = dict(re.findall(r"^\| `(\w+)` \| (\d*) *\|", PAGE, re.MULTILINE))
TREE = {
    name: each
    for name, each in vars(errors).items()
    if inspect.isclass(each) and issubclass(each, errors.CloudschedError) and each is not errors.CloudschedError
}


def test_every_error_has_a_row() -> None:
    """And no row is left of an error that is gone."""
    assert set(ROWS) == set(TREE)


def test_the_statuses_are_those_of_the_api() -> None:
    """An error that the page gives a status is answered with that one; the others do not reach a caller as such."""
    answered = {errors.Misconfigured: 503, errors.UnreadableDocument: 500}
    answered |= {kind: status.value for kind, status in reversed(problems._KINDS)}  # noqa: SLF001 - the API's own table
    for name, status in ROWS.items():
        expected = next((answered[base] for base in TREE[name].__mro__ if base in answered), None)
        assert status == ("" if expected is None else str(expected)), name
