"""A list that is empty says what to do: which handler was meant, if its name was mistyped."""

from __future__ import annotations

from typing import Any

import pytest
from tests.dashboard.conftest import visit

from cloudsched.dashboard import tasks_view


class Answers:
    """An API without tasks, and with two handlers; it notes what it was asked."""

    def __init__(self, *tasks: dict[str, Any]) -> None:
        self.tasks = list(tasks)
        self.asked: list[str] = []

    def get(self, path: str, **_: object) -> dict[str, Any]:
        self.asked.append(path)
        return {"tasks": self.tasks}

    def find(self, path: str, **_: object) -> dict[str, Any] | None:
        self.asked.append(path)
        if path != "/v1/handlers":
            return None
        return {"handlers": [{"name": "report"}, {"name": "render"}]}


def look(api: Answers, **query: Any) -> tasks_view.TasksPage:
    return tasks_view.build(tasks_view.fetch(api, visit(**query)), visit(**query))  # type: ignore[arg-type]  # asks nothing else


@pytest.mark.parametrize("query", [{"handler": "repotr"}, {"q": "handler:repotr"}, {"q": "sales handler:repotr"}])
def test_a_mistyped_handler_is_corrected(query: dict[str, str]) -> None:
    """Wherever it was typed; the rest of the search stays."""
    page = look(Answers(), **query)
    assert page.instead is not None
    assert page.instead.text == "handler:report"
    assert "handler=report" in page.instead.without
    assert "repotr" not in page.instead.without
    assert ("sales" in page.instead.without) == ("sales" in query.get("q", ""))


@pytest.mark.parametrize("query", [{"handler": "zzz"}, {"handler": "report"}, {"owner": "repotr"}, {}])
def test_nothing_is_made_up(query: dict[str, str]) -> None:
    """A name like no other, the right one, and other filters get no suggestion."""
    assert look(Answers(), **query).instead is None


def test_who_finds_something_does_not_ask_for_handlers() -> None:
    """Only an empty list with a handler costs the question."""
    for api, query in ((Answers(), {"owner": "x"}), (Answers(), {"q": "words"})):
        look(api, **query)
        assert "/v1/handlers" not in api.asked


def test_a_page_that_looked_through_its_bound_does_not_say_that_there_is_nothing() -> None:
    """It has a next page, and says that the search goes on there."""

    class Sparse(Answers):
        def get(self, path: str, **_: object) -> dict[str, Any]:
            return {**super().get(path), "nextPageToken": "x"}

    page = look(Sparse(), handler="report", orderBy="nextExecutionTime")
    assert "The next page goes on" in page.sentence
    assert page.next_page is not None
    assert "goes on" not in look(Answers(), handler="report").sentence
