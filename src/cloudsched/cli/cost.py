"""``cloudsched cost``: forecasts what the tasks that there are, or those that you plan, will cost in a month."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import click

from cloudsched.cli.api_group import ApiCommand, client_options, json_option
from cloudsched.cli.instants import parse_instant
from cloudsched.cli.usage import print_table
from cloudsched.config.settings import Settings
from cloudsched.domain.documents.overview_responses import to_amounts
from cloudsched.domain.documents.usage import UsageCounts
from cloudsched.domain.transitions.cost_plan import (
    DEFAULT_KEPT_DAYS,
    DEFAULT_SECONDS,
    parse_plan,
    plan_costs,
    plan_sweep,
)
from cloudsched.domain.transitions.forecast import forecast_task
from cloudsched.errors import InvalidInput
from cloudsched.local.untrusted_text import to_json_line, to_printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cloudsched.client.client import Client
    from cloudsched.client.views import TaskView
    from cloudsched.domain.transitions.cost_plan import CostLine

_SWEEP: Final = UsageCounts(reads=1, writes=1)
"""What a sweep that finds nothing costs: it reads a task, and writes when it ran."""
_SWEEPS_A_DAY: Final = 24 * 60
_HEADER: Final = ("HANDLER", "TASKS", "OCCURRENCES", "QUERIES", "TOKENS", "READS", "WRITES", "QUEUE", "USD")
_ASSUMED: Final = (
    "Each occurrence succeeds at its first attempt, on time, and its lock is free.",
    "Calls, children, steps, progress, messages and what handlers create are not in it.",
    "Nor are tasks that are paused now, or created later.",
    "Queries and tokens are as estimated by queryPerExecution and tokensPerExecution.",
    "Prices are the deployment's (CLOUDSCHED_PRICES), without free tiers.",
    "The functions' time, storage and logs are not in it (docs/explanation/costs.md).",
)


_PLAN_ASSUMED: Final = (
    "Locks, workers, deliveries, children, steps and retries are not in it.",
    "Prices are those of CLOUDSCHED_PRICES, else us-central1's, without free tiers (docs/explanation/costs.md).",
)
_SHOWN_WHOLE: Final = 100
"""From which amount on fractions are not shown."""


@dataclass(slots=True)
class _Row:
    """What a handler's tasks will use."""

    tasks: int = 0
    occurrences: float = 0
    counts: UsageCounts = UsageCounts()  # noqa: RUF009 - immutable
    requests: int = 0
    is_extrapolated: bool = False


@click.command("cost", cls=ApiCommand)
@click.option("--days", type=click.IntRange(1, 366), default=30, show_default=True, help="How many days to look ahead.")
@click.option("--from", "since", metavar="INSTANT", help="From when on. [default: the deployment's current time]")
@click.option("--timezone", "--tz", metavar="ZONE", help="The zone of --from, if it has no offset.")
@click.option("--owner", help="Count only this owner's tasks.")
@click.option("--handler", help="Count only this handler's.")
@click.option("--plan", metavar="RATE", help="Ask no deployment: price so many runs, such as 1M/month or 300/minute.")
@click.option(
    "--seconds",
    type=click.FloatRange(0, 3600),
    metavar="NUMBER",
    help="With --plan: how long each run has an instance for itself. [default: 0.1]",
)
@click.option(
    "--kept",
    type=click.FloatRange(0, 3660),
    metavar="DAYS",
    help="With --plan: how long records are kept. [default: 30]",
)
@json_option
@client_options
def cost(  # noqa: PLR0913 - each is an option of its own
    client: Client,
    *,
    days: int,
    since: str | None,
    timezone: str | None,
    owner: str | None,
    handler: str | None,
    plan: str | None,
    seconds: float | None,
    kept: float | None,
    as_json: bool,
) -> None:
    """Forecast what the tasks that there are will use and cost in the next days, by handler.

    With --plan it asks no deployment, and prices a month of so many runs of recurring tasks.
    """
    if plan is not None:
        if since is not None or owner is not None or handler is not None:
            raise click.UsageError("--plan is about no deployment: leave out --from, --owner and --handler.")
        _print_plan(plan, seconds=seconds, kept=kept, as_json=as_json)
        return
    if seconds is not None or kept is not None:
        raise click.UsageError("--seconds and --kept are about a --plan.")
    given = None if since is None else parse_instant(since, timezone, "--from")
    known = client.usage(owner=owner, page_size=1)
    start = given or (known.summed_until if known.is_complete else datetime.now(UTC))
    end = start + timedelta(days=days)
    tasks = client.tasks(status="ACTIVE", owner=owner, handler=handler)
    rows = _forecast(tasks, start, end)
    if owner is None and handler is None:
        sweeps = _SWEEPS_A_DAY * days
        rows["(sweep)"] = _Row(counts=_multiply(_SWEEP, sweeps), requests=sweeps)
    shown = {name: _to_fields(row, known.prices) for name, row in rows.items()}
    total = {
        name: sum(fields[name] for fields in shown.values())
        for name in ("tasks", "occurrences", "queries", "tokens", "reads", "writes", "deletes", "queueOperations")
    } | {"requests": sum(row.requests for row in rows.values()), "dollars": sum(f["dollars"] for f in shown.values())}
    if as_json:
        handlers = [{"handler": name, **fields} for name, fields in shown.items()]
        period = {"from": start.astimezone(UTC).isoformat(), "until": end.astimezone(UTC).isoformat()}
        click.echo(to_json_line({**period, "handlers": handlers, "total": total, "assumed": list(_ASSUMED)}))
        return
    click.echo(f"From {start:%Y-%m-%d %H:%M %Z} for {days} days:\n")
    lines = [_to_line(name, fields) for name, fields in shown.items()]
    print_table([_HEADER, *lines, _to_line("together", total)], texts=1)
    click.echo()
    for sentence in _ASSUMED:
        click.echo(f"- {sentence}")
    if any(row.is_extrapolated for row in rows.values()):
        click.echo(
            "- Of tasks that run very often only the first occurrences are counted, and the others extrapolated."
        )


