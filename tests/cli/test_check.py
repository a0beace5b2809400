"""``cloudsched check``: what it finds of an API and of a data folder, what it cannot know, and who may ask."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import CommandResult, serve_api_of
from tests.harness import WAIT_SECONDS
from tests.instants import DAY

from cloudsched import Schedule
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.config.access import Access
from cloudsched.config.supervisor import Supervisor
from cloudsched.local.app_loader import load_app
from cloudsched.local.data_folder import STORE_FILE_NAME
from cloudsched.testing import START, Simulation
from cloudsched.web.auth.authentication import create_key
from cloudsched.web.auth.roles import Role

OLD = """
from pathlib import Path
from pydantic import BaseModel, field_validator
from cloudsched import App, Context

app = App()


class Trip(BaseModel):
    city: str

    @field_validator("city")
    @classmethod
    def note(cls, value: str) -> str:
        if Path("validators").exists():
            leave_mark("validated")
        return value


class Decision(BaseModel):
    is_ok: bool


def leave_mark(name: str) -> str:
    with Path("marks").open("a") as file:
        file.write(name)
    return "x" * 20_000 if name == "large" else name


@app.handler("trip", events={"decision": Decision}, early_events=("decision",), access="users")
def trip(ctx: Context, trip: Trip) -> None:
    ctx.step("fetch", leave_mark, trip.city)
    ctx.step("book", leave_mark, "book")
    ctx.wait_for("go")
    ctx.wait_for("decision", Decision)


@app.handler("greet")
def greet(trip: Trip) -> str:
    return trip.city


@app.handler("render", pull="gpu")
def render() -> None: ...
"""
GONE = OLD.replace('"greet"', '"greeting"')
STRICTER = OLD.replace("    city: str\n", "    city: str\n    days: int\n")
REORDERED = OLD.replace(
    '    ctx.step("book", leave_mark, "book")\n',
    '    ctx.sleep(timedelta(days=1))\n    ctx.step("book", leave_mark, "book")\n',
).replace("from pathlib", "from datetime import timedelta\nfrom pathlib")
VERSIONED = REORDERED.replace("    ctx.sleep(", '    if ctx.version("rest", 2) > 1:\n        ctx.sleep(')
RESHAPED = OLD.replace("is_ok: bool", "is_ok: bool\n    by: str")
WRITES = OLD.replace('    ctx.step("book"', '    Path("marks").write_text("between")\n    ctx.step("book"')
ASKS_APP = OLD.replace(
    '    ctx.step("book"', '    app.create(owner="x", title="x", handler="render")\n    ctx.step("book"'
)
PLAIN = OLD.replace("def trip(ctx: Context, trip: Trip) -> None:", "def trip(trip: Trip) -> None:\n    ctx = None", 1)
MOVED = OLD.replace('pull="gpu"', 'pull="cpu"')
DAILY = Schedule.every(DAY, start=START + DAY)
UNDECLARED = OLD.replace('@app.handler("render", pull="gpu")\n', "")
CLOSED = OLD.replace(', access="users"', "")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Simulation]:
    """A data folder with two tasks and a run of the old code, which waits, and an API that shows them."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "old.py").write_text(OLD)
    app = load_app("old.py").app
    store = SqliteStore(tmp_path / "data" / STORE_FILE_NAME)
    with Simulation(app, store=store, data=tmp_path / "data" / STORE_FILE_NAME) as sim:
        for owner in ("ada", "bob"):
            app.create(owner=owner, title="Greet", handler="greet", payload={"city": "Rome"}, schedule=DAILY)
        app.create(id="trip-1", owner="ada", title="Trip", handler="trip", payload={"city": "Rome"})
        app.create(owner="ada", title="Render", handler="render", schedule=Schedule.once(START.replace(year=2030)))
        sim.run_until_idle()
        yield sim
    store.close()


@dataclass(frozen=True)
class Comparison:
    """A command that compares the stored work with code, typed in its folder."""

    world: Simulation
    run_command: Callable[..., CommandResult]
    folder: Path

    def __call__(self, code: str, door: str = "folder") -> tuple[CommandResult, list[dict[str, Any]]]:
        """Compare the folder, or an API, with code; return the result and its lines of JSON."""
        (self.folder / "new.py").write_text(code)
        with serve_api_of(self.world.app) as url:
            place = ("--url", url) if door == "API" else ("--data", "data")
            done = self.run_command("check", *place, "--handlers", "new.py", "--json")
        return done, [json.loads(line) for line in done.out.splitlines()]

    def look(self) -> object:
        """Return what no comparison may change."""
        tasks = [each.to_stored() for each in self.world.app.tasks().items]
        return tasks, self.world.executions("trip-1"), (self.folder / "marks").read_text()


