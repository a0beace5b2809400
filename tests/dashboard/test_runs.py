"""Runs: what failed comes first, in groups and one by one, and is retried together after a question with the count."""

from __future__ import annotations

import re
from itertools import combinations

import pytest
from tests.dashboard.conftest import NOW, read_hidden, visit
from tests.dashboard.role_pages import Pages
from tests.web.callers import HOUR, MINUTE

from cloudsched import App, Context, Schedule, Settings
from cloudsched.dashboard.views import runs as runs_view
from cloudsched.dashboard.words import SKIPPED_TOGETHER

IS_MENDED: list[bool] = []


@pytest.fixture
def app() -> App:
    app = App(Settings())
    IS_MENDED.clear()

    @app.handler("load", retry=0, access="users")
    def load(ctx: Context) -> str:
        if not IS_MENDED:
            raise ConnectionError(f"the host <of> {ctx.task.title} is gone")
        return "done"

    @app.handler("varied", retry=0)
    def varied(ctx: Context) -> None:
        raise (LookupError, ArithmeticError, OSError, ValueError, TypeError, EOFError)[int(str(ctx.task.title)[-1])]

    @app.handler("calls", retry=0)
    def calls(ctx: Context) -> None:
        ctx.call("load", {}).result()

    return app


def run(pages: Pages, app: App, count: int, owner: str = "ada", handler: str = "load") -> None:
    at = pages.sim.now
    for number in range(count):
        app.create(owner=owner, title=f"{handler} {owner} {number}", handler=handler, schedule=Schedule.once(at))
    pages.sim.advance(2 * MINUTE)


def list_rows(text: str) -> list[str]:
    return re.findall(r'<tr data-key="([^"/]+/[^"]+)"', text)


def test_the_last_hour_is_shown_with_what_failed_first(pages: Pages, app: App) -> None:
    """In a group with its count, and one by one; earlier ones only if they are asked for; each role sees its own."""
    run(pages, app, 2)
    pages.sim.advance(3 * HOUR)
    run(pages, app, 3)
    run(pages, app, 1, owner="bob")
    for who, count in (("admin", 4), ("viewer", 4), ("ada", 3), ("bob", 1)):
        text = pages.words("/runs", who)
        assert f"{count} {'run' if count == 1 else 'runs'} failed of what was due in the last hour" in text
        assert len(list_rows(text)) == count
        assert "ConnectionError" in text
        assert "the host <of> load" in text
        assert ('name="all"' in text) == (who != "viewer")
    assert "6 runs failed of what was due in the last day" in pages.words("/runs?within=P1D")
    assert "Nothing failed of what was due in the last 15 minutes" in pages.words("/runs?within=PT15M&handler=other")


def test_many_kinds_of_failures_leave_room_for_the_runs(pages: Pages, app: App) -> None:
    """All are there, and most are folded, so that the list of runs begins on the first screen."""
    run(pages, app, 6, handler="varied")
    groups = pages.words("/runs").partition('<table class="list">')[0]
    shown, _, folded = groups.partition('<details class="rest">')
    assert 0 < shown.count("latest run</a>") < 4
    assert shown.count("latest run</a>") + folded.count("latest run</a>") == 6
    assert f"{folded.count('latest run</a>')} more kinds of failures" in folded


def test_calls_fold_under_who_made_them(pages: Pages, app: App) -> None:
    """They are hidden by default; shown, each names the execution that called it, and cannot be ticked."""
    run(pages, app, 1, handler="calls")
    pages.sim.advance(30 * MINUTE)
    assert len(list_rows(pages.words("/runs"))) == 1
    text = pages.words("/runs?calls=true")
    assert len(list_rows(text)) == 2
    assert text.count("called by</a>") == 1
    assert text.count('name="pick"') == 1


def test_the_question_names_the_first_ten_and_the_count(pages: Pages, app: App) -> None:
    """It is sent as it was asked; the task that does it shows how far it is, and the page is then empty."""
    run(pages, app, 23)
    run(pages, app, 2, owner="bob")
    listed = pages.words("/runs?owner=ada")
    assert "Retry all that failed…" in listed
    text = pages.words("/retry?owner=ada&all=1&pick=a/b")
    assert "Retry 23 runs?" in text
    assert len(re.findall(r"<th scope=\"row\">\s*<a", text)) == 10
    assert "and 13 more" in text
    IS_MENDED.append(True)
    answer = pages.post("admin", "/retry", read_hidden(text))
    assert answer.status_code == 303
    assert "/actions/batch-" in answer.headers["Location"]
    pages.sim.advance(MINUTE)
    path = answer.headers["Location"].lstrip(".").partition("?")[0]
    assert re.search(r"Tried again</dt><dd>23<", pages.words(path))
    assert "2 runs failed of what was due in the last hour" in pages.words("/runs")


