"""The list of tasks: open problems, next runs, and the results of the last ones."""

from __future__ import annotations

import difflib
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote

from cloudsched.dashboard.attention import CAUSES, list_path
from cloudsched.dashboard.chart_axis import element
from cloudsched.dashboard.offered_verbs import list_bulk_verbs
from cloudsched.dashboard.status import BAD, Status, show_status
from cloudsched.dashboard.visit import Api, Json, Visit, ZoneChoice, task_path, zone_choices
from cloudsched.domain.closed_sets import complete_table
from cloudsched.domain.documents.batch_change import BatchAction
from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.execution import NOT_RUN_STATUSES, ExecutionStatus
from cloudsched.domain.documents.overview_responses import NeedCause
from cloudsched.domain.documents.task import TaskStatus

if TYPE_CHECKING:
    from markupsafe import Markup

    from cloudsched.dashboard.times import Moment


MARKS: Final = 12
"""The largest number of marks."""
_STEP, _WIDE, _LINE = 7, 5, 12
_ABOVE, _BELOW, _NOT_RUN = 9, 8, 1
_FILLS: Final[dict[str, str]] = {ExecutionStatus.RUNNING: "f-run", ExecutionStatus.RETRYING: "f-retry"}


def draw_runs(statuses: Sequence[str]) -> Markup:
    """Return the marks of executions, the earliest first. The latest is at the right."""
    shown = statuses[-MARKS:]
    first = MARKS - len(shown)
    parts = [element("line", cls="base", x1=0, x2=_STEP * MARKS, y1=_LINE, y2=_LINE)]
    for index, status in enumerate(shown):
        parts += _draw_mark(status, (first + index) * _STEP)
    return element("svg", *parts, cls="runs", role="img", aria_label=write_runs(statuses))


def write_runs(statuses: Sequence[str]) -> str:
    """Return the same in words, such as ``Last 12: 9 succeeded, 3 failed, the last two in a row``."""
    shown = statuses[-MARKS:]
    if not shown:
        return "Nothing has run yet"
    if len(shown) == 1:
        return f"The last one: {show_status(shown[0]).word.lower()}"
    counts = Counter(show_status(each).word.lower() for each in shown)
    if len(counts) == 1:
        return f"Last {len(shown)}: all {next(iter(counts))}"
    said = ", ".join(f"{count} {word}" for word, count in counts.items())
    in_a_row = len(list(takewhile(lambda each: each in BAD, reversed(shown))))
    return f"Last {len(shown)}: {said}" + (f", the last {in_a_row} in a row" if in_a_row > 1 else "")


def _draw_mark(status: str, left: int) -> list[Markup]:
    if status in BAD:
        return [element("rect", cls="f-fail", x=left, y=_LINE, width=_WIDE, height=_BELOW)]
    top = _LINE - _ABOVE
    if status == "SUSPENDED":
        hatched = element("rect", x=left, y=top, width=_WIDE, height=_ABOVE, fill="url(#hatch)")
        frame = element(
            "rect", cls="o w", x=left + 0.5, y=top + 0.5, width=_WIDE - 1, height=_ABOVE - 1, fill_opacity=0
        )
        return [hatched, frame]
    tall = _NOT_RUN if status in NOT_RUN_STATUSES else _ABOVE
    return [element("rect", cls=_FILLS.get(status, "f-past"), x=left, y=_LINE - tall, width=_WIDE, height=tall)]


PAGE_SIZE: Final = 50


class BulkAction(NamedTuple):
    """A change of many tasks at once."""

    label: str
    """The button beside a list."""
    verb: str
    """The button below the question."""
    means: str


