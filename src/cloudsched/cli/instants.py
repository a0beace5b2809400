"""Instants as people type them: with an offset, or by the clocks of a zone."""

from __future__ import annotations

from datetime import datetime

import click

from cloudsched.errors import InvalidSchedule


def parse_instant(text: str, timezone: str | None, option: str) -> str:
    """Return an instant with its offset; a local time is in the given zone. Errors name `option`."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise click.UsageError(f"{option}: {text!r} is not an instant; write it like 2027-01-01T09:00:00Z.") from None
    if at.tzinfo is not None:
        return text
    if timezone is None:
        raise click.UsageError(f"{option}: {text!r} has no time zone; end it with Z for UTC, or give --timezone.")
    from cloudsched.domain.recurrence.schedule import Schedule  # noqa: PLC0415 - only needed for a local time

    try:
        return str(Schedule.parse(at.isoformat(timespec="seconds"), timezone).at)
    except InvalidSchedule as error:
        where = "--timezone" if error.field == "timezone" else option
        raise click.UsageError(f"{where}: {error.problem} ({error.hint}).") from None
