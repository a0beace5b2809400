"""Shows what would be changed, or was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cloudsched.domain.closed_sets import complete_table
from cloudsched.engine.tasks.declared_tasks import Action
from cloudsched.local.untrusted_text import to_printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cloudsched.engine.tasks.declared_tasks import Change

_SIGNS = complete_table(
    Action,
    {Action.CREATE: "+", Action.UPDATE: "~", Action.PAUSE: "-", Action.RESUME: "+", Action.DELETE: "-"},
)


def show_changes(changes: Iterable[Change], titles: Mapping[str, str] | None = None) -> None:
    """Print one line for each change.

    Args:
        changes: What differs.
        titles: What the tasks are, by their ids, where the ids do not say it.
    """
    for change in changes:
        title = (titles or {}).get(change.task_id)
        shown = "" if title in {None, change.task_id} else f" ({title})"
        click.echo(to_printable(f"{_SIGNS[change.action]} {change.action} {change.task_id}: {change.detail}{shown}"))