BULK_ACTIONS: Final = complete_table(
    BatchAction,
    {
        BatchAction.PAUSE: BulkAction("Pause", "Pause", "Nothing of them starts until they are resumed."),
        BatchAction.RESUME: BulkAction("Resume", "Resume", "They continue with their first occurrence from now."),
        BatchAction.RETRY_FAILED: BulkAction(
            "Retry failed", "Retry", "The last execution of each, which has failed, gets one more attempt."
        ),
        BatchAction.CANCEL: BulkAction(
            "Cancel", "Cancel", "Nothing of them starts any more. Their records are kept. This cannot be undone."
        ),
        BatchAction.DELETE: BulkAction(
            "Delete", "Delete", "They and their executions are gone. This cannot be undone."
        ),
    },
)
FILTERS: Final = ("status", "handler", "owner", "label", "dueFrom", "dueUntil")
TROUBLE: Final = "trouble"
"""A filter that stands alone, or beside an owner: the reason why tasks need somebody."""
CATEGORY: Final = "category"
"""A filter that no index has. It is searched for like words."""
CALLS: Final = "calls"
"""The choice to list calls, too. By default they are folded under the tasks that made them."""
_ORDERS: Final = {
    "": "What failed last first, on each page",
    "nextExecutionTime": "Due soonest",
    "createdAt desc": "Newest",
}


@dataclass(frozen=True, slots=True)
class Token:
    """A filter that applies, and the address without it."""

    text: str
    without: str


@dataclass(frozen=True, slots=True)
class Chip:
    """Tasks that need somebody for one cause, and the path of their list."""

    text: str
    href: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class Row:
    """A task in the list."""

    id: str
    title: str
    owner: str
    handler: str
    labels: tuple[str, ...]
    status: Status
    note: str
    """A note on its present state."""
    is_bad: bool
    schedule: str
    runs: str
    recent: Markup
    """Its latest executions, as marks."""
    recent_words: str
    next: Moment | None
    why_never: str
    verbs: tuple[str, ...]
    """The verbs that are possible for it, alone or with others."""


@dataclass(frozen=True, slots=True)
class TasksPage:
    """The view model."""

    sentence: str
    rows: list[Row]
    filters: dict[str, str]
    category: str
    categories: tuple[str, ...]
    query_text: str
    tokens: list[Token]
    chips: list[Chip]
    """The open problems of all tasks that the viewer sees."""
    statuses: tuple[str, ...]
    orders: dict[str, str]
    order: str
    instead: Token | None
    """A guess if nothing matches: another handler's name, and the address with it."""
    query: str
    """The query of this address, without the page."""
    next_page: str | None
    first_page: str | None
    zones: list[ZoneChoice]
    may_change: bool
    role: str
    bulk_text: str
    bulk_query: dict[str, str]
    """The filters that a change of many tasks takes over."""
    bulk_actions: dict[str, str]
    """The changes that are offered for many tasks at once. Empty for those who may only look."""
    has_calls: bool
    calls_href: str
    columns: frozenset[str]
    """The columns that are shown beside the title."""
    all_columns: dict[str, str]
    searched: int = 0
    """The number of tasks that were searched for the words."""


COLUMNS: Final = {"status": "Status", "schedule": "Schedule", "last": "Last 12", "next": "Next"}


