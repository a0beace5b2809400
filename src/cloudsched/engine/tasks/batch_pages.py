"""What batch changes have in common: whose rights they have, and how a page of them is counted."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.authority import SYSTEM_OWNER, TRUSTED_CODE, EventSender, Requesters, SenderRole
from cloudsched.engine.ports.authority import OWN_CODE, Authority
from cloudsched.errors import CloudschedError, NotFound, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.handlers.context import Context

log = logging.getLogger(__name__)

MAX_REFUSALS: Final = 20
"""How many refusals the result describes."""
COUNTS: Final = ("changed", "skipped", "refused")


class Skip(Exception):
    """What would be changed is not concerned, or there is nothing to do."""


def make_authority(own_task: Task, check: Callable[[Task], None]) -> Authority:
    """Return that of whoever asked for a change. It is a task of theirs, which goes on after their credential's end."""
    owner = own_task.owner
    sender = next((each.by for each in own_task.history if each.by is not None), None)
    if owner == SYSTEM_OWNER:
        return replace(OWN_CODE, sender=sender or TRUSTED_CODE, authorize=check)
    user = sender or EventSender(role=SenderRole.OWNER, subject=f"user:{owner}")
    return Authority(Requesters.USERS, user, owner=owner, is_valid=lambda: True, authorize=check)


def count_change(done: dict[str, Any], task_id: str, change: Callable[[], object]) -> None:
    """Make one of many changes, and count whether it was made, skipped or refused.

    Raises:
        Unavailable: The store or the queue; all of the page is tried again.
    """
    try:
        change()
    except (Skip, NotFound):
        done["skipped"] += 1
    except Unavailable:
        raise
    except CloudschedError as error:
        _note_refusal(done, task_id, str(error))
    except Exception as error:  # a problem of one task must not keep the others from being changed
        log.exception("not changed", extra={"action": "unchanged", "taskId": task_id})
        _note_refusal(done, task_id, type(error).__name__)
    else:
        done["changed"] += 1


def _note_refusal(done: dict[str, Any], task_id: str, problem: str) -> None:
    done["refused"] += 1
    if len(done["refusals"]) < MAX_REFUSALS:
        done["refusals"].append({"taskId": task_id, "problem": problem})


def add_page(ctx: Context, total: dict[str, Any], done: dict[str, Any]) -> str | None:
    """Add the counts of a page, report them as progress, and return the token of the next page."""
    for name in COUNTS:
        total[name] += done[name]
    total["refusals"] = [*total["refusals"], *done["refusals"]][:MAX_REFUSALS]
    ctx.progress(", ".join(f"{total[name]} {name}" for name in COUNTS))
    token: str | None = done["next"]
    return token
