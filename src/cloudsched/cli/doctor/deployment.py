"""The names of a deployment's resources, as the scripts in ``infra/`` give them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cloudsched.domain.documents.channel import SENT_CHANNELS
from cloudsched.domain.documents.policy import Priority

if TYPE_CHECKING:
    from pathlib import Path

    from cloudsched.cli.doctor.gcloud import Gcloud

SERVICES = (
    "artifactregistry",
    "cloudbuild",
    "cloudscheduler",
    "cloudtasks",
    "firebaserules",
    "firestore",
    "iam",
    "iamcredentials",
    "logging",
    "monitoring",
    "run",
    "secretmanager",
)
"""The APIs that a deployment needs, without ``.googleapis.com``."""
PRIORITIES = tuple(each.lower() for each in Priority)
QUEUES = (*PRIORITIES, *(each.lower() for each in SENT_CHANNELS), "hops")
FUNCTIONS = ("execute", "sweep", "api")
LINKS = "links"
"""The public function beside a private API, which a deployment may have."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """A deployment to look at.

    Attributes:
        gcloud: Asks about its project.
        region: The region of its functions and queues.
        name: The prefix of its resources' names.
        database: The Firestore database.
        files: The folder with the index files; None if there is no clone here.
        queues_per_priority: Over how many queues its api spreads the dispatches of each priority.
    """

    gcloud: Gcloud
    region: str
    name: str
    database: str
    files: Path | None
    queues_per_priority: int = 1

    @property
    def secret(self) -> str:
        """The secret that signs dispatches."""
        return f"{self.name}-dispatch"

    def account(self, kind: str) -> str:
        """Return the email address of a service account: api, executor, links, invoker, builder or smoke."""
        return f"{self.name}-{kind}@{self.gcloud.project}.iam.gserviceaccount.com"

    def queue(self, kind: str) -> str:
        """Return the name of a queue: of a priority, such as ``high`` or ``high-q2``, of a channel, or of hops."""
        priority, _, number = kind.partition("-")
        first = self.name if priority == "normal" else f"{self.name}-{priority}"
        return f"{first}-{number}" if number else first

    def list_queues(self) -> list[str]:
        """Return the kinds of its queues."""
        numbers = range(2, self.queues_per_priority + 1)
        return [*QUEUES, *(f"{each}-q{number}" for each in PRIORITIES for number in numbers)]

    def deploy(self, step: str = "") -> str:
        """Return the command that brings a step in line with the configuration."""
        return "infra/deploy.sh" + (f" --step={step}" if step else "")
