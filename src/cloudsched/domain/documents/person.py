"""A person: an owner's preferences, the addresses of each channel, and all else that is stored of them.

The owner may read ``people/{owner}``, so it holds no secrets: these are in `ContactSecrets`. Every field is a
user's text, and some end up in the headers of mails, so each has a strict format.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar, Final, TypeVar

from pydantic import AfterValidator, Field, StringConstraints, ValidationInfo, WithJsonSchema

from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.delivery_channels import DeliveryChannel
from cloudsched.domain.documents.document import WireModel
from cloudsched.domain.documents.record import Record
from cloudsched.domain.recurrence.time_zones import require_zone
from cloudsched.errors import InvalidSchedule

MAX_DEVICES = 20
MAX_ADDRESS = 254
"""The longest e-mail address (RFC 5321, section 4.5.3.1.3: a path of 256 with its angle brackets)."""
_ATEXT = r"[^\s@<>()\[\],;:\\\"]"
_ADDRESS = re.compile(rf"{_ATEXT}{{1,64}}@{_ATEXT}{{1,253}}")
_UNPRINTABLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Control characters, line ends, marks of direction and halves of surrogate pairs."""


def _require_one_line(text: str) -> str:
    if any(unicodedata.category(each) in _UNPRINTABLE for each in text):
        raise ValueError("has a control character, a line break or a mark that is not shown")
    return text


def _require_address(text: str) -> str:
    """Check an address as the sender will, so that an address that it would refuse later is refused now."""
    _require_one_line(text)
    local, _, domain = text.rpartition("@")
    labels = domain.split(".")
    is_whole = all(local.split(".")) and all(0 < len(each) <= 63 and each == each.strip("-") for each in labels)  # noqa: PLR2004 - RFC 1035
    if len(text) > MAX_ADDRESS or not _ADDRESS.fullmatch(text) or not is_whole or "=?" in text:
        raise ValueError("is not an e-mail address such as ada@example.com")
    try:
        domain.encode("idna")
    except UnicodeError:
        raise ValueError("is not an e-mail address: its domain cannot be looked up") from None
    return text


def _require_zone(name: str, info: ValidationInfo) -> str:
    if not (info.context and info.context.get("stored")):
        try:
            require_zone(name)
        except InvalidSchedule as error:
            raise ValueError(f"{error.problem}; {error.hint}") from None
    return name


def _matching(pattern: str, words: str, example: str) -> tuple[AfterValidator, WithJsonSchema]:
    """Return annotations that make a text match a pattern, with an error that describes it in words."""
    compiled = re.compile(pattern)

    def check(text: str) -> str:
        if not compiled.fullmatch(text):
            raise ValueError(f"is not {words}, such as {example}")
        return text

    schema = {"type": "string", "pattern": pattern, "examples": [example]}
    return AfterValidator(check), WithJsonSchema(schema)


TelegramId = Annotated[str, *_matching(r"^[1-9][0-9]{0,18}$", "the number of a chat with one person", "123456789")]
SlackId = Annotated[str, *_matching(r"^[UW][A-Z0-9]{2,20}$", "a member's id", "U012AB3CD")]
Name = Annotated[str, StringConstraints(max_length=200), AfterValidator(_require_one_line)]
Address = Annotated[str, StringConstraints(max_length=MAX_ADDRESS), AfterValidator(_require_address)]
DeviceToken = Annotated[str, *_matching(r"^[!-~]{1,4096}$", "a registration token", "dGhpcyBpcyBhIHRva2Vu:APA91b")]
Url = Annotated[str, *_matching(r"^https?://[!-~]{1,2000}$", "a URL in ASCII", "https://example.com/hook")]
Locale = Annotated[str, *_matching(r"^[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8}){0,3}$", "a language tag (RFC 5646)", "de-AT")]
ZoneName = Annotated[str, StringConstraints(max_length=64), AfterValidator(_require_zone)]


class EmailContact(WireModel):
    """A person's e-mail address."""

    address: Address
    verified: Annotated[bool, Field(strict=True)] | None = None
    """True if the address is known to be the person's. No mail is sent to one that is not. It is set if the
    person's own ID token has that address as verified when they set it, or by an admin, who alone may set it
    directly. It is lost when the address changes."""


class Device(WireModel):
    """A mobile device or a browser."""

    token: DeviceToken
    """Its registration token of Firebase Cloud Messaging."""


class WebhookContact(WireModel):
    """A service that gets the person's messages."""

    url: Url
    verified: Annotated[bool, Field(strict=True)] | None = None
    """True if the endpoint has proven that it wants the messages. No message is sent to one that has not.
    Only an admin may set it. If another caller sets the URL, the endpoint is asked. It is lost when the URL
    changes."""


class TelegramContact(WireModel):
    """A person's chat with the deployment's bot in Telegram."""

    id: TelegramId
    """The number of the chat, which the bot tells whoever writes to it."""
    verified: Annotated[bool, Field(strict=True)] | None = None
    """True if somebody who reads that chat has confirmed that they want the messages. No other message is
    sent to one that is not. Only an admin may set it. It is lost when the account changes."""


class SlackContact(WireModel):
    """A person's account in the Slack workspace that has the deployment's app."""

    id: SlackId
    """The member's id."""
    verified: Annotated[bool, Field(strict=True)] | None = None
    """The same as of Telegram."""


T = TypeVar("T")


def _require_distinct(each: tuple[T, ...], info: ValidationInfo) -> tuple[T, ...]:
    if len(set(each)) != len(each) and not (info.context and info.context.get("stored")):
        raise ValueError("has the same one twice")
    return each


