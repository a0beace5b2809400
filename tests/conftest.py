"""What all tests share: Google's Firestore emulator, documents to store, how many random histories to run."""

from __future__ import annotations

import os
import signal
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from cloudsched import App, Settings
from cloudsched.adapters.firestore.emulator import EmulatorNotFound, find_emulator
from cloudsched.domain.documents.execution import Execution, ExecutionStatus, Message
from cloudsched.domain.documents.task import Task
from cloudsched.domain.schedules.schedule import Schedule

if TYPE_CHECKING:
    from cloudsched.testing import Simulation

NOW = datetime(2027, 1, 1, 9, tzinfo=UTC)
MakeTask = Callable[..., Task]
MakeExecution = Callable[..., Execution]
MakeMessage = Callable[..., Message]

sys.path.insert(0, str(Path(__file__).parent.parent))

# Hundreds of processes are started that would otherwise compile all of cloudsched anew, each for itself.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

from tests.fixed_examples import fix_examples  # noqa: E402 - the line above finds it

fix_examples()

pytest_plugins = [
    "tests.run.tiers",
    "tests.run.shards",
    "tests.run.network",
    "tests.run.emulator",
    "tests.run.garbage",
    "tests.run.ids",
    "tests.run.leftovers",
    "tests.run.isolation",
]


@pytest.fixture(scope="session", autouse=True)
def _heed_interrupts() -> Iterator[None]:
    """Let this process, and those that it starts, heed Ctrl+C.

    A shell without job control, as CI systems use, starts background jobs with SIGINT ignored. Python then leaves it
    so, and processes inherit it from the one that starts them.
    """
    from tests.harness import heed  # noqa: PLC0415 - it is found now that its folder is on the path

    with heed(signal.SIGINT, signal.default_int_handler):
        yield


@pytest.fixture(scope="session")
def firestore_address() -> Iterator[str]:
    """Google's emulator, for the whole run. Without one the tests fail where CI is set, and are skipped elsewhere.

    What this process sends to it is refused where production would refuse it, and the emulator would not.
    """
    from tests.adapters.firestore.production import ProductionChannel, ProductionRules  # noqa: PLC0415 - needs gRPC
    from tests.run.emulator import ADDRESS  # noqa: PLC0415 - found now that its folder is on the path

    from cloudsched.adapters.firestore import rpc  # noqa: PLC0415 - likewise
    from cloudsched.adapters.google.channel import open_channel  # noqa: PLC0415 - likewise

    found = find_emulator(os.environ.get("FIRESTORE_EMULATOR_HOST") or os.environ.get(ADDRESS))
    if isinstance(found, EmulatorNotFound):
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"No Firestore emulator: {found.reason}. {found.hint}")
    rules = ProductionRules()
    with found, pytest.MonkeyPatch.context() as patch:
        patch.setattr(rpc, "open_channel", lambda *where: ProductionChannel(open_channel(*where), rules))
        yield found.address
    assert not rules.refusals, "the emulator serves these queries, production would not"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a run ask for more histories, or for one of them again."""
    group = parser.getgroup("histories")
    group.addoption("--histories", type=int, default=None, help="how many random histories to run")
    group.addoption("--seed", type=int, default=None, help="live through the history of this seed only")
    parser.getgroup("language").addoption("--phrases", type=int, help="how many random phrases to read")


@pytest.fixture
def histories(request: pytest.FixtureRequest) -> int | None:
    """How many random histories to run; None for those of a normal run."""
    value: int | None = request.config.getoption("--histories")
    return value


@pytest.fixture
def everything(request: pytest.FixtureRequest) -> bool:
    """Whether this run tries all there is, instead of what fits into five minutes."""
    return bool(request.config.getoption("--all"))


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int | None:
    """The one history to live through, if there is one."""
    value: int | None = request.config.getoption("--seed")
    return value


@pytest.fixture
def phrases(request: pytest.FixtureRequest, *, everything: bool) -> int:
    """How many random phrases to read."""
    return int(request.config.getoption("--phrases") or (2000 if everything else 200))


@pytest.fixture(scope="session")
def make_task() -> MakeTask:
    def make(**fields: Any) -> Task:
        at = fields.pop("at", NOW + timedelta(hours=1))
        usual = {
            "id": f"task-{uuid.uuid4()}",
            "owner": "ada",
            "title": "A task",
            "handler": "greet",
            "schedule": Schedule.once(at),
            "is_one_time": True,
            "timezone": "UTC",
            "next_execution_time": at,
            "wake_at": at,
            "created_at": NOW,
            "updated_at": NOW,
            "status_changed_at": NOW,
        }
        return Task(**(usual | fields))

    return make


@pytest.fixture(scope="session")
def make_execution() -> MakeExecution:
    """Make the record of a success, with some fields of one's own."""

    def make(task: Task, execution_id: str = "20270101T090000Z", **fields: Any) -> Execution:
        usual = {"scheduled_for": NOW, "status": ExecutionStatus.SUCCEEDED}
        return Execution(id=execution_id, task_id=task.id, owner=task.owner, **(usual | fields))

    return make


@pytest.fixture(scope="session")
def make_message() -> MakeMessage:
    def make(task: Task, key: str, **fields: Any) -> Message:
        usual = {"owner": task.owner, "execution_id": key, "title": "Done", "body": "", "created_at": NOW}
        return Message(id=f"{task.id}-{key}", task_id=task.id, **(usual | fields))

    return make


@pytest.fixture
def skipped_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pauses before calls to Google's services are made again: their clock jumps, so that none is waited for."""
    from cloudsched.adapters.google import backoff  # noqa: PLC0415 - few tests need it

    skipped = [0.0]

    def skip(seconds: float) -> None:
        skipped[0] += seconds

    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + skipped[0], sleep=skip)
    monkeypatch.setattr(backoff, "time", clock)


@pytest.fixture
def app() -> App:
    """An app with default settings, whatever the environment says. Folders and modules may override it."""
    return App(Settings())


@pytest.fixture
def simulate(app: App) -> Iterator[Callable[..., Simulation]]:
    """Start a simulation of `app` with settings of the test's own; it ends with the test."""
    with ExitStack() as open_simulations:
        from cloudsched.testing import Simulation  # noqa: PLC0415 - a test without one runs without the emulator

        yield lambda **settings: open_simulations.enter_context(Simulation(app, **settings))


@pytest.fixture
def sim(app: App) -> Iterator[Simulation]:
    """A simulation of `app`, on a clock that the test moves, and each look a little."""
    from cloudsched.testing import Simulation  # noqa: PLC0415 - likewise

    with Simulation(app) as simulation:
        yield simulation


@pytest.fixture
def create(app: App) -> Callable[..., Task]:
    """Create a task of ada's for the handler ``work``, due at once; the test may set any field."""

    def create_task(**fields: Any) -> Task:
        from cloudsched.testing import START  # noqa: PLC0415 - likewise

        usual: dict[str, Any] = {"owner": "ada", "title": "Work", "handler": "work", "schedule": Schedule.once(START)}
        return app.create(**(usual | fields))

    return create_task
