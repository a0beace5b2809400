"""The public API as its users write it. Type checkers must accept this file, and nothing runs it.

A line with ``type: ignore`` is a mistake that they must find: were it accepted, the ignore would be unused, an error.
"""

from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import BaseModel

from cloudsched import (
    App,
    AppLike,
    AsyncApp,
    AsyncAppLike,
    AsyncContext,
    Cancel,
    Context,
    Depends,
    Done,
    Execution,
    Fail,
    Retry,
    RetryPolicy,
    Settings,
    Snooze,
    Task,
    TaskLike,
)
from cloudsched.client import AsyncClient, Client


class Greeting(BaseModel):
    """A payload."""

    name: str


app = App(Settings(secret="x" * 32))


@app.handler("greet", retry=RetryPolicy(max_retries=2), expected_duration=timedelta(minutes=1))
def greet(ctx: Context, greeting: Greeting) -> Done | Retry | Snooze | Fail | Cancel:
    """End in each of the ways that there are."""
    ctx.progress("half way")
    ctx.notify("Hello", greeting.name)
    ctx.used(queries=1, tokens=2)
    if not ctx.heartbeat():
        return Cancel("nobody wants it")
    if ctx.attempt > 1 and ctx.time_left() < timedelta(seconds=1):
        return Retry("too late", after=timedelta(minutes=1))
    if ctx.scheduled_for > ctx.now():
        return Snooze(until=ctx.scheduled_for)
    return Fail("no") if greeting.name == "" else Done({"greeted": greeting.name})


@app.handler("plain", retry=False)
def plain() -> None:
    """Take nothing and return nothing."""


async def fetch(n: int = 1) -> Greeting:
    """Be a step of a handler of either kind."""
    return Greeting(name=str(n))


@app.handler("modern")
async def modern(ctx: AsyncContext, greeting: Greeting) -> str:
    """Await what a plain handler calls, with the same types."""
    fetched: Greeting = await ctx.step("fetch", fetch, 1)
    size: int = await ctx.step("size", len, fetched.name, retry=False, timeout=timedelta(minutes=1))
    wrong: str = await ctx.step("wrong", len, greeting.name)  # type: ignore[arg-type]
    await ctx.gather(ctx.call("plain"), return_failures=True)
    await ctx.sleep(timedelta(days=1))
    payload, sender = await ctx.wait_for("word", with_sender=True)
    await ctx.progress(f"{size} {payload} {sender.role} {wrong}")
    return "" if await ctx.heartbeat() else ctx.now().isoformat()


@app.handler("dependent")
def dependent(greeting: Greeting, fetched: Annotated[Greeting, Depends(fetch)]) -> str:
    """Take a dependency."""
    return greeting.name + fetched.name


app.dependency_overrides[fetch] = fetch


@app.handler("stepping")
def stepping(ctx: Context) -> str:
    """Have an asynchronous step in a plain handler."""
    fetched: Greeting = ctx.step("fetch", fetch, 1)
    wrong: int = ctx.step("fetch", fetch, 1)  # type: ignore[assignment]
    return fetched.name * wrong


def mistakes() -> None:
    """What a type checker finds."""
    app.pause(5)  # type: ignore[arg-type]
    app.handler("x", retry="often")  # type: ignore[arg-type]
    Retry("later", after=5)  # type: ignore[arg-type]
    greet("not a context", Greeting(name="Ada"))  # type: ignore[arg-type]


async def use_on_a_loop() -> None:
    """The app's methods with their own parameters and results, awaited."""
    tasks = AsyncApp(app)
    task: Task = await tasks.create(handler=greet, payload=Greeting(name="Ada"), schedule="every day at 9")
    found: Execution = await tasks.execution(task.id, "x")
    texts: list[datetime] = await tasks.upcoming(found.id, count=3)
    status: str = tasks.pause(task.id)  # type: ignore[assignment]
    await tasks.pause(task.id, count=1)  # type: ignore[call-arg]
    await tasks.upcoming(texts)  # type: ignore[arg-type]
    status.upper()


def use_either(tasks: AppLike) -> TaskLike:
    """What an app and a client have in common."""
    task = tasks.create(handler="greet", payload={"name": "Ada"}, schedule="every day at 9")
    tasks.run_now("greet", {"name": "Ada"}, owner=task.owner)
    tasks.get()  # type: ignore[call-arg]
    tasks.snooze(task.id, 10)  # type: ignore[arg-type]
    tasks.explain(task.id, "today")  # type: ignore[arg-type]
    return tasks.snooze(tasks.pause(task.id).id, timedelta(minutes=5))


async def use_either_on_a_loop(tasks: AsyncAppLike) -> TaskLike:
    """The same, awaited."""
    task = await tasks.create(handler="greet", payload={"name": "Ada"})
    status: str = tasks.get(task.id).status  # type: ignore[union-attr]
    status.upper()
    return await tasks.update(task.id, title="Later")


async def use_all() -> None:
    """An app or a client is either, and neither is taken for the other kind."""
    use_either(app)
    use_either(Client("https://api.example"))
    await use_either_on_a_loop(AsyncApp(app))
    await use_either_on_a_loop(AsyncClient("https://api.example"))
    use_either(AsyncApp(app))  # type: ignore[arg-type]
    use_either(AsyncClient("https://api.example"))  # type: ignore[arg-type]
    await use_either_on_a_loop(app)  # type: ignore[arg-type]


