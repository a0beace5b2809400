"""The clients of a history: they create, edit, pause, trigger and delete a few tasks, with all policies mixed."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

from tests.authorities import as_user, with_authority
from tests.engine.harness import DAY, HOUR, MINUTE, SECOND
from tests.simulation.actors_calendars import CALENDAR_SHARE, put_days, require_calendars, schedule_with_calendars
from tests.simulation.actors_channels import PERSON_SHARE, change_preferences, pick_channels
from tests.simulation.actors_durable_handlers import EVENTS, child_fields
from tests.simulation.actors_journeys import JOURNEY_SHARE, draft_follower, travel
from tests.simulation.actors_workers import random_pull
from tests.simulation.invariants_budgets import look_at_budgets

from cloudsched import App, Overlap, RetryPolicy, Schedule, Task, TaskDraft
from cloudsched.domain.documents.authority import Requesters
from cloudsched.domain.documents.policy import CatchUp, CatchUpMode, Priority
from cloudsched.domain.transitions.idempotency import RequestMark
from cloudsched.domain.transitions.manual_verbs import find_triggered
from cloudsched.domain.transitions.task_draft import to_wire_fields
from cloudsched.engine.tasks.manual_runs import make_mark

if TYPE_CHECKING:
    from tests.simulation.world import World


IDS = ("a", "b", "c")
MORE_IDS = ("d", "e")
"""With workers there are more tasks."""
_TO_CALLS = 0.15
"""The probability that a client acts on a call rather than on a task of its own."""
_BUDGET_SHARE = 0.3
"""The probability that a change is a look at the budgets, or an admin's."""
_COMMON = (
    "create",
    "edit",
    "edit",
    "respell",
    "respell",
    "limit",
    "pause",
    "resume",
    "resume",
    "trigger",
    "trigger",
    "snooze",
    "skip",
    "move one",
    "pause for a while",
)
_RARE = ("backfill", "retry", "cancel run", "cancel run", "cancel", "delete")
_WORKERS = (*_COMMON, *_RARE, "move", "move", "move")
_CROWD = ("edit", "trigger", "trigger", "resume")
_LOCKS = (*("edit",) * 6, "trigger", "trigger", "pause", "resume", "resume", "cancel", "delete", "limit")
_TRAVELLING = ("trigger", "trigger", "pause", "resume", "resume", "delete")
_WITHOUT_TASK = {
    "travel": travel,
    "put days": put_days,
    "change preferences": change_preferences,
    "look at budgets": look_at_budgets,
}
_DURABLE = (*("event",) * 8, "create", "edit", "pause", "resume", "resume", "trigger", "retry", "retry", *_RARE)


def apply_random_change(world: World, app: App, task_id: str) -> None:
    verb = _pick_verb(world, task_id, is_there=app.container.store.load(task_id) is not None)
    world.log(f"wants to {verb} {task_id}")
    world.rules.on_client_request(verb)
    if verb in _WITHOUT_TASK:
        _WITHOUT_TASK[verb](world, app)
        return
    told = _redefine(world, app, task_id) if verb == "redefine" else _apply(world, app, verb, task_id)
    if told is not None:
        world.rules.on_client_reply(told)


def pick_task(world: World) -> str:
    """Return the task that a client acts on, or several at once."""
    if world.fault_profile.moves_locks:
        overdue = [task.id for task in world.tasks() if _waits_at_lock(task, world)]
        if overdue and world.random.random() < 0.7:
            return world.random.choice(overdue)
    task_id = world.random.choice(world.ids)
    if world.fault_profile.is_crowded:
        task_id = next((one for one in world.ids if world.real_store.load(one) is None), task_id)
    if world.trees.calls and world.random.random() < _TO_CALLS:
        task_id = world.random.choice(world.trees.calls[-10:])
    return task_id


def _waits_at_lock(task: Task, world: World) -> bool:
    """Whether an occurrence of the task is due and has not started, although nothing but its lock holds it back."""
    at = task.next_execution_time
    return bool(task.is_active and task.lock_key and at and at <= world.now and not task.runs)


def _pick_verb(world: World, task_id: str, *, is_there: bool) -> str:  # noqa: PLR0911 - one for each kind of history
    if not is_there:
        return "create" if task_id in world.ids else "look at"
    if world.fault_profile.is_crowded:
        return world.random.choice(_LOCKS if world.fault_profile.moves_locks else _CROWD)
    verbs = (*_COMMON, *_RARE) if not world.fault_profile.has_workers else _WORKERS
    if world.fault_profile.has_calendars and world.random.random() < CALENDAR_SHARE:
        return "put days"
    if world.fault_profile.has_journeys:
        return "travel" if world.random.random() < JOURNEY_SHARE else world.random.choice(_TRAVELLING)
    if world.fault_profile.has_channels and world.random.random() < PERSON_SHARE:
        return "change preferences"
    if world.fault_profile.has_budgets and world.random.random() < _BUDGET_SHARE:
        return "look at budgets"
    if world.fault_profile.redefines and world.random.random() < world.fault_profile.redefines:
        verb = "redefine"
    else:
        verb = world.random.choice(_DURABLE if world.fault_profile.is_durable else verbs)
    return "look at" if verb == "create" and task_id not in world.ids else verb


