"""What a task may have beside the core: each option is an object with the hooks that it needs.

The executor and the committer name no option. They call the hooks in the order of one table
(`engine.options.table`). To take an option out is to delete its file and its row. Its file is imported
when a task is the first to need it.
"""

from __future__ import annotations

from functools import cached_property
from operator import attrgetter
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from cloudsched.domain.transitions.commit import Commit, Committed, VersionedTask

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    Hooks = tuple[tuple[attrgetter[Any], "Option"], ...]
    """What finds whether an option is concerned, and the option."""

    from cloudsched.domain.documents.execution import Run
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.claim import DeliveryResult, Hop
    from cloudsched.domain.transitions.finish import AttemptReport
    from cloudsched.domain.transitions.wakeups import Dispatch
    from cloudsched.engine.ports.procedure import LongCall


class FailureCalls(NamedTuple):
    """Calls that may take long, and are made before a commit and after it.

    One after it is made at most once: it may end the process.
    """

    before: Sequence[LongCall] = ()
    after: Sequence[LongCall] = ()


NO_CALLS: Final = FailureCalls()


class Option:
    """An option of a task. Of its hooks those in the table are called, for the tasks that it concerns."""

    def __init__(self, engine: Any) -> None:  # noqa: ANN401 - the engine's context, which this room does not know
        self._engine = engine

    def before_decision(self, stored: VersionedTask, /) -> VersionedTask:
        """Return the task on which a dispatch is decided, after what has to be done to it first."""
        raise NotImplementedError

    def before_claim(
        self,
        claim: Commit,
        dispatch: Dispatch | None,
        now: datetime,
        /,
    ) -> Commit | DeliveryResult | Hop:
        """Return what is committed for a dispatch, or a worker's claim without one.

        If nothing is, return why.

        `claim.effects.run` is the run that it claims. To delay a start and lose nothing, return what
        `domain.transitions.claim.put_off` makes. A `Hop` leaves the occurrence unclaimed, so `catchUp` and `expiration`
        still decide about it.
        """
        raise NotImplementedError

    def on_outcome(self, commit: Commit, run: Run, report: AttemptReport, now: datetime, /) -> Commit:
        """Return the commit of how a run's attempt ends, with what the option adds.

        Raises InvalidInput to refuse it.

        It gets the run as it was claimed. `commit.effects.is_repeat` tells that it is called again after
        a conflict.
        """
        raise NotImplementedError

    def on_lease_change(self, commit: Commit, run: Run, /) -> Commit | None:
        """Return the commit that renews or releases the lease of a run, or None if the run may not go on."""
        raise NotImplementedError

    def before_record(self, commit: Commit, before: Task, /) -> Commit:
        """Return the commit of records, of runs that end or wait for a retry, with what the option adds."""
        raise NotImplementedError

    def before_commit(self, commit: Commit, before: Task, /) -> Commit:
        """Return the commit of a task that existed before, with what the option adds."""
        raise NotImplementedError

    def before_failure(self, commit: Commit, before: Task, /) -> Commit:
        """Return the commit of records of which some end without a result, with what the option adds."""
        raise NotImplementedError

    def calls_for_failure(self, commit: Commit, before: Task, /) -> FailureCalls:
        """Return what is called for such a commit, which it gets as it was decided."""
        raise NotImplementedError

    def after_commit(self, committed: Committed, /) -> None:
        """Do what follows from a commit, without raising.

        A crash may prevent it: the sweep makes up for it.
        """
        raise NotImplementedError

    def on_dispatch(self, committed: Committed, /) -> None:
        """Send what is due after a delivery's commit. After QueueUnavailable the delivery is repeated."""
        raise NotImplementedError

    def on_lost(self, task: Task, execution_id: str, run: Run | None, /) -> None:
        """Complete what the commit of an attempt's end would have done, if its answer was lost.

        None: it has ended.
        """
        raise NotImplementedError

    def on_drop(self, dispatch: Dispatch, task: Task | None, /) -> None:
        """Complete what a crash may have left undone, for a dispatch that runs nothing.

        None: the task is gone.
        """
        raise NotImplementedError

    def on_leave(self, task: Task, /) -> None:
        """Drop what the open runs of a task wait for, since it is deleted or plans anew. Without raising."""
        raise NotImplementedError


class _Unloaded:
    """Stands for an option.

    Its file is imported, and its object made, when one of its hooks is first called.
    """

    def __init__(self, place: str, engine: object) -> None:
        self._place = place
        self._engine = engine

    @cached_property
    def _option(self) -> Option:
        return cast("Option", resolve_name(self._place)(self._engine))

    def __getattr__(self, hook: str) -> object:
        found: object = getattr(self._option, hook)
        setattr(self, hook, found)  # from now on it is called directly
        return found


class Options:
    """The options in their order, by hook: each with what finds whether it is concerned."""

    def __init__(self, table: Mapping[str, Mapping[str, str]], engine: object = None) -> None:
        """Take a table: by an option's place, ``module:class``, what concerns it, by the name of each of its hooks.

        That is a path from the hook's first argument. The option is concerned if something is there.
        """
        self._options = [(cast("Option", _Unloaded(place, engine)), hooks) for place, hooks in table.items()]

    def __getattr__(self, hook: str) -> Hooks:
        getattr(Option, hook)  # there are no others
        found = tuple((attrgetter(hooks[hook]), option) for option, hooks in self._options if hook in hooks)
        setattr(self, hook, found)  # from now on it is found directly
        return found

    def send_after(self, committed: Committed) -> None:
        """Call `on_dispatch` of each option that is concerned."""
        for concerns, option in self.on_dispatch:
            if concerns(committed):
                option.on_dispatch(committed)

    def lose(self, task: Task, execution_id: str, run: Run | None = None) -> None:
        """Call `on_lost` of each option that is concerned."""
        for concerns, option in self.on_lost:
            if concerns(task):
                option.on_lost(task, execution_id, run)

    def leave(self, task: Task) -> None:
        """Call `on_leave` of each option that is concerned."""
        for concerns, option in self.on_leave:
            if concerns(task):
                option.on_leave(task)

    def adapt_claim(
        self,
        claim: Commit,
        dispatch: Dispatch | None,
        now: datetime,
    ) -> Commit | DeliveryResult | Hop:
        """Call `before_claim` of each option, until the run does not start: then nothing else is asked."""
        run = claim.effects.run
        for concerns, option in self.before_claim:
            if concerns(claim):
                adapted = option.before_claim(claim, dispatch, now)
                if not isinstance(adapted, Commit) or (run is not None and adapted.effects.run is None):
                    return adapted
                claim = adapted
        return claim
