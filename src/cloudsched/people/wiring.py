"""The parts of people in a container, each made on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from cloudsched.domain.documents.delivery_channels import DeliveryChannel
from cloudsched.domain.explanation.findings import Finding, Reason
from cloudsched.engine.ports.sender import Suppress
from cloudsched.errors import NotFound
from cloudsched.people.reach import find_obstacle, say_not_set_up
from cloudsched.runtime.container import Wiring
from cloudsched.runtime.lazy_property import lazy_property

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from cloudsched.domain.documents.category import Category
    from cloudsched.domain.documents.execution import Message
    from cloudsched.domain.documents.person import Person
    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.ports.sender import Asker, Sender
    from cloudsched.people.answers import Answers
    from cloudsched.people.contact_links import ContactLinks
    from cloudsched.people.delivery_handler import DeliveryHandler
    from cloudsched.people.feeds import Feeds
    from cloudsched.people.people import People
    from cloudsched.people.person_erasure import PersonErasure
    from cloudsched.people.person_export import PersonExport
    from cloudsched.people.person_jobs import PersonJobs
    from cloudsched.people.recipients import PeopleRecipients
    from cloudsched.people.senders.chat_app import ChatApp
    from cloudsched.people.signed_links import SignedLinks
    from cloudsched.people.unsubscribe_links import UnsubscribeLinks
    from cloudsched.people.webhook_verification import WebhookVerification
    from cloudsched.runtime.container import Container


class PeopleWiring(Wiring):
    """Makes the parts that know and reach people."""

    @lazy_property
    def people(self) -> People:
        """The contacts and preferences of owners."""
        from cloudsched.domain.documents.task_link import zone_key  # noqa: PLC0415 - only when used
        from cloudsched.people.people import People  # noqa: PLC0415 - only when used

        def follow(owner: str, revision: int) -> None:
            self.container.followers.begin(zone_key(owner), revision, f"follow {owner}", owner)

        return People(self.container.store, self.container.clock, self._require_webhook_url, follow)

    def _require_webhook_url(self, url: str) -> None:
        from cloudsched.adapters.safe_http import require_reachable_url  # noqa: PLC0415 - only when used

        settings = self.container.settings
        require_reachable_url(url, settings.access.reachable, allows_http=settings.allows_http)

    @lazy_property
    def senders(self) -> Mapping[str, Sender]:
        """Sends deliveries, by channel. It has only those that are set up."""
        from cloudsched.people.senders.channel_senders import Senders  # noqa: PLC0415 - only when used

        own = self.container
        return Senders(own.settings, lambda: own.registry.registrations.mail_template, own.circuits)

    @lazy_property
    def _services(self) -> Mapping[str, Sender]:
        """The senders that also understand what their services say: those of a simulation only take messages."""
        from cloudsched.people.senders.channel_senders import Senders  # noqa: PLC0415 - only when used

        return self.senders if isinstance(self.senders, Senders) else Senders(self.container.settings)

    @lazy_property
    def recipients(self) -> PeopleRecipients:
        """Knows how people want to be reached."""
        from cloudsched.people.recipients import PeopleRecipients  # noqa: PLC0415 - only when used

        container = self.container
        hosts = container.settings.access.ping_hosts
        return PeopleRecipients(container.store.records, container.clock, self.make_unsubscribe_url, hosts)

    @lazy_property
    def links(self) -> SignedLinks:
        """Proves that links were made here."""
        from cloudsched.people.signed_links import SignedLinks  # noqa: PLC0415 - only when used

        return SignedLinks(self.container.store.records, self.container.clock)

    @lazy_property
    def unsubscribe_links(self) -> UnsubscribeLinks:
        """Links by which recipients end mails."""
        from cloudsched.people.unsubscribe_links import UnsubscribeLinks  # noqa: PLC0415 - only when used

        return UnsubscribeLinks(self.links, self.container.store.records, self.container.clock)

    @lazy_property
    def answers(self) -> Answers:
        """Answers by a tap to what people are asked by name."""
        from cloudsched.people.answers import Answers  # noqa: PLC0415 - only when used

        return Answers(self.container.engine, lambda: self.container.scheduler, self.links)

    @lazy_property
    def chat_apps(self) -> Mapping[str, ChatApp]:
        """The apps of the chats that are set up, by channel. They understand what their services post."""
        chats = (DeliveryChannel.TELEGRAM, DeliveryChannel.SLACK)
        return {each: cast("ChatApp", self._services[each]) for each in chats if each in self._services}

    @lazy_property
    def contact_links(self) -> ContactLinks:
        """Links that prove that a chat is a person's own."""
        from cloudsched.people.contact_links import ContactLinks  # noqa: PLC0415 - only when used

        records = self.container.store.records
        return ContactLinks(records, self.container.clock, self.people, self.links, self.senders)

    def make_answer_url(self, owner: str, message_id: str, asked_at: datetime) -> str | None:
        """Return where a person answers a question by a tap. None if the API has no public address."""
        root = self.container.settings.public_url
        return self.answers.make_url(root, owner, message_id, asked_at) if root else None

    def find_answer_url(self, owner: str, message_id: str, asked_at: datetime) -> str | Suppress | None:
        """Return the same for a question that is sent now, or why it need not be sent any more."""
        try:
            question = self.answers.look(self.answers.find_message(owner, message_id, asked_at))
        except NotFound:
            return Suppress("The question has been deleted.")
        if question.answer is not None or question.problem:
            return Suppress(question.problem or "The question has been answered.")
        return self.make_answer_url(owner, message_id, asked_at)

    def with_answer_url(self, message: Message) -> Message:
        """Return a message as its owner sees it: a question has a link to answer it."""
        if message.event is None:
            return message
        url = self.make_answer_url(message.owner, message.id, message.created_at)
        return message.model_copy(update={"answer_url": url})

    def make_unsubscribe_url(self, owner: str, category: Category) -> str | None:
        """Return where a person ends mails of a category. None if the API has no public address with TLS."""
        root = self.container.settings.public_url
        return self.unsubscribe_links.make(root, owner, category) if root.startswith("https://") else None

    @lazy_property
    def webhook_verification(self) -> WebhookVerification:
        """Asks people's endpoints whether they want messages."""
        from cloudsched.people.webhook_verification import WebhookVerification  # noqa: PLC0415 - only when used

        container = self.container
        return WebhookVerification(
            container.store.records,
            container.clock,
            self.people,
            lambda: cast("Asker", self._services[DeliveryChannel.WEBHOOK]),
        )

    @lazy_property
    def feeds(self) -> Feeds:
        """Shows tasks as calendars."""
        from cloudsched.people.feeds import Feeds  # noqa: PLC0415 - only when used

        return Feeds(self.container.store, self.container.clock)

    @lazy_property
    def person_jobs(self) -> PersonJobs:
        """Starts jobs on all that is stored of a person."""
        from cloudsched.people.person_jobs import PersonJobs  # noqa: PLC0415 - only when used

        return PersonJobs(self.container.store, self.container.clock, self.container.scheduler)

    @lazy_property
    def person_erasure(self) -> PersonErasure:
        """Deletes all that is stored of a person."""
        from cloudsched.people.person_erasure import PersonErasure  # noqa: PLC0415 - only when used

        note_use = self.container.usage_limit.note_use
        return PersonErasure(self.container.store, lambda: self.container.scheduler, note_use)

    @lazy_property
    def person_export(self) -> PersonExport:
        """Writes down all that is stored of a person."""
        from cloudsched.people.person_export import PersonExport  # noqa: PLC0415 - only when used

        return PersonExport(self.container.store, self.container.clock)

    @lazy_property
    def delivery_handler(self) -> DeliveryHandler:
        """Sends deliveries."""
        from cloudsched.people.delivery_handler import DeliveryHandler  # noqa: PLC0415 - only when used

        return DeliveryHandler(
            lambda: self.senders,
            lambda: self.recipients,
            self.find_answer_url,
            self.container.chance,
            self._has_ended,
        )

    def _has_ended(self, task_id: str, execution_id: str) -> bool:
        record = self.container.store.load_execution(task_id, execution_id)
        return record is not None and record.status.is_final


