"""Change the fields of a task in an editor, as ``git commit`` and ``kubectl edit`` do."""

from __future__ import annotations

import json
import re
import tempfile
from typing import TYPE_CHECKING, Any, Final

import click

from cloudsched.domain.transitions.task_draft import TaskDraft
from cloudsched.errors import CloudschedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.client.views import TaskView

_HEAD: Final = """\
# Change what is to be changed, save, and close the editor. What you leave out goes back to its default.
# A schedule may be words, too: "every weekday at 9". Lines that begin with # are ignored.
"""
_FIXED: Final = frozenset({"id", "owner"})
"""The fields of a new task that no edit changes."""


def edit_fields(task: TaskView, editor: str | None, change: Callable[[dict[str, Any]], None]) -> None:
    """Open an editor with the fields of a task, and change those that are different then.

    What was written is kept in a file if it is refused, or is not JSON.
    """
    content = task.model_dump(mode="json", by_alias=True, exclude_none=True, warnings=False)
    names = {field.alias or name for name, field in TaskDraft.model_fields.items()} - _FIXED
    before = {name: value for name, value in content.items() if name in names}
    shown = f"{_HEAD}{json.dumps(before, indent=2, ensure_ascii=False)}\n"
    text = click.edit(shown, editor, extension=".json", require_save=False)
    if text is None:
        raise click.Abort

    try:
        after = _parse(text)
        changes = {name: value for name, value in after.items() if name not in before or before[name] != value}
        changes |= dict.fromkeys(before.keys() - after.keys())
        if changes:
            change(changes)
        else:
            click.echo("Nothing differs.", err=True)
    except (CloudschedError, click.UsageError):
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".json", delete=False) as kept:
            kept.write(text)
        click.echo(f"What you wrote is kept in {kept.name}.", err=True)
        raise


def _parse(text: str) -> dict[str, Any]:
    try:
        fields = json.loads(re.sub(r"(?m)^#.*$", "", text))
    except ValueError as error:
        raise click.UsageError(f"This is not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise click.UsageError("This is not a JSON object with the fields of a task.")
    return fields
