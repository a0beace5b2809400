"""Find the people whom messages have not reached, because no address of theirs can be used.

Their deliveries have ended as SUPPRESSED, and nobody has failed. Such a person is named as long as that is so, and as
long as messages have been lost lately.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from cloudsched.domain.documents.delivery_channels import CALLBACKS, DeliveryChannel
from cloudsched.domain.documents.task import NeedCause, Trouble
from cloudsched.domain.responses.count import Count
from cloudsched.domain.responses.overview_responses import Need, NeedAct
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.engine.ports.sender import Suppress
from cloudsched.people.wiring import PeopleWiring

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cloudsched.domain.documents.task import Task
    from cloudsched.runtime.container import Container

LATELY: Final = timedelta(days=7)
"""The time for which a lost message is told."""
_LOOKED_AT: Final = 100
"""The most lost messages that are read, the latest."""


def find_causes(container: Container, owner: str | None) -> Iterator[Need]:
    """Yield who is not reached by which channel, the rarest first, of all owners or of one.

    Costs a read, and if there are lost messages one for each of the latest, and one or two for each person.
    """
    page = container.store.list_tasks(TaskQuery(owner, trouble=Trouble.UNREACHED), limit=_LOOKED_AT)
    since = container.clock.now() - LATELY
    lost: dict[tuple[str, str], list[Task]] = {}
    for task in page.items:
        if task.delivery is not None and task.status_changed_at >= since:
            lost.setdefault((task.owner, task.delivery.channel), []).append(task)
    is_cut = page.next_page_token is not None and page.items[-1].status_changed_at >= since
    for tasks in sorted(lost.values(), key=len):
        if cause := _find_cause(container, tasks, is_cut=is_cut):
            yield cause


def _find_cause(container: Container, tasks: Sequence[Task], *, is_cut: bool) -> Need | None:
    """Return the cause for which messages to one person are lost. None if the next one would be sent."""
    latest = tasks[0]
    assert latest.delivery is not None  # noqa: S101 - its caller has looked
    found = PeopleWiring.of(container).recipients.find_for(latest.owner, latest.delivery)
    if not isinstance(found, Suppress) or not found.is_unreached:
        return None
    count = Count(value=len(tasks), at_least=is_cut)
    things = count.write(*_name_messages(latest.delivery.channel)).capitalize()
    path = f"people/{quote(latest.owner, safe='')}"
    return Need(
        cause=NeedCause.NOT_REACHABLE,
        sentence=f"{things} {latest.owner} {'was' if count.value == 1 else 'were'} not sent in the last "
        f"{LATELY.days} days. {found.reason}",
        count=count,
        subject=latest.owner,
        path=path,
        act=NeedAct(label="Mend", path=f"{path}#reach"),
        since=None if is_cut else tasks[-1].status_changed_at,
    )


def _name_messages(channel: str) -> tuple[str, str]:
    name = channel.lower()
    if channel in CALLBACKS:
        return f"{name} call of", f"{name} calls of"
    if channel == DeliveryChannel.EMAIL:
        return "mail to", "mails to"
    return f"message by {name} to", f"messages by {name} to"