def read_columns(visit: Visit, known: Mapping[str, str]) -> frozenset[str]:
    """Return the columns of a list that the address names, or all if it names no valid one."""
    return frozenset(visit.query.get("columns", "").split()) & known.keys() or frozenset(known)


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API for one page of the list. An exact id of a task or of a person opens at once."""
    filters, words = read_filters(visit)
    if elsewhere := _find_exact(api, visit, filters, words):
        return {"goTo": elsewhere}
    known = {name: value.upper() if name == "status" else value for name, value in filters.items()}
    order = visit.query.get("orderBy") or None
    page = api.get(
        "/v1/tasks",
        **known,
        **_read_trouble(visit),
        search=shlex.join(words) or None,
        calls=None if visit.query.get(CALLS) else "false",
        orderBy=order,
        pageSize=PAGE_SIZE,
        pageToken=visit.query.get("page"),
    )
    handlers = [] if page["tasks"] or "handler" not in known else (api.find("/v1/handlers") or {}).get("handlers", [])
    return {
        **page,
        "handlers": [each["name"] for each in handlers],
        "needs": (api.find("/v1/overview") or {}).get("needs", ()),
        "words": {task["id"]: api.describe(task["schedule"]) for task in page["tasks"]},
    }


def _find_exact(api: Api, visit: Visit, filters: dict[str, str], words: list[str]) -> str | None:
    """Return the page of the task or person whose exact name is searched for. None if there is none."""
    if filters or len(words) != 1 or visit.query.get("page") or words[0] in {".", ".."}:
        return None
    word = words[0]
    if api.find(task_path(word)) is not None:
        return f"tasks/{quote(word, safe='')}"
    if (api.find("/v1/tasks", owner=word, pageSize=1) or {}).get("tasks"):
        return f"people/{quote(word, safe='')}"
    return None


def _read_trouble(visit: Visit) -> dict[str, str]:
    trouble = visit.query.get(TROUBLE, "").upper()
    return {TROUBLE: trouble} if trouble else {}


def read_filters(visit: Visit) -> tuple[dict[str, str], list[str]]:
    """Return the filters and the words to search for. ``owner:ada`` in the search is a filter, too."""
    filters = {name: visit.query[name] for name in FILTERS if visit.query.get(name)}
    words = []
    for word in _split(visit.query.get("q", "")):
        name, colon, value = word.partition(":")
        if colon and value and name in FILTERS:
            filters[name] = value
        else:
            words.append(word)
    if visit.query.get(CATEGORY):
        words.append(f"{CATEGORY}:{visit.query[CATEGORY]}")
    return filters, words


def build(answer: Json, visit: Visit) -> TasksPage:
    """Return the view model of the API's answer."""
    filters, words = read_filters(visit)
    tasks = list(answer["tasks"])
    if not visit.query.get("orderBy") and not _read_trouble(visit):
        tasks.sort(key=lambda task: not needs_attention(task))  # keeps the API's order otherwise
    more = answer.get("nextPageToken")
    rows = [_build_row(task, answer["words"].get(task["id"], ""), visit) for task in tasks]
    tokens = [Token(f"{name}: {value}", _without(visit, name)) for name, value in filters.items()]
    tokens += [Token(word, _without(visit, CATEGORY if _is_category(word) else None)) for word in words]
    if trouble := _read_trouble(visit):
        tokens.append(
            Token(f"needs somebody: {trouble[TROUBLE].lower()}", visit.with_query(**{TROUBLE: None, "page": None}))
        )
    return TasksPage(
        sentence=_write_sentence(rows, more=bool(more), words=words, visit=visit),
        rows=rows,
        filters=filters,
        category=visit.query.get(CATEGORY, "").upper(),
        categories=tuple(Category),
        query_text=visit.query.get("q", ""),
        tokens=tokens,
        chips=_build_chips(answer.get("needs", ()), visit),
        statuses=tuple(TaskStatus),
        orders=_ORDERS,
        order=visit.query.get("orderBy", ""),
        instead=_find_instead(filters, answer.get("handlers", ()), visit),
        query=visit.with_query(page=None),
        next_page=visit.with_query(page=more) if more else None,
        first_page=visit.with_query(page=None) if visit.query.get("page") else None,
        zones=zone_choices(visit),
        may_change=visit.may_change,
        role=visit.role,
        bulk_text=_write_bulk({} if trouble else filters, words),
        bulk_query={} if words or trouble else filters,
        bulk_actions={name: row.label for name, row in BULK_ACTIONS.items()} if visit.may_change else {},
        has_calls=bool(visit.query.get(CALLS)),
        calls_href=visit.with_query(**{CALLS: None if visit.query.get(CALLS) else "true", "page": None}),
        columns=read_columns(visit, COLUMNS),
        all_columns=COLUMNS,
        searched=answer.get("lookedThrough", 0) if words else 0,
    )


def _build_chips(needs: Iterable[Json], visit: Visit) -> list[Chip]:
    """Return a chip for each cause that any task has."""
    chosen = visit.query.get(TROUBLE, "").upper()
    return [
        Chip(
            f"{said.chip} {each['count']:,}{'+' if each.get('isAtLeast') else ''}",
            list_path(NeedCause(cause), visit).removeprefix("tasks"),
            cause == chosen,
        )
        for cause, said in CAUSES.items()
        for each in needs
        if each["cause"] == cause and each["count"]
    ]