def _print_plan(plan: str, *, seconds: float | None, kept: float | None, as_json: bool) -> None:
    try:
        occurrences = parse_plan(plan)
    except InvalidInput as error:
        raise click.BadParameter(f"{error.problem}. {error.hint}", param_hint="--plan") from error
    prices = Settings.from_environment().prices.per_million
    seconds, kept = DEFAULT_SECONDS if seconds is None else seconds, DEFAULT_KEPT_DAYS if kept is None else kept
    lines = plan_costs(occurrences, prices, seconds=seconds, kept_days=kept)
    sweep = plan_sweep(prices)
    before, whole = sum(each.dollars for each in lines if not each.is_compute), sum(each.dollars for each in lines)
    assumed = [
        f"Each run succeeds at its first attempt and has an instance for itself for {seconds:g} s.",
        f"Records are kept for {kept:g} days.",
        *_PLAN_ASSUMED,
    ]
    if as_json:
        parts = [{"part": each.part, "amount": each.amount, "dollars": each.dollars} for each in (*lines, sweep)]
        totals = {"dollarsBeforeCompute": before, "dollarsOfRuns": whole, "dollars": whole + sweep.dollars}
        click.echo(to_json_line({"occurrences": occurrences, "parts": parts, **totals, "assumed": assumed}))
        return
    click.echo(f"{occurrences:,.0f} runs a month:\n")
    before_compute = [_to_plan_line(each) for each in lines if not each.is_compute]
    compute = [_to_plan_line(each) for each in lines if each.is_compute]
    print_table(
        [
            ("PART", "AMOUNT", "USD"),
            *before_compute,
            ("before compute and logs", "", f"{before:,.2f}"),
            *compute,
            _to_plan_line(sweep),
            ("together", "", f"{whole + sweep.dollars:,.2f}"),
        ],
        texts=1,
    )
    click.echo()
    for sentence in assumed:
        click.echo(f"- {sentence}")


def _to_plan_line(line: CostLine) -> tuple[str, str, str]:
    amount = f"{line.amount:,.0f}" if line.amount >= _SHOWN_WHOLE else f"{line.amount:,.2f}"
    return line.part, amount, f"{line.dollars:,.2f}"


def _forecast(tasks: Iterable[TaskView], start: datetime, end: datetime) -> dict[str, _Row]:
    rows: dict[str, _Row] = {}
    for task in tasks:
        found = forecast_task(task, start, end)
        row = rows.setdefault(task.handler, _Row())
        row.tasks += 1
        row.occurrences += found.occurrences
        row.counts += found.counts
        row.requests += found.counts.dispatches
        row.is_extrapolated = row.is_extrapolated or found.is_extrapolated
    return dict(sorted(rows.items()))


def _to_fields(row: _Row, prices: Mapping[str, float]) -> dict[str, Any]:
    counts = row.counts
    amounts = to_amounts(counts) | {
        "query": counts.estimated_queries,
        "token": counts.estimated_tokens,
        "request": row.requests,
    }
    dollars = sum(amount * prices.get(name, 0.0) for name, amount in amounts.items()) / 1e6
    return {
        "tasks": row.tasks,
        "occurrences": row.occurrences,
        "queries": counts.estimated_queries,
        "tokens": counts.estimated_tokens,
        "reads": counts.reads,
        "writes": counts.writes,
        "deletes": counts.deletes,
        "queueOperations": 2 * counts.dispatches,
        "requests": row.requests,
        "dollars": round(dollars, 6),
    }


def _to_line(name: str, fields: Mapping[str, Any]) -> tuple[str, ...]:
    names = ("tasks", "occurrences", "queries", "tokens", "reads", "writes", "queueOperations")
    return (to_printable(name), *(f"{round(fields[each]):,}" for each in names), f"{fields['dollars']:,.4f}")


def _multiply(counts: UsageCounts, factor: int) -> UsageCounts:
    return UsageCounts(reads=counts.reads * factor, writes=counts.writes * factor)