Devices = Annotated[tuple[Device, ...], Field(max_length=MAX_DEVICES), AfterValidator(_require_distinct)]
Channels = Annotated[tuple[DeliveryChannel, ...], AfterValidator(_require_distinct)]

_OTHER_NAMES: Final[Mapping[str, str]] = {
    other: field
    for field, others in {
        "name": "displayname fullname title",
        "email": "address emailaddress mail",
        "devices": "device devicetoken devicetokens fcmtoken mobile push token tokens",
        "webhook": "callback hook url webhookurl",
        "telegram": "telegramid telegramchat chatid",
        "slack": "slackid slackuser memberid",
        "timezone": "timezonename tz zone",
        "locale": "lang language",
        "channels": "deliverychannels preferences subscriptions unsubscribed",
    }.items()
    for other in others.split()
} | dict.fromkeys(
    ("phone", "phonenumber", "sms"),
    "There is no channel to a phone number; devices get pushes.",
)
"""Other words for the fields, in small letters without separators, with the name here, or a sentence."""


class PersonSpec(WireModel):
    """The contacts and preferences that a person sets."""

    called: ClassVar[str] = "of a person"
    other_names: ClassVar[Mapping[str, str]] = _OTHER_NAMES

    name: Name = ""
    email: EmailContact | None = None
    devices: Devices = ()
    webhook: WebhookContact | None = None
    telegram: TelegramContact | None = None
    slack: SlackContact | None = None
    timezone: ZoneName = "UTC"
    """The IANA zone of the tasks whose schedules follow the person."""
    locale: Locale | None = None
    """The person's language, such as ``de-AT``, for templates and handlers."""
    channels: dict[Category, Channels] = Field(default_factory=dict)
    """The only channels that may be used, by category. A category that is not listed may come by all
    channels. The web inbox always has everything."""


class PersonPatch(WireModel):
    """Changes of some contacts and preferences. A missing field stays as it is, and null removes it."""

    called: ClassVar[str] = PersonSpec.called
    other_names: ClassVar[Mapping[str, str]] = _OTHER_NAMES

    name: Name | None = None
    email: EmailContact | None = None
    """The address, in place of the present one. Another address is not verified."""
    devices: Devices | None = None
    """All devices, in place of the present ones."""
    webhook: WebhookContact | None = None
    """The endpoint, in place of the present one. Another URL is not verified."""
    telegram: TelegramContact | None = None
    slack: SlackContact | None = None
    """The account, in place of the present one. Another one is not verified, as with `telegram`."""
    timezone: ZoneName | None = None
    locale: Locale | None = None
    channels: dict[Category, Channels | None] | None = None
    """The channels of the categories that are named here. All others keep theirs, and null removes a
    category's."""

    def apply_to(self, person: PersonSpec) -> PersonSpec:
        """Return what a person has set with these changes. What they do not name is not checked again."""
        changed: dict[str, Any] = {name: getattr(person, name) for name in PersonSpec.model_fields}
        for name in self.model_fields_set:
            given = getattr(self, name)
            field = PersonSpec.model_fields[name]
            changed[name] = field.get_default(call_default_factory=True) if given is None else given
        if self.channels is not None:
            merged = {**person.channels, **self.channels}
            changed["channels"] = {category: each for category, each in merged.items() if each is not None}
        return PersonSpec.model_construct(**changed)


def list_removed(person: PersonSpec, spec: PersonSpec) -> list[str]:
    """Return the fields of a person that a spec in its place would remove, whole or in part.

    A change is none.
    """
    removed = []
    for name in PersonSpec.model_fields:
        stored = getattr(person, name)
        given = getattr(spec, name)
        is_left_out = name not in spec.model_fields_set or not given
        is_cut = isinstance(stored, tuple | dict) and any(each not in given for each in stored)
        if stored != given and (is_left_out or is_cut):
            removed.append(name)
    return removed


class Person(Record, PersonSpec):
    """An owner's contacts and preferences, as they are stored. The id is the owner."""

    collection: ClassVar[str] = "people"
    is_exported: ClassVar[bool] = True

    zone_revision: int = 0
    """The number of changes of `timezone`. The tasks that follow the person are planned again after each."""

    @property
    def etag(self) -> str:
        """Identify this state. A change that is given it is refused if the person has changed since."""
        content = self.model_dump_json(by_alias=True, exclude_none=True)
        return hashlib.sha256(content.encode()).hexdigest()[:20]

    @cached_property
    def webhook_secret(self) -> str | None:
        """The secret that signs messages to a webhook.

        Only the answer to the call that set its URL has it.
        """
        return None

    def answering(self, webhook_secret: str | None) -> Person:
        """Return the person as the answer to a call, with the secret that it made. It is not stored."""
        answer = self.model_copy()
        vars(answer)["webhook_secret"] = webhook_secret
        return answer

    @property
    def verified_address(self) -> str | None:
        """The address that mail may be sent to."""
        if self.email is not None and self.email.verified:
            return self.email.address
        return None

    @property
    def verified_webhook(self) -> str | None:
        """The URL that messages may be posted to."""
        if self.webhook is not None and self.webhook.verified:
            return self.webhook.url
        return None


def is_wanted(person: Person, category: Category, channel: DeliveryChannel) -> bool:
    """Return whether the person's preferences allow a channel for a category.

    The inbox always has everything.
    """
    allowed = person.channels.get(category)
    return allowed is None or not channel.traits.is_sent or channel in allowed


def default_channels(person: Person | None, category: Category) -> tuple[DeliveryChannel, ...]:
    """Return the delivery channels of a new task that names none."""
    if person is None:
        return ()
    return person.channels.get(category, ())
