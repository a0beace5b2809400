"""What reports deliveries in a container."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.features.deliveries.report import report_deliveries
from cloudsched.runtime.container import Wiring

if TYPE_CHECKING:
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.responses.api_responses import DeliveryReport


class DeliveriesWiring(Wiring):
    """Reports what was delivered."""

    def report(self, task: Task, execution_id: str) -> list[DeliveryReport]:
        """Return the progress of an execution's deliveries, by channel."""
        return report_deliveries(self.container.store, task, execution_id)