@pytest.fixture
def check(world: Simulation, run_command: Callable[..., CommandResult], tmp_path: Path) -> Comparison:
    return Comparison(world, run_command, tmp_path)


@pytest.mark.parametrize("door", ["folder", "API"])
@pytest.mark.parametrize(
    ("code", "cause", "says"),
    [
        (GONE, "handler", "is it 'greeting' now?"),
        (STRICTER, "payload", "payload.days"),
        (REORDERED, "steps", "Step 2 was step 'book' when it was recorded, and is sleep now."),
    ],
    ids=["a handler that is gone", "a stricter payload", "another step"],
)
def test_what_would_fail_is_named(door: str, code: str, cause: str, says: str, check: Comparison) -> None:
    """The handler, why, and the tasks with their owners; nothing runs, and nothing is stored."""
    before = check.look()
    done, (*causes, summary) = check(code, door)
    assert done.code == 1, done.err
    found = next(each for each in causes if each["cause"] == cause and says in each["problem"])
    assert found["fails"]
    assert found["cure"]
    owners = {each["owner"] for each in found["first"]}
    assert owners == ({"ada"} if found["handler"] == "trip" else {"ada", "bob"})
    assert found["count"] == len(found["first"])
    assert summary["fails"]
    assert check.look() == before


@pytest.mark.parametrize("door", ["folder", "API"])
@pytest.mark.parametrize("code", [OLD, VERSIONED], ids=["the same", "guarded by a version"])
def test_what_would_go_on_is_not_named(door: str, code: str, check: Comparison) -> None:
    """Exit code 0. Only a folder shows all: of an API, events that wait are unknown, which it says."""
    done, (summary,) = check(code, door)
    assert done.code == 0, done.err
    assert (summary["tasks"], summary["openRuns"], summary["fails"]) == (4, 1, False)
    assert summary["isComplete"] == (door == "folder")
    assert door == "folder" or any("events" in each["what"] for each in summary["notLookedAt"])


