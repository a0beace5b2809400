"""Administer the queues of a deployment in Cloud Tasks: state, rates, depth, pause, resume and purge.

Operators ask for this now and then, so it uses Google's client, which is imported with the first request. Its
version is v2beta3, since v2 has no number of tasks. REST leads to the local Cloud Tasks, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from cloudsched.adapters.google.cloud_tasks import channel_queue_id, list_queue_ids, queue_id
from cloudsched.adapters.google.credentials import require_credentials
from cloudsched.domain.documents.delivery_channels import QUEUE_CHANNELS
from cloudsched.domain.documents.policy import Priority
from cloudsched.domain.responses.overview_responses import DispatchQueue
from cloudsched.errors import InvalidInput, NotFound, QueueUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

TIMEOUT_SECONDS: Final = 10.0
_READ_MASK: Final = {"paths": ["name", "state", "rate_limits", "stats"]}
_ROLE_HINT: Final = (
    "the API's account needs roles/cloudtasks.queueAdmin on it, which infra/deploy.sh grants with QUEUE_ADMIN=on"
)


class QueueAdmin:
    """Looks at the queues of a deployment, and changes them."""

    def __init__(
        self,
        *,
        project: str,
        location: str,
        queue: str,
        queues_per_priority: int = 1,
        emulator: str | None = None,
    ) -> None:
        """Import Google's client. Raises Misconfigured if there are no credentials. Nothing is sent yet."""
        from google.auth.credentials import AnonymousCredentials  # noqa: PLC0415 - see the module's docstring
        from google.cloud import tasks_v2beta3  # noqa: PLC0415 - the same
        from google.cloud.tasks_v2beta3.services.cloud_tasks.transports import (  # noqa: PLC0415 - the same
            CloudTasksRestTransport,
        )

        self._location = f"projects/{project}/locations/{location}"
        channels = (channel_queue_id(queue, each) for each in QUEUE_CHANNELS)
        ids = (*list_queue_ids(queue, queues_per_priority), *channels)
        self._ids = tuple(dict.fromkeys(ids))
        numbers = range(1, queues_per_priority + 1)
        self._priorities = {queue_id(queue, each, number): each for each in Priority for number in numbers}
        where: dict[str, Any] = {}
        if emulator:
            anonymous = AnonymousCredentials()  # type: ignore[no-untyped-call]
            where = {"host": emulator, "url_scheme": "http", "credentials": anonymous}
        with require_credentials("Google Cloud", ", or name an emulator"):
            self._client = tasks_v2beta3.CloudTasksClient(transport=CloudTasksRestTransport(**where))

    def list(self) -> tuple[DispatchQueue, ...]:
        """Return the queues that exist.

        Those that this account may not see are missing, unless it may see none.
        """
        found = []
        refused = None
        for queue in self._ids:
            try:
                found.append(self._look(queue))
            except NotFound:
                continue
            except QueueUnavailable as error:  # the answer for a missing queue, too, where roles cover single queues
                if not _is_refusal(error):
                    raise
                refused = error
        if refused is not None and not found:
            raise refused
        return tuple(found)

    def update(
        self, queue: str, state: Literal["RUNNING", "PAUSED"] | None, rates: Mapping[str, float | None]
    ) -> DispatchQueue:
        """Change what is given of a queue. Raises NotFound for a queue that is not the deployment's."""
        self._look(queue)  # since an update creates a queue that is missing
        name = self._name(queue)
        given = {rate: value for rate, value in rates.items() if value is not None}
        if given:
            mask = {"paths": [f"rate_limits.{rate}" for rate in given]}
            content = {"name": name, "rate_limits": given}
            _call(queue, self._client.update_queue, {"queue": content, "update_mask": mask})
        if state is not None:
            if state == "RUNNING":
                method = self._client.resume_queue
            else:
                method = self._client.pause_queue
            _call(queue, method, {"name": name})
        return self._look(queue)

    def purge(self, queue: str) -> DispatchQueue:
        """Delete all dispatches of a queue.

        The sweep sends what is still to run when it is due. Raises NotFound.
        """
        _call(queue, self._client.purge_queue, {"name": self._name(queue)})
        return self._look(queue)

    def _name(self, queue: str) -> str:
        if queue not in self._ids:
            raise NotFound("queue", queue)
        return f"{self._location}/queues/{queue}"

    def _look(self, queue: str) -> DispatchQueue:
        found = _call(queue, self._client.get_queue, {"name": self._name(queue), "read_mask": _READ_MASK})
        return DispatchQueue(
            queue=queue,
            state=found.state.name,
            max_dispatches_per_second=found.rate_limits.max_dispatches_per_second,
            max_concurrent_dispatches=found.rate_limits.max_concurrent_dispatches,
            depth=found.stats.tasks_count,
            priorities=(self._priorities[queue],) if queue in self._priorities else (),
        )


def _is_refusal(error: QueueUnavailable) -> bool:
    from google.api_core.exceptions import Forbidden  # noqa: PLC0415 - see the module's docstring

    return isinstance(error.__cause__, Forbidden)


def _call(queue: str, method: Callable[..., Any], request: dict[str, Any]) -> Any:  # noqa: ANN401 - a message
    from google.api_core import exceptions  # noqa: PLC0415 - see the module's docstring
    from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415 - the same
    from requests import RequestException  # noqa: PLC0415 - the same

    try:
        return method(request=request, timeout=TIMEOUT_SECONDS, retry=None)
    except exceptions.NotFound:
        raise NotFound("queue", queue) from None
    except exceptions.InvalidArgument as error:
        raise InvalidInput("queue", str(error.message)) from error
    except exceptions.Forbidden as error:
        raise QueueUnavailable(f"The queue {queue}", f"{error.message}; {_ROLE_HINT}") from error
    except (exceptions.GoogleAPIError, GoogleAuthError, RequestException) as error:
        raise QueueUnavailable(f"The queue {queue}", str(error)) from error
