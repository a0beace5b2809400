"""The options in their order: to take one out is to delete its file and its row."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cloudsched.domain.transitions.deliveries import DeliveryMaker
from cloudsched.engine.options.budget import OwnerBudget
from cloudsched.engine.options.callbacks import Callbacks
from cloudsched.engine.options.deliveries import Deliveries, make_message_name
from cloudsched.engine.options.failure_hooks import FailureHooks
from cloudsched.engine.options.follow_ups import FollowUps
from cloudsched.engine.options.journals import Journals
from cloudsched.engine.options.lock import HeldLock
from cloudsched.engine.options.other_tasks import OtherTasks
from cloudsched.engine.options.pings import Pings
from cloudsched.engine.options.usage import Usage
from cloudsched.engine.options.zone_plans import ZonePlans
from cloudsched.engine.state.options import Options

if TYPE_CHECKING:
    from cloudsched.engine.child_tasks import ChildTasks
    from cloudsched.engine.engine_context import EngineContext


def make_options(engine: EngineContext, child_tasks: ChildTasks, secret: str) -> Options:
    """Return all options. Each hook is called in this order."""
    store, clock = engine.store, engine.clock
    maker = DeliveryMaker(partial(make_message_name, secret), engine.settings.retention)
    return Options(
        (
            ZonePlans(engine),
            OwnerBudget(engine),  # before the lock is acquired
            FollowUps(engine, child_tasks),
            Deliveries(store, maker),
            HeldLock(engine),  # read last, as near to the commit as can be
            Journals(engine.archive),  # large ones are stored before any hook is called
            Callbacks(store, clock, maker),
            Pings(store, clock, maker),
            FailureHooks(engine.registry),
            OtherTasks(engine, child_tasks),
            Usage(),  # counts all that the others have added
        )
    )
