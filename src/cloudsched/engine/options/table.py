"""The options in their order: to take one out is to delete its file and its row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cloudsched.engine.state.options import Options
from cloudsched.features.table import FEATURES

if TYPE_CHECKING:
    from cloudsched.engine.engine_context import EngineContext

FIRST: Final = {
    "cloudsched.engine.options.zone_plans:ZonePlans": {"before_decision": "task.zone_plan"},
    # Large ones are stored before any hook is called.
    "cloudsched.engine.options.journals:Journals": {"before_record": "ends_journals"},
}
LAST: Final = {
    "cloudsched.engine.options.failure_hooks:FailureHooks": {"calls_for_failure": "task.id"},
    "cloudsched.engine.options.other_tasks:OtherTasks": {"after_commit": "commit.others"},
    # It counts all that the others have added.
    "cloudsched.engine.options.usage:Usage": {"before_commit": "task.id"},
}
TABLE: Final[dict[str, Any]] = {
    **FIRST,
    **{place: hooks for each in FEATURES for place, hooks in each.options.items()},
    **LAST,
}
"""By option, what each of its hooks concerns: a path from the hook's first argument."""


def make_options(engine: EngineContext) -> Options:
    """Return all options. Each hook is called in this order."""
    return Options(TABLE, engine)