@pytest.mark.parametrize("door", ["folder", "API"])
@pytest.mark.parametrize("arguments", ['"0 25 * * *"', '"every day", timezone="Mars/Base"', '"every day", payload={}'])
def test_a_declaration_that_is_refused_is_named(
    door: str, arguments: str, check: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its task, its function and its line. `serve`, which does not start with it, says the same."""
    monkeypatch.setenv("CLOUDSCHED_OPEN", "on")
    code = f"{OLD}@app.scheduled({arguments}, id='nine')\ndef nine(trip: Trip) -> None: ...\n"
    done, (found, _) = check(code, door)
    assert (done.code, found["cause"]) == (1, "declaration")
    assert found["problem"].startswith(
        f"Task 'nine' of nine() ({check.folder}/new.py, line {len(OLD.splitlines()) + 1})"
    )
    assert found["problem"] in check.run_command("serve", "--data", "data", "--port", "0", "--handlers", "new.py").err


def test_a_calendar_of_a_declaration_is_known_in_a_folder_alone(check: Comparison) -> None:
    """Of an API, whether there is such a calendar is unknown."""
    rule = "__import__('cloudsched').Schedule(rrule='FREQ=DAILY', calendars=['shop'])"
    code = f"{OLD}@app.scheduled({rule})\ndef nine() -> None: ...\n"
    assert [check(code, door)[0].code for door in ("folder", "API")] == [1, 0]


def test_an_accepted_event_that_the_new_model_refuses_is_named(check: Comparison) -> None:
    """It was answered with success, and would be lost."""
    check.world.app.send_event("trip-1", "decision", {"is_ok": True})
    done, (found, _) = check(RESHAPED)
    assert done.code == 1
    assert found["cause"] == "event"
    assert "decision" in found["problem"]
    assert check(OLD)[0].code == 0


@pytest.mark.parametrize(("code", "cause"), [(MOVED, "queue"), (CLOSED, None)])
def test_what_differs_and_goes_on_is_no_failure(code: str, cause: str | None, check: Comparison) -> None:
    """Another queue is told; access that no user has made use of is not."""
    done, (*found, summary) = check(code)
    assert done.code == 0
    assert [each["cause"] for each in found] == ([] if cause is None else [cause])
    assert not summary["fails"]


def test_code_between_two_steps_does_nothing(check: Comparison) -> None:
    """What it would do is refused, and the run is said to be unknown, not fine."""
    before = check.look()
    done, (summary,) = check(WRITES)
    assert done.code == 0
    assert not summary["isComplete"]
    assert check.look() == before


def test_a_change_between_two_steps_would_fail(check: Comparison) -> None:
    """Each replay would make it again, which the run itself is refused, too; here, nothing is created."""
    before = check.look()
    done, (found, _) = check(ASKS_APP)
    assert (done.code, found["cause"]) == (1, "steps")
    assert check.look() == before


def test_what_workers_alone_have_is_unknown(check: Comparison) -> None:
    """A task in a queue may name a handler that only its workers know."""
    done, (summary,) = check(UNDECLARED)
    assert done.code == 0
    assert any("'render'" in each["what"] and "'gpu'" in each["what"] for each in summary["notLookedAt"])


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (GONE, "there is no handler of this name; is it 'greeting' now?"),
        (STRICTER, "payload.days is missing"),
        (PLAIN, "its runs have recorded steps, and the handler takes no context now"),
        (REORDERED, "Ready."),
    ],
    ids=["a handler that is gone", "a stricter payload", "a handler without a context", "another step"],
)
def test_a_service_compares_names_alone(
    code: str, says: str, check: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It serves although something is gone, and says so. Code is imported once; no handler and no validator runs."""
    monkeypatch.setenv("CLOUDSCHED_OPEN", "on")

    def wait_for_comparison(*_: object) -> None:
        for each in threading.enumerate():
            if each.name in {"cloudsched-compare", "cloudsched-warm-up"}:
                each.join(WAIT_SECONDS)

    monkeypatch.setattr(Supervisor, "wait", wait_for_comparison)
    (check.folder / "marks").unlink()
    (check.folder / "validators").touch()
    (check.folder / "new.py").write_text(f"{code}\n\nleave_mark('imported')\n")
    done = check.run_command("serve", "--data", "data", "--port", "0", "--handlers", "new.py")
    assert done.code == 0, done.err
    assert "Ready." in done.out
    assert says in done.out + done.err
    assert "compared the names in 4 tasks and 1 open runs" in done.out + done.err
    assert (check.folder / "marks").read_text() == "imported"


def test_a_result_that_the_api_does_not_show_is_unknown(check: Comparison) -> None:
    """A folder has it."""
    check.world.app.create(owner="ada", title="Large", handler="trip", payload={"city": "large"})
    check.world.run_until_idle()
    _, (summary,) = check(OLD, "API")
    assert any("journal" in each["what"] for each in summary["notLookedAt"])
    assert check(OLD)[1][-1]["isComplete"]


@pytest.mark.parametrize(
    ("role", "owner", "code"),
    [
        (Role.VIEWER, None, 0),
        (Role.USER, "ada", 5),
        (Role.READER, "ada", 5),
        (Role.WORKER, None, 5),
        (Role.DELEGATE, None, 5),
    ],
)
def test_only_who_sees_all_tasks_may_ask(
    role: Role, owner: str | None, code: int, run_command: Callable[..., CommandResult], tmp_path: Path
) -> None:
    """From a part of them nothing follows for the whole."""
    (tmp_path / "new.py").write_text(OLD)
    key, kept = create_key("someone", role, owner)
    app = load_app(str(tmp_path / "new.py")).app
    with Simulation(app, access=Access(api_keys=(str(kept),))) as sim, serve_api_of(sim.app) as url:
        sim.app.create(owner="ada", title="Greet", handler="greet", payload={"city": "Rome"}, schedule=DAILY)
        done = run_command("check", "--url", url, "--key", key, "--handlers", str(tmp_path / "new.py"))
    assert done.code == code, done.err
    assert ("Nothing would fail" in done.out) == (code == 0)


def test_a_folder_without_tasks_is_refused(check: Comparison) -> None:
    """It is more likely misspelt than empty."""
    done = check.run_command("check", "--data", "dat", "--handlers", "old.py")
    assert done.code == 2
    assert "name the folder" in done.err


def test_thousands_of_tasks_are_one_cause(check: Comparison) -> None:
    """The count is whole, and the first ones are named."""
    for number in range(600):
        check.world.app.create(
            owner="ada", title=f"{number}", handler="greet", payload={"city": "Rome"}, schedule=DAILY
        )
    _, (found, summary) = check(GONE)
    assert found["count"] == 602
    assert 0 < len(found["first"]) < 20
    assert summary["tasks"] == 604


def test_two_limits_of_one_lock_differ(check: Comparison) -> None:
    """Each task goes by its own. An owner's lock is another one than that of all."""
    for limit, scope in ((2, "global"), (2, "owner"), (3, "global")):
        lock: dict[str, Any] = {"lock_key": "db", "lock_limit": limit, "lock_scope": scope}
        check.world.app.create(
            owner="ada", title="Greet", handler="greet", payload={"city": "Rome"}, schedule=DAILY, **lock
        )
    done, (found, _) = check(OLD)
    assert done.code == 0
    assert (found["cause"], found["count"], found["fails"]) == ("lock", 1, False)
