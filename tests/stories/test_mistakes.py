"""What a newcomer gets wrong, with the exact text that each mistake gives: what is wrong, where, and what to write.

None of them shows an address of pydantic's documentation, or is a bare AttributeError.
"""

# ruff: noqa: ARG005, E501 - a table: one mistake a line, with its whole text
# mypy: disable-error-code="arg-type,attr-defined,call-arg,call-overload,index,list-item,misc"

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import BaseModel
from tests.instants import DAY, HOUR, SECOND

from cloudsched import App, AsyncContext, Context, Done, RetryPolicy, Schedule, Settings, TaskDraft
from cloudsched.errors import CloudschedError
from cloudsched.testing import START, Simulation

NAIVE = datetime(2027, 1, 5, 9)  # noqa: DTZ001 - one of the mistakes
AWARE = NAIVE.replace(tzinfo=UTC)


class Reminder(BaseModel):
    text: str
    times: int = 1


async def fetch() -> AsyncIterator[int]:
    yield 1


def await_nothing(ctx: AsyncContext) -> None: ...


def remind(payload: Reminder) -> str:
    return payload.text


GIVE_ZONE = (
    'Give its offset from UTC, as in 2027-01-01T09:00:00Z, or in Python tzinfo=UTC or tzinfo=ZoneInfo("Europe/Paris").'
)
RIGHT: dict[str, Any] = {"handler": "remind", "payload": {"text": "x"}}
REFUSED = (CloudschedError, RuntimeError, TypeError, ValueError)


class Desk:
    """An app in a simulation, on which the mistakes are made."""

    def __init__(self) -> None:
        self.app = App(Settings())
        self.app.handler("remind")(remind)
        self.call: Callable[[Context], object] = lambda _: None

        @self.app.handler("flow")
        def flow(ctx: Context) -> object:
            return self.call(ctx)

        self.sim = Simulation(self.app)

    def run(self, call: Callable[[Context], object]) -> None:
        """Run a handler, and raise the error that is on its record."""
        self.call = call
        task = self.app.create(handler="flow", retry=3, schedule=self.sim.now)
        self.sim.advance(SECOND)
        execution = self.sim.executions(task.id)[0]
        assert execution.status == "FAILED"  # another attempt would make the same mistake
        error = execution.attempts[-1].error
        raise RuntimeError("" if error is None else error.message)


