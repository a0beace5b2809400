"""What `cloudsched doctor` checks for people: their channels' queues, and the function that serves links."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cloudsched.cli.doctor.resource_checks import check_function, check_queue, find_service, find_value
from cloudsched.domain.documents.delivery_channels import QUEUE_CHANNELS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudsched.cli.doctor.deployment import CheckResult, Deployment

LINKS: Final = "links"
"""The public function beside a private API, which a deployment may have."""


def check(deployment: Deployment, services: dict[str, Any]) -> Iterator[CheckResult]:
    """Return whether each channel has its queue, and links lead to a function that is there."""
    for channel in QUEUE_CHANNELS:
        yield check_queue(deployment, channel.lower())
    found = find_service(deployment, LINKS)
    leads_there = f"https://{deployment.name}-{LINKS}-"
    if found is not None or find_value(services["api"], "CLOUDSCHED_PUBLIC_URL").startswith(leads_there):
        yield check_function(deployment, LINKS, found)
