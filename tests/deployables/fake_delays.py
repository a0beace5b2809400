"""Time in the fake project, and what Google does only some time after it was told to.

Each behaviour says where it is documented, or was reported.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.deployables.fake_resources import NUMBER, OPERATOR, Call, fail

USABLE_AFTER = 60.0
"""Seconds for which an API is refused after it was enabled. Its error says: "If you enabled this API recently, wait a
few minutes for the action to propagate to our systems and retry" (cloud.google.com/service-usage/docs/troubleshooting).
"""
EFFECTIVE_AFTER = 100.0
"""Seconds until a change of a policy takes effect: "typically 2 minutes, potentially 7 minutes or longer"
(cloud.google.com/iam/docs/access-change-propagation)."""
KNOWN_AFTER = 30.0
"""Seconds until a policy may name a new account: "it may take 60 seconds or more before you can use it"
(cloud.google.com/iam/docs/service-accounts-create)."""
READY_AFTER = 60.0
"""Seconds until a new queue takes tasks and policies: "If you just created the queue, wait at least a minute for the
queue to initialize" (the error of Cloud Tasks)."""
TAKEN_FOR = 3 * 86_400.0
"""Seconds for which the name of a deleted queue is refused: "you must wait 3 days"
(cloud.google.com/tasks/docs/deleting-appengine-queues-and-tasks; it was 7)."""

_SERVICES = {
    "artifacts": "artifactregistry",
    "billing": "billingbudgets",
    "builds": "cloudbuild",
    "firestore": "firestore",
    "iam": "iam",
    "logging": "logging",
    "projects": "cloudresourcemanager",
    "run": "run",
    "scheduler": "cloudscheduler",
    "secrets": "secretmanager",
    "tasks": "cloudtasks",
}
"""The API that a group of commands calls. What a user asks about a project is charged to gcloud's own project, what a
service account asks to its own (cloud.google.com/apis/docs/system-parameters, "quota project")."""

_SERVICE_OFF = (
    "PERMISSION_DENIED: {name} API has not been used in project {number} before or it is disabled. Enable it by "
    "visiting https://console.developers.google.com/apis/api/{service}/overview?project={number} then retry. If you "
    "enabled this API recently, wait a few minutes for the action to propagate to our systems and retry.\n"
    "- '@type': type.googleapis.com/google.rpc.ErrorInfo\n  reason: SERVICE_DISABLED"
)
QUEUE_TAKEN = "FAILED_PRECONDITION: The queue cannot be created because a queue with this name existed too recently."
QUEUE_NEW = (
    "NOT_FOUND: Queue does not exist. "
    "If you just created the queue, wait at least a minute for the queue to initialize."
)


@dataclass
class Delays:
    """A clock that only goes on while a script waits, and since when things are as they are.

    What is not in `since` has been so for long, as in a project that a test takes over.
    """

    time: float
    usable_after: float = USABLE_AFTER
    effective_after: float = EFFECTIVE_AFTER
    known_after: float = KNOWN_AFTER
    ready_after: float = READY_AFTER
    operator: str = OPERATOR

    def __post_init__(self) -> None:
        self.since: dict[str, float] = {}

    def mark(self, what: str) -> None:
        """Note that something is so from now on."""
        self.since[what] = self.time

    def has_passed(self, what: str, seconds: float) -> bool:
        """Return whether something has been so for that long."""
        return self.time >= self.since.get(what, float("-inf")) + seconds

    def require_service(self, call: Call, enabled: list[str]) -> None:
        """Refuse a command whose API is off, or has been on only for a moment."""
        name = _SERVICES.get(call.words[0])
        if name is None or (name == "cloudresourcemanager" and not self.operator.endswith("gserviceaccount.com")):
            return
        service = f"{name}.googleapis.com"
        if service not in enabled or not self.has_passed(service, self.usable_after):
            fail(_SERVICE_OFF.format(name=name, service=service, number=NUMBER))

    def is_effective(self, policy: str, binding: list[str], bindings: list[list[str]]) -> bool:
        """Return whether a role is granted as far as the services know: a change reaches them after a while."""
        return (binding in bindings) == self.has_passed(f"{policy}: {binding}", self.effective_after)