# fmt: off
MISTAKES: dict[str, tuple[Callable[[Desk], object], str]] = {
    "every int": (lambda d: Schedule.every(60), "interval: is 60 (give a timedelta, such as timedelta(minutes=5))"),
    "every zero": (lambda d: Schedule.every(timedelta(0)), "rrule: cannot repeat every 0:00:00 (give whole seconds, 1 or more)"),
    "schedule cron": (lambda d: Schedule(cron="0 9 * * *"), 'cron: is no field of a schedule (write Schedule.parse("0 9 * * 1-5"), or give the cron expression itself as the schedule)'),
    "schedule tz": (lambda d: Schedule(rrule="FREQ=DAILY", tz="UTC"), "tz: is no field of a schedule (there are: at, delay, rrule, dtstart, timezone, rdates, exdates, gap, fold, sub_daily, local, follows_owner, start_zone, calendars, business_day)"),
    "schedule time_zone": (lambda d: Schedule(rrule="FREQ=DAILY", time_zone="UTC"), "time_zone: is no field of a schedule (did you mean timezone?)"),
    "schedule empty": (lambda d: Schedule(), "rrule: is missing (give `at` for one instant, or `rrule` for several)"),
    "schedule once naive": (lambda d: Schedule.once(NAIVE), f"at: has no time zone ({GIVE_ZONE})"),
    "between naive": (lambda d: Schedule.once(AWARE).between(AWARE, NAIVE), "the end has no time zone; give an aware datetime"),
    "schedule at text": (lambda d: Schedule(at="tomorrow"), "at: is not an instant such as 2027-01-01T09:00:00Z"),
    "schedule gap": (lambda d: Schedule(rrule="FREQ=DAILY", gap="skp"), "gap: Input should be 'SHIFT' or 'SKIP'"),
    "schedule rrule cron": (lambda d: Schedule(rrule="0 9 * * *"), "rrule: '0 9 * * *' is not a rule (write it like FREQ=WEEKLY;BYDAY=MO,WE; cron is no rule but the schedule itself: '0 9 * * *')"),
    "schedule freq": (lambda d: Schedule(rrule="FREQ=DAYLY"), "rrule: FREQ cannot be 'DAYLY' (one of YEARLY, MONTHLY, WEEKLY, DAILY, HOURLY, MINUTELY, SECONDLY)"),
    "schedule part": (lambda d: Schedule(rrule="FREQ=DAILY;BYHOURS=9"), "rrule: BYHOURS is not a part of a rule (known parts: FREQ, INTERVAL, COUNT, UNTIL, WKST, BYDAY, BYSECOND, BYMINUTE, BYHOUR, BYMONTHDAY, BYYEARDAY, BYWEEKNO, BYMONTH, BYSETPOS, SKIP, RSCALE)"),
    "schedule dtstart offset": (lambda d: Schedule(rrule="FREQ=DAILY", dtstart="2027-01-01T09:00:00Z"), "dtstart: is a local time and takes no offset (leave the offset out; timezone says where)"),
    "schedule both": (lambda d: Schedule(at=AWARE, rrule="FREQ=DAILY"), "rrule: cannot stand beside `at` (give one instant, or a recurrence)"),
    "zone CEST": (lambda d: Schedule(rrule="FREQ=DAILY", timezone="CEST"), "timezone: there is no time zone 'CEST' (did you mean Europe/Berlin?)"),
    "zone typo": (lambda d: Schedule(rrule="FREQ=DAILY", timezone="Europe/Pariss"), "timezone: there is no time zone 'Europe/Pariss' (did you mean Europe/Paris?)"),
    "zone offset": (lambda d: Schedule(rrule="FREQ=DAILY", timezone="+01:00"), "timezone: there is no time zone '+01:00' (did you mean Etc/GMT-1, 1 hour ahead of UTC all year (these names count west), or a city such as Europe/Paris?)"),
    "parse six": (lambda d: Schedule.parse("0 0 9 * * 1-5"), "text: '0 0 9 * * 1-5' has 6 fields, and cron has five (leave out seconds (the first of six) and the year (the last of seven), and name weekdays: 0 9 * * MON-FRI)"),
    "parse aws": (lambda d: Schedule.parse("cron(0 9 ? * MON-FRI *)"), "text: 'cron(0 9 ? * MON-FRI *)' is a cron expression of AWS (write its first five fields alone, with the names of weekdays: 0 9 * * MON-FRI)"),
    "parse words": (lambda d: Schedule.parse("every weekday"), "text: 'every weekday' is not a schedule (write an RRULE (FREQ=DAILY), an iCalendar block, cron (0 9 * * 1-5), an instant (2027-01-31T09:00:00Z), a duration from now (PT5M) or now; for plain words use cloudsched.language.read)"),
    "parse minute": (lambda d: Schedule.parse("60 9 * * *"), "text: the minute of a cron expression cannot be '60' (0 to 59, as a list, a range a-b or a step */n)"),
    "parse duration": (lambda d: Schedule.parse("PT5M"), "at: 'PT5M' counts from now, and no `now` was given (give one, or an instant)"),
    "parse macro": (lambda d: Schedule.parse("@reboot"), "text: '@reboot' is no macro of cron (there are @hourly, @daily, @weekly, @monthly and @yearly)"),
    "create ownr": (lambda d: d.app.create(**RIGHT, ownr="ada"), "ownr: is no field of a task (Did you mean owner?)"),
    "create minutes": (lambda d: d.app.create(**RIGHT, expirationInMinutes=5), "expirationInMinutes: is no field of a task (Did you mean expiration? It is in seconds.)"),
    "create channel": (lambda d: d.app.create(**RIGHT, delivery_channels="EMAIL"), "delivery_channels: Input should be a list (Put it into a list, also if it is one: [value].)"),
    "create past": (lambda d: d.app.create(**RIGHT, schedule=datetime(2020, 1, 1, tzinfo=UTC)), "schedule.at: is in the past: it is 2027-01-01T00:00:00Z now (Give a later instant, or none to run now.)"),
    "create two": (lambda d: d.app.create(**RIGHT, tilte="x", ml=-3), "tilte: is no field of a task (Did you mean title?)\nml: is no field of a task (Remove it, or check its spelling.)"),
    "create label": (lambda d: d.app.create(**RIGHT, labels=["Urgent"]), "labels.0: must be key=value, such as team=payments; the key begins with a small letter and has no capitals"),
    "create jitter": (lambda d: d.app.create(**RIGHT, jitter="10 minutes"), "jitter: is no length of time (Give seconds, such as 600, or an ISO 8601 duration, such as PT10M.)"),
    "create zero": (lambda d: d.app.create(**RIGHT, schedule="every 0 minutes"), "schedule: 'every 0 minutes' cannot be scheduled (an interval is 1 or more, for example: every 5 minutes)"),
    "create 30 February": (lambda d: d.app.create(**RIGHT, schedule="30 February"), "schedule: '30 February' cannot be scheduled (there is no such date; check the day and the month)"),
    "create words ambiguous": (lambda d: d.app.create(**RIGHT, schedule="every second Tuesday at 10am"), "schedule: 'every second Tuesday at 10am' can mean 'every month on the 2nd Tuesday at 10:00, UTC'; or 'every 2 weeks on Tuesday at 10:00, first on Tuesday 5 January 2027, UTC' (Say what is meant.)"),
    "create no handler": (lambda d: d.app.create(payload={}), "handler: Field required (It is required.)"),
    "create unknown handler": (lambda d: d.app.create(handler="remnd", payload={}), "handler: there is no handler named 'remnd' (Did you mean 'remind'? Registered: flow, remind.)"),
    "create payload typo": (lambda d: d.app.create(handler="remind", payload={"txt": "x"}), "payload.txt: is not a field of Reminder (Did you mean 'text'? Reminder has text: str, times: int (optional).)"),
    "create payload type": (lambda d: d.app.create(handler="remind", payload={"text": 5}), "payload.text: Input should be a valid string"),
    "create payload text": (lambda d: d.app.create(handler="remind", payload="x"), "payload: Input should be an object (Give its fields by their names, {…}.)"),
    "create payload set": (lambda d: d.app.create(handler="remind", payload={"text": {1, object()}}), "payload: Unable to serialize unknown type: <class 'object'> (Use a pydantic model, or JSON values.)"),
    "create retry": (lambda d: d.app.create(**RIGHT, retry=99), "retry: is 99 (Give 0 to 20 retries, True, False or a RetryPolicy.)"),
    "create priority": (lambda d: d.app.create(**RIGHT, priority="URGENT"), "priority: Input should be 'CRITICAL', 'HIGH', 'NORMAL' or 'LOW'"),
    "create id": (lambda d: d.app.create(**RIGHT, id="a b"), "id: must be 1 to 128 letters, digits, hyphens and underscores"),
    "create owner slash": (lambda d: d.app.create(**RIGHT, owner="a/b"), "owner: must be 1 to 128 characters, none of them a slash or a control character"),
    "create expected": (lambda d: d.app.create(**RIGHT, expected_duration=5 * HOUR), "expected_duration: Input should be less than or equal to 1 hour"),
    "create max_runs": (lambda d: d.app.create(**RIGHT, max_runs="3"), "max_runs: is not a whole number"),
    "draft function": (lambda d: TaskDraft.of(handler=remind), "handler: is the function 'remind' (Give its registered name; app.create and ctx.call take the function.)"),
    "update unknown": (lambda d: d.app.update(d.app.create(**RIGHT).id, lockkey="x"), "lockkey: is not a field that can be edited (Did you mean lock_key?)"),
    "update owner": (lambda d: d.app.update(d.app.create(**RIGHT).id, owner="x"), "owner: cannot be changed by an edit (Create a task for the other owner instead.)"),
    "create owner none": (lambda d: d.app.create(**RIGHT, owner=None), "owner: is None (Give text: str(user.id). Leave it out only for work that is nobody's, such as a nightly import.)"),
    "create owner number": (lambda d: d.app.create(**RIGHT, owner=7), "owner: is 7 (Give text: '7'. Leave it out only for work that is nobody's, such as a nightly import.)"),
    "create mail to nobody": (lambda d: d.app.create(**RIGHT, delivery_channels=["EMAIL"]), 'owner: is missing, and EMAIL would deliver to it (Give the person, owner="ada", or owner="system" if that is whom you mean.)'),
    "create zone of nobody": (lambda d: d.app.create(**RIGHT, schedule="every day at 9", timezone="owner"), 'schedule.timezone: is the owner\'s, and the task has no owner (give one, owner="ada"; PUT /v1/people/{owner} says it; or name a zone, such as Europe/Paris)'),
    "create zone alone": (lambda d: d.app.create(**RIGHT, timezone="Europe/Paris"), 'timezone: is given without a schedule (Say when, schedule="every day at 9", or leave it out: now is the same everywhere.)'),
    "create limit alone": (lambda d: d.app.create(**RIGHT, lock_limit=3), 'lock_limit: has no meaning alone (Give a lock_key, which names what the runs share: "printer".)'),
    "create retry text": (lambda d: d.app.create(**RIGHT, retry="3"), 'retry: Input should be an object (Give {"maxRetries": 3}. Python takes a number, too: retry=3.)'),
    "create labels dict": (lambda d: d.app.create(**RIGHT, labels={"team": "pay"}), 'labels: Input should be a list (Give a list of texts: ["team=payments"].)'),
    "create text": (lambda d: d.app.create(**RIGHT, text="every day at 9"), 'text: is no field of a task (What the handler takes goes into payload={"text": "Tea"}, and the words of a schedule into schedule="every day at 9".)'),
    "create exdates": (lambda d: d.app.create(**RIGHT, exdates=["2027-01-05"]), 'exdates: is no field of a task (Put it into the schedule: {"rrule": "FREQ=DAILY", "exdates": ["2027-01-01"]}.)'),
    "schedule exdates": (lambda d: Schedule(exdates=["2027-01-05"]), 'rrule: is missing (give `at` for one instant, or `rrule` for several; beside exdates give rrule "FREQ=DAILY")'),
    "policy retries": (lambda d: RetryPolicy(retries=3), "retries: is no field of RetryPolicy (Did you mean max_retries?)"),
    "create retention": (lambda d: d.app.create(**RIGHT, retention=30), 'retention: is 30, without a unit (Say of what: timedelta(days=30) or "P30D", or timedelta(seconds=30).)'),
    "update retention": (lambda d: d.app.update(d.app.create(**RIGHT).id, execution_retention=7.5), 'execution_retention: is 7.5, without a unit (Say of what: timedelta(days=7.5) or "P7.5D", or timedelta(seconds=7.5).)'),
    "create other handler": (lambda d: d.app.create(id=d.app.create(**RIGHT).id, handler="flow"), "id: is that of a task that runs 'remind', not 'flow' (Choose another id, or change what that task runs: update(id, handler=…).)"),
    "update part": (lambda d: d.app.update(d.app.create(handler="remind", payload={"text": "x", "times": 2}).id, payload={"text": "y"}), "payload: leaves out times, which the task has set (It replaces the whole payload: give all of its fields, and null for those to reset.)"),
    "occurrences naive": (lambda d: d.app.occurrences(AWARE, since=NAIVE), f"since: has no time zone ({GIVE_ZONE})"),
    "backfill the year 1": (lambda d: d.app.backfill("t1", datetime.min.replace(tzinfo=UTC), AWARE), "start: is 0001-01-01 00:00:00+00:00 (the year is not in 1583 to 9998)"),
    "tasks owner": (lambda d: d.app.tasks(owner="ada"), 'owner: is no argument of tasks (Give a query: TaskQuery(owner="ada").)'),
    "get none": (lambda d: d.app.get("nothing"), "There is no task 'nothing'."),
    "handler draft": (lambda d: d.app.handler("d", draft=5)(remind), "Handler 'd': draft is 5; say in at most 500 characters what it does, such as \"Sends a reminder\"."),
    "handler generator": (lambda d: d.app.handler("c")(fetch), "Handler 'c' is a generator; write a function that returns its result."),
    "handler twice": (lambda d: d.app.handler("remind")(remind), "There are two handlers named 'remind'; rename one of them."),
    "handler annotation": (lambda d: d.app.handler("d")(lambda x: None), "Handler 'd': annotate 'x' with its pydantic model (or a first parameter with Context)."),
    "handler slash": (lambda d: d.app.handler("a/b"), "Handler 'a/b': no URL carries this name; leave out slashes, control characters and spaces at the ends."),
    "handler retry": (lambda d: d.app.handler("e", retry=99), "Handler 'e': retry is 99; give 0 to 20, or a RetryPolicy."),
    "handler seconds": (lambda d: d.app.handler("e", expected_duration=600), "Handler 'e': expected_duration is 600; give a timedelta, such as timedelta(minutes=10), of at most 1:00:00."),
    "handler task_id": (lambda d: d.app.handler("e", task_id="x"), 'Handler \'e\': task_id is \'x\'; give a function of the payload: task_id=lambda payload: f"remind-{payload.order}".'),
    "advance naive": (lambda d: d.sim.advance_to(NAIVE), f"until: has no time zone ({GIVE_ZONE})"),
    "advance int": (lambda d: d.sim.advance(60), "by: is of type int (Give a timedelta, such as timedelta(minutes=5).)"),
    "advance past": (lambda d: d.sim.advance_to(START - DAY), "2026-12-31 00:00:00+00:00 is in the past: the simulation is at 2027-01-01 00:00:00+00:00, and its clock only moves forward."),
    "no with": (lambda d: Simulation(d.app, store=d.app.container.store).advance(timedelta(1)), "The simulation is not in use; write `with Simulation(app) as sim:` around this."),
    "sent small": (lambda d: d.sim.sent("email"), "channel: is 'email' (Give one of EMAIL, MOBILE, WEBHOOK, OPERATOR, TELEGRAM, SLACK, COMPLETION, PING. WEB is sim.inbox.)"),
    "sync with async context": (lambda d: d.app.handler("c")(await_nothing), "Handler 'c' takes an AsyncContext; write it with `async def`, or take a Context."),
    "step name": (lambda d: d.run(lambda c: c.step(5, remind)), "name: is 5 (Give a string.)"),
    "sleep int": (lambda d: d.run(lambda c: c.sleep(60)), "until: is 60 (Give a timedelta, such as timedelta(minutes=5), or an aware datetime.)"),
    "wait timeout": (lambda d: d.run(lambda c: c.wait_for("paid", timedelta(days=1))), "model: is datetime.timedelta(days=1), and no type (Give a type. A time is timeout=timedelta(days=1), a text question='Is it true?'.)"),
    "context owner": (lambda d: d.run(lambda c: c.owner), "A context has no 'owner'. Write ctx.task.owner."),
    "context log": (lambda d: d.run(lambda c: c.log), "A context has no 'log'. Write logging.getLogger(__name__).info(…), as everywhere."),
    "then dict": (lambda d: d.run(lambda c: Done(then=[{"handler": "remind"}])), 'then.0: is a dict (Give a list of drafts: Done(then=[TaskDraft(handler="remind", payload={...})]).)'),
}
# fmt: on


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.mark.parametrize(("make", "text"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_says_what_is_wrong_where_and_what_to_write(
    desk: Desk, make: Callable[[Desk], object], text: str
) -> None:
    """Exactly this text, with nothing about how the library is built."""
    with desk.sim, pytest.raises(REFUSED) as refused:
        make(desk)
    assert str(refused.value) == text
    assert "pydantic.dev" not in text
    assert not isinstance(refused.value, AttributeError)


def test_no_message_has_two_brackets_in_a_row() -> None:
    """What is wrong and what to write are told apart: the hint is the only bracket at the end."""
    assert not [text for _, text in MISTAKES.values() if ") (" in text]
