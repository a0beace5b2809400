"""What stories begin with: a local stack over each store, its clock standing still."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from tests.harness import SECRET, START, Reply, request

from cloudsched.config.settings import Settings
from cloudsched.emulator import MovableClock
from cloudsched.local.examples import app
from cloudsched.local.stack import Stack, run_stack


@pytest.fixture(autouse=True)
def temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let processes that are killed leave nothing behind that pytest does not remove."""
    monkeypatch.setenv("TMPDIR", str(tmp_path_factory.mktemp("temporary")))


@pytest.fixture(autouse=True)
def colourless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let processes whose output is read think of no terminal, whatever the environment of the tests asks for."""
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(params=["sqlite", "firestore"])
def base(request: pytest.FixtureRequest) -> Settings:
    """Settings for a stack over one of the stores, whose tasks are nobody else's."""
    project = f"demo-{uuid.uuid4().hex[:20]}"
    address = request.getfixturevalue("firestore_address") if request.param == "firestore" else None
    return Settings(project=project, secret=SECRET, store=request.param, firestore_emulator=address)


@dataclass(frozen=True, slots=True)
class LocalStack:
    """A local stack, as its clients see it: through HTTP alone."""

    stack: Stack

    def api(self, method: str, path: str, content: object = None) -> Reply:
        """Ask the API."""
        return request(self.stack.url, method, path, content)

    def create(self, **task: Any) -> Reply:
        """Create a reminder with some fields of one's own."""
        usual = {"owner": "ada", "title": "Tea", "handler": "remind", "payload": {"text": "It is ready."}}
        return self.api("POST", "/v1/tasks", usual | task)

    def advance(self, by: timedelta) -> None:
        """Move the clock of the whole stack."""
        reply = request(f"http://{self.stack.emulator.address}", "POST", "/clock", {"advance": by.total_seconds()})
        assert reply.status == 200, reply

    def executions(self, task_id: str) -> list[dict[str, Any]]:
        """Return a task's executions, the latest first."""
        found: list[dict[str, Any]] = self.api("GET", f"/v1/tasks/{task_id}/executions").body["executions"]
        return found

    def inbox(self, owner: str = "ada") -> list[dict[str, Any]]:
        """Return an owner's messages, the newest first."""
        found: list[dict[str, Any]] = self.api("GET", f"/v1/inboxes/{owner}/messages").body["messages"]
        return found


@pytest.fixture
def local_stack(base: Settings) -> Iterator[LocalStack]:
    """A local stack with the package's example handlers."""
    clock = MovableClock(START, frozen=True)
    with run_stack(app, base=base, store=base.store, clock=clock) as stack:
        yield LocalStack(stack)