def _find_instead(filters: dict[str, str], handlers: Sequence[str], visit: Visit) -> Token | None:
    """Return the handler with the name that is most like the one that nothing matches."""
    close = difflib.get_close_matches(
        filters.get("handler", ""), [each for each in handlers if each != filters.get("handler")], 1
    )
    if not close:
        return None
    without = visit.query.get("q", "").replace(f"handler:{filters['handler']}", "").strip()
    return Token(f"handler:{close[0]}", visit.with_query(q=without or None, handler=close[0], page=None))


def needs_attention(task: Json) -> bool:
    """Return whether somebody should look at a task: its last run failed, or failures have ended or paused it."""
    return bool(task.get("consecutiveFailures")) or task["status"] == "FAILED"


def _build_row(task: Json, words: str, visit: Visit) -> Row:
    failures = task.get("consecutiveFailures", 0)
    note = ""
    if failures:
        note = "the last one failed" if failures == 1 else f"the last {failures} failed"
    elif task.get("isRunning"):
        note = "runs now"
    elif task.get("offeredAt"):
        note = "waits for a worker"
    upcoming = visit.moment(task.get("nextExecutionTime"))
    recent = task.get("recentStatuses", ())
    return Row(
        id=task["id"],
        title=task["title"],
        owner=task["owner"],
        handler=task["handler"],
        labels=tuple(task.get("labels", ())),
        status=show_status(task["status"]),
        note=note,
        is_bad=bool(failures),
        schedule=words,
        runs=f"{task.get('runCount', 0):,}",
        recent=draw_runs(recent),
        recent_words=write_runs(recent),
        next=upcoming,
        why_never="" if upcoming else _write_why_never(task),
        verbs=list_bulk_verbs(task),
    )


def _write_why_never(task: Json) -> str:
    """Return the reason why there is no next occurrence. For an active task, it has run out of occurrences."""
    return "none to come" if task["status"] == "ACTIVE" else show_status(task["status"]).word.lower()


def _write_sentence(rows: list[Row], *, more: bool, words: list[str], visit: Visit) -> str:
    if not rows and not words and not any(visit.query.get(name) for name in (*FILTERS, CATEGORY, "q", "page")):
        return "No tasks yet. Create the first one, or run “cloudsched demo” to see a year of them."
    if not rows:
        named = [f"{name}:{visit.query[name]}" for name in (*FILTERS, CATEGORY) if visit.query.get(name)]
        wanted = " ".join(filter(None, [visit.query.get("q"), *named]))
        if more:
            return f"Nothing matches {wanted} among the tasks that were looked through. The next page goes on."
        return f"Nothing matches {wanted}."
    bad = sum(row.is_bad for row in rows)
    count = f"{len(rows):,} task{'' if len(rows) == 1 else 's'}{' on this page' if more else ''}"
    if visit.query.get("orderBy"):
        return f"{count}; {bad} of them failed last." if bad else f"{count}; none of them failed last."
    return f"{count}, those that need attention first: {bad}." if bad else f"{count}; none needs attention."


def _write_bulk(filters: dict[str, str], words: list[str]) -> str:
    if filters and not words:
        return "With the ticked ones, or with all that match if none is ticked. The count comes first."
    return "With the ticked ones. The count comes first."


def _without(visit: Visit, name: str | None) -> str:
    """Return the address without a filter, wherever it was given. None stands for the words of the search."""
    kept = []
    for word in _split(visit.query.get("q", "")):
        prefix = word.partition(":")[0] if ":" in word and word.partition(":")[0] in (*FILTERS, CATEGORY) else None
        if prefix != name:
            kept.append(word)
    changes: dict[str, str | None] = {"q": " ".join(kept) or None, "page": None}
    if name is not None:
        changes[name] = None
    return visit.with_query(**changes)


def _is_category(word: str) -> bool:
    return word.startswith(f"{CATEGORY}:")


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # a quotation mark without its partner
        return text.split()
