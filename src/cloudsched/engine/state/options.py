"""What a task may have beside the core: each option is an object with the hooks that it needs.

The executor and the committer name no option. They call the hooks in the order of one table (`engine.options.table`).
To take an option out is to delete its file and its row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from cloudsched.domain.documents.execution import Run
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.claim import Drop, Hop
    from cloudsched.domain.transitions.commit import Commit, Committed, VersionedTask
    from cloudsched.domain.transitions.finish import AttemptReport
    from cloudsched.domain.transitions.wakeups import Dispatch


@dataclass(slots=True)
class AttemptEnd:
    """The end of one attempt, which is decided on whatever version of its task the commit finds."""

    run: Run
    """The run as it was claimed."""
    report: AttemptReport
    is_repeat: bool = False
    """True if it was decided before, and that commit met a conflict."""
    notes: dict[type, Any] = field(default_factory=dict)
    """What an option keeps from one decision to the next, by its class."""


class Option:
    """An option of a task. Of its hooks only those that it defines are called, and only if it is concerned."""

    concerns: ClassVar[attrgetter[Any]] = attrgetter("task")
    """Finds in a stored task or a commit whether the option is concerned. Without a definition it always is."""

    def before_decision(self, stored: VersionedTask, /) -> VersionedTask:
        """Return the task on which a dispatch is decided, after what has to be done to it first."""
        raise NotImplementedError

    def before_claim(self, claim: Commit, dispatch: Dispatch, now: datetime, /) -> Commit | Drop | Hop:
        """Return what is committed for a dispatch, or why nothing is. `claim.effects.run` is the run that it claims."""
        raise NotImplementedError

    def on_outcome(self, commit: Commit, end: AttemptEnd, now: datetime, /) -> Commit:
        """Return the commit of how an attempt ends, with what the option adds. Raises InvalidInput to refuse it."""
        raise NotImplementedError

    def before_commit(self, commit: Commit, before: Task, /) -> Commit:
        """Return the commit of a task that existed before, with what the option adds."""
        raise NotImplementedError

    def calls_before_commit(self, commit: Commit, before: Task, /) -> Sequence[Callable[[], None]]:
        """Return calls that may take long, and are made before the commit. They get it as it was decided."""
        raise NotImplementedError

    def after_commit(self, committed: Committed, /) -> None:
        """Do what follows from a commit, without raising. A crash may prevent it: the sweep makes up for it."""
        raise NotImplementedError

    def on_dispatch(self, committed: Committed, /) -> None:
        """Send what is due after a delivery's commit. After QueueUnavailable the delivery is repeated."""
        raise NotImplementedError

    def on_lost(self, task: Task, run: Run, /) -> None:
        """Complete what the commit of an attempt's end would have done, if its answer was lost."""
        raise NotImplementedError

    def on_drop(self, dispatch: Dispatch, task: Task | None, /) -> None:
        """Complete what a crash may have left undone, for a dispatch that runs nothing. None: the task is gone."""
        raise NotImplementedError


class Options:
    """The options in their order, by the hooks that they define."""

    def __init__(self, table: Sequence[Option] = ()) -> None:
        def find(hook: str) -> tuple[tuple[attrgetter[Any], Any], ...]:
            defined = [each for each in table if getattr(type(each), hook) is not getattr(Option, hook)]
            return tuple((each.concerns, getattr(each, hook)) for each in defined)

        self.before_decision = find("before_decision")
        self.before_claim = find("before_claim")
        self.on_outcome = find("on_outcome")
        self.before_commit = find("before_commit")
        self.calls_before_commit = find("calls_before_commit")
        self.after_commit = find("after_commit")
        self.on_dispatch = find("on_dispatch")
        self.on_lost = find("on_lost")
        self.on_drop = find("on_drop")