def test_what_is_ticked_is_retried_and_nothing_else(pages: Pages, app: App) -> None:
    """Without a tick, or if the number has changed since, nothing is done."""
    run(pages, app, 3)
    first, *_ = list_rows(pages.words("/runs", "ada"))
    assert pages.get("ada", "/retry?only=ticked&owner=ada").status_code == 400
    text = pages.words(f"/retry?only=ticked&pick={first}", "ada")
    assert "Retry 1 run?" in text
    form = read_hidden(text)
    refused = pages.post("ada", "/retry", {**form, "count": "2"})
    assert refused.status_code == 412
    assert "The number has changed" in refused.text
    IS_MENDED.append(True)
    assert pages.post("ada", "/retry", form).status_code == 303
    pages.sim.advance(MINUTE)
    assert first not in list_rows(pages.words("/runs?status=failed", "ada"))
    assert len(list_rows(pages.words("/runs?status=failed", "ada"))) == 2


@pytest.mark.parametrize(
    "query", ["", "status=failed", "status=succeeded", "outcome=ran", "outcome=skipped", "calls=1"]
)
def test_ticked_runs_are_retried_where_any_can_be_ticked(pages: Pages, app: App, query: str) -> None:
    """No button stands above a list without a box, and none is missing above one with boxes."""
    run(pages, app, 2)
    IS_MENDED.append(True)
    run(pages, app, 2)
    for who in ("admin", "viewer"):
        text = pages.words(f"/runs?{query}", who)
        assert ("Retry the ticked" in text) == ('name="pick"' in text)
    assert ('name="pick"' in pages.words(f"/runs?{query}")) == (query in {"", "status=failed", "calls=1"})


def test_of_many_owners_those_with_most_failures_are_named(pages: Pages, app: App) -> None:
    """The others unfold, and none is lost."""
    for number in range(10):
        run(pages, app, 1 + number % 3, owner=f"owner-{number}")
    text = pages.words("/runs?within=any")
    line, others = re.findall(
        r"Failed by owner, the most first: (.*?)</p>.*?<p class=\"row\">(.*?)</p>", text, re.DOTALL
    )[0]
    named, rest = (re.findall(r">(owner-\d) \((\d)\)<", part) for part in (line, others))
    assert len(named) == 8
    assert sorted(named + rest) == [(f"owner-{number}", str(1 + number % 3)) for number in range(10)]
    assert min(count for _, count in named) >= max(count for _, count in rest)
    assert "2 more owners with failures" in text


def test_a_group_of_which_not_all_was_looked_at_has_the_number_of_its_handler() -> None:
    """The store has counted that one exactly. Where it has not, no number is made up."""
    sample = {
        "error": "ValueError: no",
        "taskId": "t",
        "executionId": "e",
        "owner": "ada",
        "scheduledFor": NOW.isoformat(),
    }
    group = {"handler": "tick", "type": "ValueError", "place": "", "count": 20, "isAtLeast": True, "tasks": 7}
    group |= {"sample": sample, "first": NOW.isoformat(), "last": NOW.isoformat()}
    counted = {
        "count": 1045,
        "groups": [group],
        "handlers": [{"name": "tick", "count": 1045, "first": NOW.isoformat()}],
    }

    def show(failures: dict[str, object], name: str = "number", **filters: str) -> str:
        answer = {"executions": [], "failures": failures, "filters": filters}
        return str(runs_view.build(answer, visit())["groups"][0][name])

    assert show(counted) == "at least 20 of 1,045"
    assert show({**counted, "handlers": None}, handler="tick") == "at least 20 of 1,045"
    assert show({**counted, "handlers": None, "isAtLeast": True}, handler="tick") == "at least 20"
    assert show({**counted, "groups": [{**group, "isAtLeast": False}]}) == "20"
    assert show(counted, "title") == "tick: no", "many errors have the same type"
    assert show({**counted, "groups": [{**group, "handler": None}]}, "title") == "no"


def test_any_two_filters_have_a_page(pages: Pages, app: App) -> None:
    """With what they found, or with why they cannot be joined."""
    run(pages, app, 2)
    wanted = {
        "status": ("SUCCEEDED", "SKIPPED", "SUSPENDED", "FAILED"), "outcome": ("ran", "skipped", "failed"),
        "handler": ("load",), "owner": ("ada",), "label": ("a=b",), "category": ("others",), "error": ("gone",),
        "errorType": ("ConnectionError",), "minDuration": ("PT10S",), "minLateness": ("PT1M",),
    }  # fmt: skip
    given = [(name, value) for name, values in wanted.items() for value in values]
    for one, other in combinations(given, 2):
        address = f"/runs?within=P1D&{one[0]}={one[1]}&{other[0]}={other[1]}"
        answer = pages.get("admin", address)
        assert answer.status_code in {200, 400}, address
        assert "This view has failed" not in answer.text, address


@pytest.mark.parametrize("query", ["outcome=skipped", "status=SKIPPED"])
def test_a_count_of_what_was_skipped_says_where_it_counts(pages: Pages, query: str) -> None:
    """One record may cover days, so those after its first have none."""
    assert SKIPPED_TOGETHER in pages.words(f"/runs?within=P1D&{query}")
    assert SKIPPED_TOGETHER not in pages.words("/runs?within=P1D")
