"""Instants and dates as people type them; instants have an offset, or are by the clocks of a zone."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import click

from cloudsched.emulator.model.instants import parse_time
from cloudsched.errors import InvalidSchedule

if TYPE_CHECKING:
    from datetime import datetime


def parse_instant(text: str, timezone: str | None, option: str) -> datetime:
    """Return an instant in UTC; a local time is in the given zone. Errors name `option`."""
    try:
        at = parse_time(text)
    except ValueError as error:
        raise click.UsageError(f"{option}: {error}") from None
    if at.tzinfo is not None:
        return at
    if timezone is None:
        raise click.UsageError(f"{option}: {text!r} has no time zone; end it with Z for UTC, or give --timezone.")
    from cloudsched.domain.schedules.schedule import Schedule  # noqa: PLC0415 - only needed for a local time

    try:
        local = Schedule.parse(at.isoformat(timespec="seconds"), timezone).at
    except InvalidSchedule as error:
        where = "--timezone" if error.field == "timezone" else option
        raise click.UsageError(f"{where}: {error.problem} ({error.hint}).") from None
    assert local is not None  # noqa: S101 - what is parsed is one local time
    return local


def parse_once(text: str, timezone: str | None, option: str) -> dict[str, str]:
    """Return the schedule that runs once at a time, as the API takes it. Errors name `option`.

    Of a local time, what the clock shows counts if a government changes the clocks; of an instant, the instant.
    """
    instant, written = parse_instant(text, timezone, option), parse_time(text)
    once = {"at": instant.isoformat()} if written.tzinfo else {"local": written.isoformat(timespec="seconds")}
    return {**once, "timezone": timezone or "UTC"}


def parse_date(text: str, option: str) -> date:
    """Return a date, such as 2027-08-02. Errors name `option`."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise click.UsageError(f"{option}: {text[:40]!r} is not a date; write it like 2027-08-02.") from None
