"""Send the questions of an attempt to the people who are asked, in the commit that suspends it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.transitions.commit import Commit, TaskWrite
from cloudsched.domain.transitions.outcome import Suspend
from cloudsched.engine.state.options import Option
from cloudsched.features.deliveries.option import make_deliveries, write_new

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.domain.documents.execution import Run
    from cloudsched.domain.transitions.finish import AttemptReport
    from cloudsched.engine.engine_context import EngineContext


class Questions(Option):
    """Adds a delivery for each person and channel to the questions that a commit puts into inboxes."""

    _engine: EngineContext

    def on_outcome(self, commit: Commit, _run: Run, report: AttemptReport, now: datetime) -> Commit:
        """Return the commit with the deliveries. What is asked again, after a retry, is not sent again."""
        if not isinstance(report.outcome, Suspend):
            return commit
        make = make_deliveries(self._engine).make_question
        channels = [each for each in report.outcome.channels if each.traits.is_sent]
        planned = [make(commit.task, message, channel, now) for message in commit.messages for channel in channels]
        writes = tuple(map(TaskWrite, planned))
        if commit.effects.is_repeat:
            writes = write_new(self._engine.store, planned)
        return commit.having(others=(*commit.others, *writes))