def _apply(world: World, app: App, verb: str, task_id: str) -> Task | None:
    told: Task | None = None
    match verb:
        case "create":
            draft, is_users = _make_draft(world, app, task_id), world.fault_profile.has_budgets
            told = _pick_app(world, app, task_id).put(draft)[0] if is_users else app.create(draft)
        case "edit":
            told = app.update(task_id, title=f"edited at {world.now}", **_pick_policies(world, task_id))
        case "move":
            told = app.update(task_id, pull=random_pull(world.random))
        case "limit":
            told = app.update(task_id, **_pick_limits(world))
        case "backfill":
            end = app.container.clock.now() - _pick_span(world)
            told = app.backfill(task_id, end - _pick_span(world) * 3, end)
        case "event":
            event = world.random.choice(EVENTS)
            open_runs = [run.execution_id for run in app.get(task_id).runs]
            only = world.random.choice([None, None, *open_runs[:1]])
            early = world.random.random() < 0.5
            for _ in range(world.random.choice([1, 1, 2])):
                payload = {"n": world.random.getrandbits(40)}
                told = app.send_event(task_id, event, payload, execution_id=only, early=early)
        case "look at":
            app.tree(task_id)
        case "delete":
            app.delete(task_id)
        case _:
            told = _apply_verb(world, app, verb, task_id)
    return told


_RESPELLED = {
    "FREQ=HOURLY;INTERVAL=2": ["FREQ=MINUTELY;INTERVAL=120", "FREQ=HOURLY", "FREQ=HOURLY;INTERVAL=2;COUNT=900"],
    "FREQ=MINUTELY;INTERVAL=20": ["FREQ=SECONDLY;INTERVAL=1200", "FREQ=MINUTELY;INTERVAL=10", "FREQ=HOURLY"],
    "FREQ=HOURLY;COUNT=4": ["FREQ=MINUTELY;INTERVAL=60;COUNT=4", "FREQ=HOURLY;COUNT=3"],
}
"""Other rules with the same occurrences, with more, and with fewer."""


def _respell(world: World, schedule: Schedule) -> Schedule:
    """Return a schedule that has what another one has, or nearly so. Without one, the same again."""
    rules = _RESPELLED.get(str(schedule.rrule))
    return schedule if rules is None else schedule.model_copy(update={"rrule": world.random.choice(rules)})


def _apply_verb(world: World, app: App, verb: str, task_id: str) -> Task:
    if verb == "respell":
        return app.update(task_id, schedule=_respell(world, app.get(task_id).schedule))
    if verb == "trigger":
        return _trigger(world, app, task_id)
    if verb == "snooze":
        return app.snooze(task_id, _pick_span(world))
    if verb == "move one":
        following = app.get(task_id).next_execution_time or app.container.clock.now()
        return app.move(task_id, "next", following + _pick_span(world))
    if verb == "pause for a while":
        return app.pause(task_id, until=app.container.clock.now() + _pick_span(world))
    told: Task = _cancel_run(world, app, task_id) if verb == "cancel run" else getattr(app, verb)(task_id)
    return told


def _cancel_run(world: World, app: App, task_id: str) -> Task:
    """Cancel one of the open runs of a task, or one that may not exist."""
    runs = [run.execution_id for run in app.get(task_id).runs]
    return app.cancel_run(task_id, world.random.choice([*runs, "20270101T000000Z"]))


def _pick_limits(world: World) -> dict[str, Any]:
    limits: dict[str, Any] = {"until": world.now + _pick_span(world) * 5}
    limits["max_runs"] = world.random.choice([None, 1, 5, 50])
    return {**limits, **_pick_own_limit(world)}


def _pick_own_limit(world: World) -> dict[str, Any]:
    """Return a limit of queries for a task, or none, where owners have budgets."""
    return {"max_queries_per_month": world.random.choice([None, 1, 4])} if world.fault_profile.has_budgets else {}


def _pick_app(world: World, app: App, task_id: str) -> App:
    """Return the app of whoever creates a task: a user's where users may name its handler, and its lock is theirs."""
    return as_user(app) if world.kinds[task_id] == "work" and world.random.random() < 0.8 else app


def _redefine(world: World, app: App, task_id: str) -> Task:
    """Edit what a task runs, as a user or as a server: another payload, another handler, or only another title."""
    choose = world.random.choice
    changes: dict[str, Any] = {"title": f"redefined at {world.now}"}
    match world.kinds.get(task_id):
        case "work":
            changes["payload"] = {"n": choose([3, 4, 5])}
        case "flow":
            changes["handler"] = choose(["flow", "stream"])
        case "children":
            children = child_fields(Random(f"{world.seed} {task_id} {choose([1, 2])}"), world)  # noqa: S311
            changes |= to_wire_fields(children)
    return app.acting_with(with_authority(choose([*Requesters]))).patch(task_id, changes)


