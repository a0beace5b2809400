"""What may be drafted: a part of `Settings`; see ``docs/how-to/drafts.md``."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from cloudsched.config.variables import SettingsSection, seconds_between, setting

_DAY_SECONDS = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftSettings(SettingsSection):
    """How soon and how often what is drafted may run.

    The documentation of each field stands beside it, and in ``docs/reference/configuration.md``.
    """

    least_lead: timedelta = setting(
        "CLOUDSCHED_DRAFT_LEAST_LEAD_SECONDS",
        "the shortest time between a [draft](../how-to/drafts.md) of a single run and that run: people have to read "
        "and confirm it",
        seconds_between(0, 365 * _DAY_SECONDS),
        default=timedelta(seconds=30),
    )
    least_interval: timedelta = setting(
        "CLOUDSCHED_DRAFT_LEAST_INTERVAL_SECONDS",
        "the shortest time between two runs that a draft proposes; more often is refused",
        seconds_between(0, 365 * _DAY_SECONDS),
        default=timedelta(minutes=1),
    )