def check_settings(container: Container) -> None:
    """Make the senders of what the settings name. A channel without settings has none to misspell."""
    for channel in (DeliveryChannel.EMAIL, DeliveryChannel.OPERATOR):
        PeopleWiring.of(container).senders.get(channel)


def find_conditions(container: Container, task: Task, person: Person | None, _now: object) -> Iterator[Finding]:
    """Yield which of a task's channels would reach nobody."""
    senders = PeopleWiring.of(container).senders
    if task.delivery is not None:
        yield from container.circuits.explain(task.delivery.channel.lower())
    for channel in task.delivery_channels:
        if not channel.traits.is_sent:
            continue
        if channel not in senders:
            yield Finding(reason=Reason.CHANNEL_NOT_SET_UP, sentence=say_not_set_up(channel))
        elif channel is not DeliveryChannel.OPERATOR and (why := find_obstacle(person, task.category, channel)):
            yield Finding(reason=Reason.NOT_REACHABLE, sentence=f"It reaches nobody by {channel}. {why}")
        else:
            url = person.webhook.url if person and person.webhook and channel is DeliveryChannel.WEBHOOK else ""
            yield from container.circuits.explain(channel.lower(), urlsplit(url).hostname or "")
    yield from _find_question_conditions(container, task)


def _find_question_conditions(container: Container, task: Task) -> Iterator[Finding]:
    """Yield why what a task asks people by name does not reach them, or cannot be answered by a tap."""
    waits = [each.wait_for_event for each in task.runs]
    channels = {channel for each in waits if each is not None for channel in each.channels}
    for channel in sorted(channels):
        if channel.traits.is_sent and channel not in PeopleWiring.of(container).senders:
            yield Finding(reason=Reason.CHANNEL_NOT_SET_UP, sentence=say_not_set_up(channel))
    if channels and not container.settings.public_url:
        sentence = "Its question has no link to answer it: set CLOUDSCHED_PUBLIC_URL."
        yield Finding(reason=Reason.CHANNEL_NOT_SET_UP, sentence=sentence)
