"""Typed calls as users write them. mypy must reject the lines marked `rejected`, and accept all others."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, assert_type

from pydantic import BaseModel

from cloudsched import App, AsyncContext, CallHandle, Context, Depends, Done, RaceResult, Retry, Schedule, Task

app = App()


class Reminder(BaseModel):
    """A payload."""

    text: str


@dataclass
class Receipt:
    """A result."""

    number: int


class Session:
    """What a dependency makes."""


def open_session() -> Session:
    """Make it."""
    return Session()


@app.handler("remind")
def remind(ctx: Context, reminder: Reminder) -> Receipt:
    """Take a context and a payload."""
    return Receipt(len(reminder.text) + ctx.attempt)


@app.handler("count")
def count(reminder: Reminder) -> int:
    """Take a payload alone."""
    return len(reminder.text)


@app.handler("plain")
def plain() -> str:
    """Take nothing."""
    return ""


@app.handler("watch")
def watch(ctx: Context) -> str:
    """Take a context alone."""
    return ctx.execution_id


@app.handler("send")
async def send(ctx: AsyncContext, reminder: Reminder) -> str:
    """Be asynchronous."""
    return f"{ctx.attempt} {reminder.text}"


@app.handler("tick")
async def tick() -> float:
    """Be asynchronous, and take nothing."""
    return 1.0


@app.handler("store")
def store(ctx: Context, reminder: Reminder, session: Annotated[Session, Depends(open_session)]) -> bool:
    """Take a dependency after the payload."""
    return ctx.attempt == 1 and reminder.text == "" and isinstance(session, Session)


@app.handler("clean")
def clean(ctx: Context, *, session: Annotated[Session, Depends(open_session)]) -> bool:
    """Take a dependency, and no payload."""
    return ctx.attempt == 1 and isinstance(session, Session)


@app.handler("decide")
def decide(reminder: Reminder) -> Done | Retry:
    """Return an outcome, whose content can be anything."""
    return Done(1) if reminder.text else Retry("later")


def create() -> None:
    """Create tasks through the handle."""
    assert_type(remind.create(Reminder(text="tea"), owner="ada", schedule="every weekday at 9"), Task)
    remind.create(payload=Reminder(text="tea"), owner="ada", schedule=datetime.now(UTC), title="Tea", retry=3)
    remind.create(Reminder(text="tea"), schedule=Schedule.every(timedelta(hours=1)), lock_key="kettle")
    remind.create({"text": "tea"})  # rejected: a dict, whose fields nobody checks
    remind.create()  # rejected: no payload
    remind.create(Reminder(text="tea"), titel="Tea")  # rejected: no field of that name
    remind.create(Reminder(text="tea"), schedule=5)  # rejected: no schedule
    count.create(Reminder(text="tea"))
    plain.create(owner="ada", schedule=Schedule.every(timedelta(hours=1)))
    plain.create(payload=Reminder(text="tea"))  # rejected: it takes none
    watch.create()
    watch.create(Reminder(text="tea"))  # rejected: it takes none
    send.create(Reminder(text="tea"))
    store.create(Reminder(text="tea"))
    clean.create(owner="ada")
    clean.create(Session())  # rejected: a dependency is no payload
    assert_type(remind.run_now(Reminder(text="tea"), owner="ada"), Task)
    plain.run_now(title="Now")
    remind.run_now(Reminder(text="tea"), schedule="every day")  # rejected: it runs now
    remind.start(Reminder(text="tea"))  # rejected: no such method


def stay_functions(ctx: Context) -> None:
    """Call handlers as the functions that they are."""
    assert_type(remind(ctx, reminder=Reminder(text="tea")), Receipt)
    assert_type(remind.__name__, str)
    remind(Reminder(text="tea"))  # rejected: no context
    store(ctx, Reminder(text="tea"), session=Session())


def call(ctx: Context) -> None:
    """Call handlers from a plain one."""
    assert_type(ctx.call(remind, Reminder(text="tea")).result(), Receipt)
    assert_type(ctx.call(count, payload=Reminder(text="tea"), title="Count", retry=False).result(), int)
    assert_type(ctx.call(plain).result(), str)
    assert_type(ctx.call(watch).result(), str)
    assert_type(ctx.call(send, Reminder(text="tea")).result(), str)
    assert_type(ctx.call(tick).result(), float)
    assert_type(ctx.call(store, Reminder(text="tea")).result(), bool)
    ctx.call("clean")
    ctx.call(clean)  # rejected: it looks like a forgotten payload, so it is called by its name
    anything: bytes = ctx.call(decide, Reminder(text="tea")).result()
    named: bytes = ctx.call("remind", {"text": "tea"}).result()
    assert_type(
        ctx.gather(ctx.call(count, Reminder(text=str(anything))), ctx.call(count, Reminder(text="b"))), list[int]
    )
    first, second = ctx.call(count, Reminder(text="a")), ctx.call(count, Reminder(text="b"))
    race: RaceResult[int, CallHandle[int]] = ctx.race(first, second, cancel_losers=False)
    assert_type(race.result, int)
    assert_type(race.winner.result(), int)
    ctx.race(count)  # rejected: a handler, which nobody called
    ctx.race(ctx.call(plain), cancel="losers")  # rejected: no such option
    ctx.call(remind, Receipt(len(named)))  # rejected: another payload
    ctx.call(remind)  # rejected: no payload
    wrong: str = ctx.call(count, Reminder(text="tea")).result()  # rejected: an int
    ctx.call(wrong, Reminder(text="tea"))


async def call_and_await(ctx: AsyncContext) -> None:
    """Call handlers from an asynchronous one."""
    assert_type(await ctx.call(remind, Reminder(text="tea")), Receipt)
    assert_type(await ctx.call(send, Reminder(text="tea"), priority="HIGH"), str)
    assert_type(await ctx.call(tick), float)
    assert_type(await ctx.call(plain).result(), str)
    assert_type(await ctx.call(decide, Reminder(text="tea")), Any)
    assert_type(await ctx.gather(ctx.call(count, Reminder(text="a")), ctx.call(count, Reminder(text=""))), list[int])
    result, winner = await ctx.race(ctx.call(tick), ctx.call(tick))
    assert_type(result, float)
    assert_type(await winner, float)
    late = ctx.race(ctx.call(tick)).result  # rejected: it is not awaited
    del late
    wrong: str = await ctx.call(tick)  # rejected: a float
    await ctx.call(wrong)