def _trigger(world: World, app: App, task_id: str) -> Task:
    """Run a task now: with its own payload or with another one, at times with a key that was used before."""
    if world.random.random() < 0.5 or world.kinds.get(task_id) != "work":
        return app.trigger(task_id)
    payload = {"n": world.random.choice([1, 2])}
    mark = RequestMark.of_name(["ada", payload["n"]], payload) if world.random.random() < 0.3 else make_mark()
    told = app.marked(mark).trigger(task_id, payload)
    if (triggered := find_triggered(told, mark)) is not None:
        world.rules.on_triggered(told, triggered, payload)
    return told


def _make_draft(world: World, app: App, task_id: str) -> TaskDraft:
    if world.fault_profile.has_calendars:
        require_calendars(world, app)
    if world.fault_profile.has_journeys:
        return draft_follower(world, task_id)
    return TaskDraft.of(
        id=task_id,
        owner="bob" if task_id in MORE_IDS else "ada",
        title="Work",
        schedule=_schedule(world),
        **_pick_own_limit(world),
        **_handler(world, task_id),
        **_pick_policies(world, task_id),
    )


def _handler(world: World, task_id: str) -> dict[str, Any]:
    """Return a task's handler or script: always the same, since a replay cannot follow a change of its handler."""
    kind = world.kinds[task_id]
    return child_fields(Random(f"{world.seed} {task_id}"), world) if kind == "children" else {"handler": kind}  # noqa: S311


def _schedule(world: World) -> Schedule:
    if world.fault_profile.has_calendars:
        return schedule_with_calendars(world)
    choose = world.random.choice
    start = world.now + world.random.random() * _pick_span(world)
    if world.random.random() < (0.6 if world.fault_profile.is_durable else 0.25) and not world.fault_profile.is_crowded:
        far = timedelta(days=choose([29, 31, 61, 65])) if world.fault_profile.is_long else timedelta(0)
        return Schedule.once(start + far)
    rules = [
        "FREQ=HOURLY;INTERVAL=2",
        "FREQ=MINUTELY;INTERVAL=20",
        "FREQ=MINUTELY;INTERVAL=10;COUNT=9",
        "FREQ=HOURLY;COUNT=4",
    ]
    rules = rules[:2] if world.fault_profile.is_crowded else rules
    rules = ["FREQ=HOURLY;COUNT=2", "FREQ=HOURLY;INTERVAL=2"] if world.fault_profile.is_durable else rules
    rare = ["FREQ=DAILY;INTERVAL=5", "FREQ=MONTHLY;BYMONTHDAY=-1", "FREQ=YEARLY;BYMONTH=5,6", "FREQ=WEEKLY;BYDAY=MO,SA"]
    local = start.replace(tzinfo=None, microsecond=0)
    if world.fault_profile.is_crowded:
        local = local.replace(minute=0, second=0)
    # A recurring schedule may start in the past; it continues from now.
    begun = local - choose([timedelta(0), 5 * HOUR, 40 * DAY])
    zone = choose(["UTC", "Europe/Paris", "America/New_York"])
    return Schedule(
        rrule=choose(rare if world.fault_profile.is_long else rules), dtstart=begun.isoformat(), timezone=zone
    )


def _pick_policies(world: World, task_id: str) -> dict[str, Any]:
    choose = world.random.choice
    return {
        "overlap": choose(list(Overlap)),
        "catch_up": CatchUp(mode=choose(list(CatchUpMode)), window=choose([None, None, 30 * MINUTE])),
        "expiration": choose([None, None, None, 15 * MINUTE]),
        "jitter": choose([timedelta(0), 3 * MINUTE, 15 * MINUTE]),
        "expected_duration": choose([40 * SECOND, 5 * MINUTE]),
        "retry": RetryPolicy(max_retries=choose([0, 1, 3]), base=timedelta(seconds=choose([5, 600]))),
        "pause_after_failures": choose([None, None, 2]),
        "tell_failures": choose(["first", "first", "each", "never"]),
        "max_runs": None if world.fault_profile.is_crowded else choose([None, None, None, 1, 4]),
        "lock_key": _lock_key(world),
        **(pick_channels(world) if world.fault_profile.has_channels else {"delivery_channels": choose([(), ("WEB",)])}),
        **(_pick_worker_fields(world, task_id) if world.fault_profile.has_workers else {}),
    }


def _pick_worker_fields(world: World, task_id: str) -> dict[str, Any]:
    pull = None if world.kinds.get(task_id) == "children" else random_pull(world.random)
    lock_key = world.random.choice([None, "one thing", "one thing"])
    chosen = {"pull": pull, "priority": world.random.choice(list(Priority)), "lock_key": lock_key}
    long = {"expected_duration": 5 * MINUTE}  # without faults no lease expires before its work is done
    return {**chosen, **(long if world.fault_profile.is_fault_free else {})}


def _lock_key(world: World) -> str | None:
    if world.fault_profile.moves_locks:
        return world.random.choice(["one thing", "one thing", "another", None])
    return "one thing" if world.fault_profile.is_crowded else world.random.choice([None, None, "one thing", "another"])


def _pick_span(world: World) -> timedelta:
    return 3 * DAY if world.fault_profile.is_long else timedelta(minutes=world.random.choice([1, 7, 30]))