def make_mistakes(client: Client, either: AppLike) -> None:
    """Name what there is not, and give values of other kinds, at each door that creates or changes a task."""
    app.create(handler="greet", titel="Greet")  # type: ignore[call-arg]
    app.create(handler="greet", category="REPROT")  # type: ignore[arg-type]
    app.create(handler="greet", priority="highest")  # type: ignore[arg-type]
    app.create(handler="greet", labels="team=a")  # type: ignore[arg-type]
    app.create(handler="greet", delivery_channels=["FAX"])  # type: ignore[list-item]
    app.create(handler="greet", schedule=5)  # type: ignore[arg-type]
    app.run_now("greet", title=5)  # type: ignore[arg-type]
    app.update("t", overlap="QUEUE")  # type: ignore[arg-type]
    app.update("t", max_runs="three")  # type: ignore[arg-type]
    client.create(handler="greet", lockKey="a")  # type: ignore[call-arg]
    client.create(handler="greet", on_child_failure="ignore")  # type: ignore[arg-type]
    client.update("t", catch_up="NEWEST")  # type: ignore[arg-type]
    client.run_now("greet", retry="often")  # type: ignore[arg-type]
    either.create(handler="greet", tell_failures="always")  # type: ignore[arg-type]
    either.update("t", jitter=["a"])  # type: ignore[arg-type]


def mistake_verbs(client: Client) -> None:
    """Misname arguments of the other verbs, leave them out, and give values of other kinds."""
    app.create(handler="g", max_runs="3")  # type: ignore[arg-type]
    app.create(handler="g", until=5)  # type: ignore[arg-type]
    app.create(handler="g", retry="lots")  # type: ignore[arg-type]
    app.create(owner=5)  # type: ignore[arg-type]
    app.run_now("g", schedule="now")  # type: ignore[call-arg]
    app.update("t", owner="bob")  # type: ignore[call-arg]
    app.update("t", status="PAUSED")  # type: ignore[call-arg]
    app.update(5)  # type: ignore[arg-type]
    app.pause()  # type: ignore[call-arg]
    app.pause("t", until=5)  # type: ignore[arg-type]
    app.pause("t", till="Monday")  # type: ignore[call-arg]
    app.skip("t", 3)  # type: ignore[arg-type]
    app.move("t", "17:00")  # type: ignore[call-arg]
    app.move("t", "next", 17)  # type: ignore[arg-type]
    app.snooze("t", 10)  # type: ignore[arg-type]
    app.backfill("t", "2027", "2028")  # type: ignore[arg-type]
    app.retry("t", from_step="3")  # type: ignore[arg-type]
    app.trigger(5)  # type: ignore[arg-type]
    app.cancel("t", reason="x")  # type: ignore[call-arg]
    app.upcoming("t", "3")  # type: ignore[arg-type]
    app.tasks(owner="ada")  # type: ignore[call-arg]
    app.search(5)  # type: ignore[arg-type]
    app.search("x", state="ACTIVE")  # type: ignore[call-arg]
    app.search("x", status="ACTIV")  # type: ignore[arg-type]
    app.explain("t", "today")  # type: ignore[arg-type]
    app.acting_for(5)  # type: ignore[arg-type]
    app.acting_for("ada").creat()  # type: ignore[attr-defined]
    app.send_event("t")  # type: ignore[call-arg]
    app.put_person("ada", mail={"address": "x"})  # type: ignore[call-arg]
    app.put_person("ada", devices="abc")  # type: ignore[arg-type]
    app.update_person("ada", timezone=5)  # type: ignore[arg-type]
    app.pause_all(handler="g")  # type: ignore[call-arg]
    app.restore()  # type: ignore[call-arg]
    app.batch_change("stop", owner="ada")  # type: ignore[arg-type]
    app.batch_change("PAUSE", state="x")  # type: ignore[call-arg]
    app.wait("t", 5)  # type: ignore[arg-type]
    app.watch(every=5)  # type: ignore[arg-type]
    app.describe_schedule("every day")  # type: ignore[call-arg]
    client.tasks(stat="x")  # type: ignore[call-arg]
    client.find_executions(status=5)  # type: ignore[arg-type]
    client.find_executions(since=5)  # type: ignore[arg-type]
    client.occurrences("tomorrow")  # type: ignore[arg-type]
    client.count_executions(datetime.now(UTC))  # type: ignore[call-arg]
    app.create(handler="g", jitter=[5])  # type: ignore[arg-type]
    client.usage(month=5)  # type: ignore[arg-type]


def make_none(client: Client) -> None:
    """Give each in a form that is read."""
    at = datetime(2027, 1, 1, tzinfo=UTC)
    app.create(handler=greet, payload=Greeting(name="Ada"), schedule=at, category="REPORT", retry=3)
    client.create(handler="greet", schedule="every day at 9", delivery_channels=["EMAIL"], labels=["team=a"], jitter=5)
    client.update("t", title=None, until="2027-01-01T00:00:00Z", schedule={"cron": "0 9 * * *"}, catch_up="ALL")
