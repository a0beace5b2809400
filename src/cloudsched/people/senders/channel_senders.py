"""The senders of an app: each is made, and its packages imported, when its channel is first used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from cloudsched.domain.documents.delivery_channels import COMPLETION, PING, DeliveryChannel
from cloudsched.engine.concurrency.fork_safety import make_lock
from cloudsched.errors import DeliveryDelayed, Misconfigured
from cloudsched.runtime.factories import Circuits

if TYPE_CHECKING:
    from cloudsched.config.settings import Settings
    from cloudsched.engine.ports.sender import OutgoingMessage, Recipient, Sender, Template

_MAX_WEBHOOK_ANSWER: Final = 64_000
"""The most bytes of an answer that are received and unpacked. Few of them are read."""
_OF_USERS: Final = (DeliveryChannel.WEBHOOK, COMPLETION, PING)
"""The channels to addresses of users: each host has a circuit of its own."""


class Senders(Mapping[str, "Sender"]):
    """The senders of the channels that the settings set up."""

    def __init__(
        self,
        settings: Settings,
        template: Callable[[], Template | None] = lambda: None,
        circuits: Circuits | None = None,
    ) -> None:
        self._circuits = circuits or Circuits()
        makers = {str(each): _find_maker(each, settings, template) for each in DeliveryChannel}
        makers[COMPLETION] = makers[DeliveryChannel.WEBHOOK]
        makers[PING] = partial(_open_pings, settings)
        self._makers = {name: maker for name, maker in makers.items() if maker is not None}
        self._open: dict[str, Sender] = {}
        self._lock = make_lock()

    def __getitem__(self, channel: str) -> Sender:
        """Return a channel's sender. Raises KeyError if it is not set up."""
        with self._lock:
            if channel not in self._open:
                self._open[channel] = self._circuits.guard(
                    channel.lower(),
                    self._makers[channel](),
                    DeliveryDelayed,
                    f"The channel {channel}",
                    ("send", "ask", "show"),
                    _find_host if channel in _OF_USERS else None,
                )
            return self._open[channel]

    def __contains__(self, channel: object) -> bool:
        """Return whether a channel is set up, without making its sender."""
        return channel in self._makers

    def __iter__(self) -> Iterator[str]:
        """Return the channels that are set up."""
        return iter(self._makers)

    def __len__(self) -> int:
        """Return how many channels are set up."""
        return len(self._makers)


def _find_host(_message: OutgoingMessage, recipient: Recipient) -> str:
    try:
        return urlsplit(recipient.address).hostname or ""
    except ValueError:
        return ""


def _find_maker(  # noqa: PLR0911 - one return for each channel
    channel: DeliveryChannel,
    settings: Settings,
    template: Callable[[], Template | None],
) -> Callable[[], Sender] | None:
    """Return what makes a channel's sender. None if the settings do not set it up, or if it needs no sender."""
    match channel:
        case DeliveryChannel.EMAIL:
            return partial(_open_smtp, settings, template) if settings.smtp_url else None
        case DeliveryChannel.WEB:
            return None  # the inbox is part of the store
        case DeliveryChannel.MOBILE:
            return partial(_open_fcm, settings.fcm_project) if settings.fcm_project else None
        case DeliveryChannel.WEBHOOK:
            return partial(_open_webhooks, settings)
        case DeliveryChannel.OPERATOR:
            return partial(_open_apprise, settings.apprise_urls) if settings.apprise_urls else None
        case DeliveryChannel.TELEGRAM:
            return partial(_open_telegram, settings) if settings.telegram_bot else None
        case DeliveryChannel.SLACK:
            return partial(_open_slack, settings) if settings.slack_app else None


def _open_smtp(settings: Settings, template: Callable[[], Template | None]) -> Sender:
    from cloudsched.people.senders.smtp import SmtpSender, SmtpServer  # noqa: PLC0415 - only when used

    if not settings.mail_from:
        raise Misconfigured("Set CLOUDSCHED_MAIL_FROM to the sender of mail, such as ada@example.com.")
    return SmtpSender(
        SmtpServer.from_url(settings.smtp_url or ""),
        settings.mail_from,
        template=template,
        idempotency_header=settings.mail_idempotency_header,
    )


def _open_fcm(project: str) -> Sender:
    from cloudsched.adapters.safe_http import limit_session  # noqa: PLC0415 - only when used
    from cloudsched.people.senders.fcm import FcmSender  # noqa: PLC0415 - only when used

    return FcmSender(project, limit_session)


def _open_apprise(urls: tuple[str, ...]) -> Sender:
    from cloudsched.people.senders.apprise import AppriseSender  # noqa: PLC0415 - only when used

    return AppriseSender(urls)


def _open_pings(settings: Settings) -> Sender:
    from cloudsched.adapters.safe_http import make_session  # noqa: PLC0415 - only when used
    from cloudsched.adapters.safe_http.dead_man_switch import PingSender  # noqa: PLC0415 - only when used

    make = partial(make_session, settings.access.reachable, max_bytes=_MAX_WEBHOOK_ANSWER)
    return PingSender(make, allows_http=settings.allows_http)


def _open_telegram(settings: Settings) -> Sender:
    from cloudsched.adapters.safe_http import make_session  # noqa: PLC0415 - only when used
    from cloudsched.people.senders.telegram import TelegramBot  # noqa: PLC0415 - only when used

    token, secret = settings.telegram_bot
    return TelegramBot(token, secret, partial(make_session, max_bytes=_MAX_WEBHOOK_ANSWER))


def _open_slack(settings: Settings) -> Sender:
    from cloudsched.adapters.safe_http import make_session  # noqa: PLC0415 - only when used
    from cloudsched.people.senders.slack import SlackApp  # noqa: PLC0415 - only when used

    token, secret = settings.slack_app
    return SlackApp(token, secret, partial(make_session, max_bytes=_MAX_WEBHOOK_ANSWER))


def _open_webhooks(settings: Settings) -> Sender:
    from cloudsched.adapters.safe_http import make_session  # noqa: PLC0415 - only when used
    from cloudsched.people.senders.webhook import WebhookSender  # noqa: PLC0415 - only when used

    make = partial(make_session, settings.access.reachable, max_bytes=_MAX_WEBHOOK_ANSWER)
    return WebhookSender(make, allows_http=settings.allows_http)
