"""docs/reference/tasks.md has a row for each error, with the status that the API answers."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from cloudsched import errors
from cloudsched.web.api import problems

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "tasks.md").read_text("utf-8")
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
    for name, status in ROWS.items():
        error = TREE[name].__new__(TREE[name], "what is wrong")
        for attribute in ("field", "problem", "hint", "key"):
            setattr(error, attribute, "x")
        for attribute in ("awaited", "retry_after"):
            setattr(error, attribute, None if attribute == "retry_after" else ())
        answered = problems.render_problem(error)
        is_unknown = answered.get_json()["type"].endswith("/internal-error")
        assert status == ("" if is_unknown else str(answered.status_code)), name
