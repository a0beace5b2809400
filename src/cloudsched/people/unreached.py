"""Find the people whom messages have not reached, because no address of theirs could be used.

Their deliveries have ended as SUPPRESSED, and nobody has failed. Such a person is named as long as any of the last week
is unsent, also once another one would reach them: it can be sent again.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from cloudsched.domain.documents.delivery_channels import PING
from cloudsched.domain.documents.task import NeedCause, Trouble
from cloudsched.domain.responses.count import Count
from cloudsched.domain.responses.overview_responses import Need, NeedAct
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.engine.ports.sender import Suppress
from cloudsched.people.wiring import PeopleWiring

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

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
        if cause := _find_cause(container, tasks, since, is_cut=is_cut):
            yield cause


def _find_cause(container: Container, tasks: Sequence[Task], since: datetime, *, is_cut: bool) -> Need | None:
    """Return that messages to one person are unsent, and why. None if they are not wanted, or past pings."""
    latest = tasks[0]
    assert latest.delivery is not None  # noqa: S101 - its caller has looked
    found = PeopleWiring.of(container).recipients.find_for(latest.owner, latest.delivery)
    channel = latest.delivery.channel
    query = {"owner": latest.owner, "channel": channel, "unreached": "true", "from": since.isoformat()}
    act, then = NeedAct(label="Send again", path="deliveries", query=query), "They can be sent again."
    if isinstance(found, Suppress):
        act = NeedAct(label="Mend", path=f"people/{quote(latest.owner, safe='')}#reach")
        then = found.reason if found.is_unreached else ""
    elif channel == PING:
        then = ""
    if not then:
        return None
    count = Count(value=len(tasks), at_least=is_cut)
    to = f"by {channel.lower()} for {latest.owner}"
    said = count.write(f"message {to} was", f"messages {to} were")
    return Need(
        cause=NeedCause.NOT_REACHABLE,
        sentence=f"{said[0].upper()}{said[1:]} not sent in the last {LATELY.days} days. {then}",
        count=count,
        subject=latest.owner,
        path="deliveries",
        query=query,
        act=act,
    )
