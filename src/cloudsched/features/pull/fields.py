"""What tasks say of the workers that run them, and the entry by which workers find a task.

A task that names a queue waits in the store until a worker claims it. While one of its runs waits so, the
task has an *offer*: its entry in the queue, which no one has leased yet. Each offer has a queue key: its
queue, or its queue and the skill that it requires. A worker reads only the keys whose offers it can run.
Offers are ordered by priority, then by due time. An offer is derived from the task's runs whenever the
task is written, so it exists exactly as long as one of them waits for a worker.

Workers do not search the tasks themselves: each offer is also a small document of its own (`OfferEntry`),
which is written or deleted by the commit that changes it. So neither their queries nor their listeners
see other changes of tasks.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypedDict

from pydantic import StringConstraints, ValidationError, model_validator

from cloudsched.domain.documents.document import Document, InputModel, Instant, WireModel
from cloudsched.errors import Misconfigured
from cloudsched.features.table import find_place

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MAX_SKILLS = 20
"""The most skills of one worker: each is a queue key that it reads (Firestore's ``IN`` takes 30 values)."""

QueueName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
"""Letters, digits, hyphens and underscores."""
Skill = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
"""Letters, digits, hyphens, underscores and dots."""


class Pull(InputModel):
    """The queue whose workers run a task. On the wire, the queue's name alone may replace the object."""

    short_form: ClassVar[Any] = QueueName
    queue: QueueName
    skill: Skill | None = None
    """The skill that the worker must have, such as ``cuda``, or None if any worker of the queue may run it."""

    @model_validator(mode="before")
    @classmethod
    def _expand_queue(cls, value: object) -> object:
        return {"queue": value} if isinstance(value, str) else value

    @property
    def queue_key(self) -> str:
        """The key under which its offers are stored."""
        return queue_key(self.queue, self.skill)


class Offer(WireModel):
    """The entry by which workers find a task."""

    queue_key: str
    order: str
    """Its sort key among the offers of that queue key: the priority's rank, then the due time, as text."""

    @property
    def rank(self) -> str:
        """The part of its order that the task's priority decides."""
        return self.order.partition(" ")[0]

    @property
    def since(self) -> datetime:
        """The instant since which it has been waiting."""
        return datetime.fromisoformat(self.order.partition(" ")[2])


class OfferEntry(Document, Offer):
    """A task's offer as workers find it, with the fields that determine its workers. ``offers/{taskId}``."""

    task_id: str
    owner: str
    handler: str
    is_code_call: bool = False
    """True if a handler's code made the task. See `Task.is_made_by_code`."""
    is_for_servers: bool | None = None
    """True if no user wrote or edited the task or the one at the top of its tree, so that no user may claim it."""
    runs: int = 1
    """The number of the task's runs that wait."""
    expiries: tuple[Instant, ...] = ()
    """When those of them expire that may not wait for ever."""

    def count_waiting(self, now: datetime) -> int:
        """Return how many of its runs a worker may still claim."""
        return self.runs - sum(at <= now for at in self.expiries)


def queue_key(queue: str, skill: str | None = None) -> str:
    """Return the queue key of tasks that require a skill, or none."""
    return queue if skill is None else f"{queue}/{skill}"


def queue_keys(queue: str, skills: Iterable[str]) -> tuple[str, ...]:
    """Return the queue keys that a worker with these skills reads."""
    return (queue_key(queue), *(queue_key(queue, skill) for skill in sorted(set(skills))))


class SpecPullFields(WireModel):
    """The fields that the owner of a task sets."""

    pull: Pull | None = None
    """The queue that workers claim it from. None: the executor runs it."""

    workers: ClassVar[Any] = property(
        attrgetter("pull"),
    )  # the kernel's word, and no call of Python: each commit asks


class ChildPullFields(InputModel):
    """The fields of a child task."""

    pull: Pull | None = None
    """The queue whose workers run it, or the handler's own if None."""

    workers: ClassVar[Any] = property(attrgetter("pull"))


class TaskPullFields(WireModel):
    """What a stored task tells of its offer.

    The rules are found by their place: they know runs, which have fields.
    """

    offer: Offer | None = None
    """The queue key under which workers find it, while one of its runs waits for a worker."""

    def refresh_offer(self, now: datetime) -> dict[str, Any]:
        """Return the changes that offer exactly its due runs."""
        changes: dict[str, Any] = find_place("cloudsched.features.pull.offers:refresh_offer")(self, now)
        return changes

    def build_offer_entry(self) -> OfferEntry | None:
        """Return the document by which workers find it, or None if it offers nothing."""
        if self.offer is None:
            return None
        entry: OfferEntry | None = find_place("cloudsched.features.pull.offers:build_offer_entry")(self)
        return entry


@dataclass(frozen=True, kw_only=True)
class HandlerPullFields:
    """What a handler says of the workers of its tasks."""

    defaulted: ClassVar[tuple[str, ...]] = ("pull",)
    """The fields that its tasks have by default."""
    pull: Pull | None = None
    """The workers of tasks that do not name any."""
    user_queues: frozenset[str] = frozenset()
    """The queues that users may ask for, besides the handler's own."""

    @property
    def workers(self) -> Pull | None:
        """The workers of tasks that do not name any."""
        return self.pull

    @classmethod
    def read_options(cls, name: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return its fields as a registration gives them. Raises Misconfigured."""
        pull = options.get("pull")
        queues = options.get("user_queues", ())
        try:
            workers = None if pull is None else Pull.model_validate(pull)
        except ValidationError:
            raise Misconfigured(
                f"Handler {name!r}: pull is {pull!r}; give a queue's name, or a Pull.",
            ) from None

        given = [None] if isinstance(queues, str) else queues  # a text is no list of its letters
        try:
            names = frozenset(Pull.model_validate(each).queue for each in given)
        except (TypeError, ValidationError):
            hint = 'give names, as in ("render", "gpu")'
            raise Misconfigured(f"Handler {name!r}: user_queues is {queues!r}; {hint}.") from None
        return {"pull": workers, "user_queues": names}


class PullOptions(TypedDict, total=False):
    """The fields that a call or a creation may set, by their Python names."""

    pull: Pull | str | Mapping[str, Any] | None


class HandlerPullOptions(TypedDict, total=False):
    """The options of a handler."""

    pull: str | Pull | None
    user_queues: Iterable[str]
