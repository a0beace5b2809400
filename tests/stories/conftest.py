"""Fixtures of the stories: a local stack over each store, with a frozen clock."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from tests.deployables.fake_project import AT_END
from tests.harness import SECRET, START, Reply, new_project, request

from cloudsched.config.settings import Settings
from cloudsched.emulator import MovableClock
from cloudsched.local.examples import app
from cloudsched.local.stack import Stack, run_stack


@pytest.fixture(scope="module", autouse=True)
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Put temporary files of killed processes where pytest removes them, and have processes print without colours."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(tmp_path_factory.mktemp("temporary")))
        for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(params=["sqlite", "firestore"])
def base(request: pytest.FixtureRequest) -> Settings:
    """Settings of a stack over one of the stores, with a project of its own."""
    project = new_project()
    address = request.getfixturevalue("firestore_address") if request.param == "firestore" else None
    return Settings(project=project, secret=SECRET, store=request.param, firestore_emulator=address)


@dataclass(frozen=True, slots=True)
class LocalStack:
    """A local stack as its clients see it: over HTTP only."""

    stack: Stack

    def api(self, method: str, path: str, content: object = None) -> Reply:
        """Send a request to the API."""
        return request(self.stack.url, method, path, content)

    def create(self, **task: Any) -> Reply:
        """Create a reminder, with these fields replaced."""
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
    with run_stack(app, base=base, store=base.require_store(), clock=clock) as stack:
        yield LocalStack(stack)


def pytest_sessionfinish() -> None:
    """End what the fake project of a story has started, before anybody looks for what a run leaves behind."""
    AT_END.close()
