"""The settings: one frozen object, read once from the environment and passed down.

It has a section for each feature. This is the only module that reads the environment. The documentation of
each field stands beside it, and in the table of ``docs/reference/settings.md``.

A script is a user's code in place of a handler (``docs/guides/scripts.md``). One that exceeds a limit fails.
Prices are in US dollars for a million of each. The defaults are Google's for us-central1 as of November 2026
(cloud.google.com/firestore/pricing, cloud.google.com/tasks/pricing, cloud.google.com/run/pricing). Only you
know the cost of queries and tokens.
"""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass, field
from datetime import time, timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final, Literal, get_args
from urllib.parse import urlsplit

from cloudsched.config.access import Access
from cloudsched.config.variables import (
    ADDRESS,
    ANSWER,
    CALENDAR_ID,
    CHANNELS,
    DAYS,
    MAIL_SENDER,
    MAIL_SERVER,
    PATH,
    SLACK_APP,
    SWITCH,
    TELEGRAM_BOT,
    TIME_OF_DAY,
    Kind,
    SettingsSection,
    choice_of,
    either,
    matching,
    read_settings,
    seconds_between,
    setting,
    whole_number,
    words_matching,
    write_settings,
)
from cloudsched.errors import Misconfigured

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

DEFAULT_PRICES: Final[Mapping[str, float]] = {
    "read": 0.30,
    "write": 0.90,
    "delete": 0.10,
    "queueOperation": 0.40,
    "request": 0.40,
    "query": 0.0,
    "token": 0.0,
}
_MILLION: Final = 1_000_000
_Table = tuple[tuple[str, float], ...]


def _parse_price_table(text: str) -> _Table:
    prices = dict(DEFAULT_PRICES)
    for word in text.split():
        name, _, value = word.partition("=")
        try:
            price = float(value)
        except ValueError:
            price = math.nan
        if name not in prices or not value.isascii() or not 0 <= price < math.inf:
            known = ", ".join(prices)
            raise ValueError(f"has {word!r}; it must have words such as read=0.30, of {known}, each for a million.")
        prices[name] = price
    return tuple(prices.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices(SettingsSection):
    """The prices of operations."""

    table: _Table = setting(
        "CLOUDSCHED_PRICES",
        "Prices in US dollars for a million of each, for [costs and usage](../run/costs.md). Prices that "
        "you leave out keep these defaults.",
        Kind(_parse_price_table, lambda table: " ".join(f"{name}={price!r}" for name, price in table)),
        default=tuple(DEFAULT_PRICES.items()),
    )

    @property
    def per_million(self) -> dict[str, float]:
        """Return the prices in US dollars for a million of each."""
        return dict(self.table)

    def cost(self, amounts: Mapping[str, float]) -> float:
        """Return the cost of amounts, by the names of their prices, in dollars."""
        prices = self.per_million
        return math.fsum(amount * prices[name] for name, amount in amounts.items()) / _MILLION


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantSettings(SettingsSection):
    """Whether the language model may run tasks, and the limits of one execution."""

    is_on: bool = setting(
        "CLOUDSCHED_ASSISTANT",
        "`on` lets tasks name the built-in handler [`assistant`](../guides/agents.md), which lets the "
        "language model do the work. Needs `CLOUDSCHED_MODEL`.",
        SWITCH,
        default=False,
    )
    models: tuple[str, ...] = setting(
        "CLOUDSCHED_ASSISTANT_MODELS",
        "Further models of the same provider that a task may ask for in `source.model.name`, separated by spaces.",
        words_matching(r"[A-Za-z0-9._:/@-]{1,200}", "it must be names of models, separated by spaces"),
        default=(),
    )
    turns: int = setting(
        "CLOUDSCHED_ASSISTANT_TURNS",
        "How often one execution may ask the model. The last time, it has to answer.",
        whole_number(100),
        default=10,
    )
    tokens: int = setting(
        "CLOUDSCHED_ASSISTANT_TOKENS",
        "How many tokens one execution may use before the model is no longer asked.",
        whole_number(10**9),
        default=100_000,
    )
    timeout: timedelta = setting(
        "CLOUDSCHED_ASSISTANT_TIMEOUT_SECONDS",
        "How long one request of the assistant to the model may take.",
        seconds_between(0.1, 120),
        default=timedelta(seconds=60),
    )


_DOLLARS = r"[0-9]{1,6}(\.[0-9]{1,6})?"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings(SettingsSection):
    """The language model that is used, and its parameters."""

    name: str | None = setting(
        "CLOUDSCHED_MODEL",
        "The [language model](../guides/plain-language.md) that helps where the grammar does not "
        "understand: `vertex:NAME` with this program's Google credentials, or `openai:NAME` for any server that "
        "speaks OpenAI's API. Without one, the grammar works alone.",
        matching(r"(vertex|openai):[A-Za-z0-9._:/@-]{1,200}", "be vertex:NAME or openai:NAME"),
        default=None,
    )
    key: str | None = setting(
        "CLOUDSCHED_MODEL_KEY",
        "The model's API key.",
        default=None,
        is_secret=True,
    )
    url: str = setting(
        "CLOUDSCHED_MODEL_URL",
        "The address of the model's API, such as `http://127.0.0.1:11434/v1`. Without one, the provider's own.",
        ADDRESS,
        default="",
    )
    prices: str = setting(
        "CLOUDSCHED_MODEL_PRICES",
        "The price in dollars of a million tokens, read and written, such as `0.30/2.50`. Without it, "
        "tokens have no cost.",
        matching(rf"{_DOLLARS}/{_DOLLARS}", "be two numbers of dollars, such as 0.30/2.50"),
        default="",
    )
    timeout: timedelta = setting(
        "CLOUDSCHED_MODEL_TIMEOUT_SECONDS",
        "How long one request to the model may take.",
        seconds_between(0.1, 120),
        default=timedelta(seconds=4),
    )


_MIB = 1024 * 1024
_KIB = 1024

_FILTER = either("required", "best-effort")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox(SettingsSection):
    """The limits of one execution of a script. Sizes are in bytes."""

    memory: int = setting(
        "CLOUDSCHED_SANDBOX_MEMORY_MIB",
        "How many MiB of memory one [script](../guides/scripts.md) may use.",
        whole_number(4096, unit=_MIB),
        default=64 * _MIB,
    )
    time: timedelta = setting(
        "CLOUDSCHED_SANDBOX_SECONDS",
        "How long one script may run. Time that it waits does not count.",
        seconds_between(0.01, 3600),
        default=timedelta(seconds=5),
    )
    output: int = setting(
        "CLOUDSCHED_SANDBOX_OUTPUT_KIB",
        "How many KiB a script's result, its log and the arguments of its tools may have together.",
        whole_number(32 * 1024, unit=_KIB),
        default=256 * _KIB,
    )
    calls: int = setting(
        "CLOUDSCHED_SANDBOX_CALLS",
        "How many calls and sleeps one execution of a script may ask for.",
        whole_number(2000),
        default=100,
    )
    requires_filter: bool = setting(
        "CLOUDSCHED_SANDBOX_FILTER",
        "`required` runs scripts only where the kernel filters their system calls. `best-effort` runs them "
        "elsewhere as well, with a warning, and is refused in the cloud.",
        _FILTER,
        default=True,
    )

    @classmethod
    def from_environment(cls, env: Mapping[str, str]) -> Sandbox:
        """Read the limits from variables. Those that are not set keep their defaults."""
        sandbox = cls(**read_settings(cls, env))
        if not sandbox.requires_filter and "K_SERVICE" in env:
            raise Misconfigured(
                "CLOUDSCHED_SANDBOX_FILTER=best-effort is for machines without secrets; in the cloud it is required."
            )
        return sandbox


_MOST_ADDRESSES: Final = 2


def _parse_addresses(text: str) -> tuple[str, ...]:
    """Return the addresses. No message shows one, because everyone who knows it can silence the alarm."""
    addresses = tuple(text.split())
    if len(addresses) > _MOST_ADDRESSES:
        raise ValueError(f"has {len(addresses)} addresses; it must have one, or one for success and one for failure.")
    for number, address in enumerate(addresses, 1):
        problem = _find_problem(address)
        if problem:
            raise ValueError(f"has an address, number {number}, that {problem}.")
    return addresses


def _find_problem(address: str) -> str:
    try:
        parts = urlsplit(address)
        host = (parts.hostname or "").rstrip(".")
        port = parts.port
    except ValueError:
        return "is not a URL"
    if not host or port == 0 or not (address.isascii() and address.isprintable()):
        return "is not a URL"
    if parts.username is not None or parts.password is not None:
        return "contains a user or a password"
    if parts.scheme != "https" and not (parts.scheme == "http" and _is_near(host)):
        return "is not https; http is for this machine and its own network"
    return ""


def _is_near(host: str) -> bool:
    try:
        return ip_address(host).is_private
    except ValueError:
        return "." not in host  # localhost, or a container's name


MAX_LABEL_KEYS = 3
"""The number of keys that may be named. Each multiplies the number of time series."""
EXECUTE_PATH = "/v1/tasks/execute"
"""The executor's path below its function's address."""

_PREFIX = "CLOUDSCHED_"
_OF_TESTS = "CLOUDSCHED_TEST_"
_OF_COMMANDS = frozenset(
    _PREFIX + name
    for name in "COMMAND COMMIT COMPLETE EMULATOR_KEY KEY PLATFORM_TOKEN REPOSITORY TOKEN URL".split()  # noqa: SIM905 - a word each
)
"""Variables that clients, commands and pipelines read. They are not settings of an app."""
_OF_KUBERNETES = re.compile(r".*_(SERVICE_(HOST|PORT.*)|PORT(_[0-9]+_(TCP|UDP|SCTP).*)?)")
"""The variables that every pod has of a service, if the service is called ``cloudsched`` or ``cloudsched-api``."""
_NO_SENDER = "set it to the address that mail is from, such as ada@example.com."
_DEMO_PROJECT = "demo-cloudsched"
StoreKind = Literal["firestore", "sqlite"]
StoreChoice = Literal["auto", StoreKind]
"""The store of the local stack. ``auto`` takes the Firestore emulator if it is installed or running."""
_NO_STORE = (
    "No store is set, and this is not the cloud, so nothing was opened. In a test: with Simulation(app). In your web "
    'app: embedded(app, "data"). On your machine: {command} dev; in a second terminal, run eval "$({command} dev '
    '--print-env)" first. Really in Google Cloud: set CLOUDSCHED_STORE=firestore and GOOGLE_CLOUD_PROJECT.'
)
_NO_PROJECT = (
    "CLOUDSCHED_STORE is firestore, but GOOGLE_CLOUD_PROJECT is not set. Set it to your project; or, for "
    "Google's Firestore emulator, FIRESTORE_EMULATOR_HOST."
)

MAX_SHARDS = 1_000
MAX_QUEUES_PER_PRIORITY = 200
"""Cloud Tasks allows 1,000 queues in a region (cloud.google.com/tasks/docs/quotas). There are four priorities."""

_YEAR: Final = 365 * 86_400
LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]


def name_own_command() -> str:
    """Return the command that runs cloudsched in the user's terminal."""
    from cloudsched.config.own_command import find_own_command  # noqa: PLC0415 - shutil takes as long as ten modules

    return find_own_command(os.environ)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The store, the queue and all other settings of one app.

    The documentation of each field stands beside it, and in ``docs/reference/settings.md``. `store` None is
    Firestore in the cloud and where its emulator is named. Elsewhere it is no store at all, so that nothing
    reaches production by accident. See `require_store`.

    Attributes:
        access: The callers of the API, and their quotas.
        sandbox: The limits of one script.
        prices: The prices of operations.
        model: The language model that is used, and its parameters.
        assistant: The permission for that model to do tasks, and the limits of one execution.
        is_deployed: True if this is a function or service in the cloud (``K_SERVICE`` is set).
        service: The name under which Error Reporting shows this program's errors.
        service_version: The version of that service.
    """

    project: str = setting(
        "GOOGLE_CLOUD_PROJECT",
        "The Google Cloud project of the store and the queue.",
        default=_DEMO_PROJECT,
    )
    location: str = setting(
        "CLOUDSCHED_LOCATION",
        "The region of the Cloud Tasks queues.",
        default="us-central1",
    )
    queue: str = setting(
        "CLOUDSCHED_QUEUE",
        "The id of the Cloud Tasks queue. Those of the other priorities begin with it.",
        default="cloudsched",
    )
    shards: int = setting(
        "CLOUDSCHED_SHARDS",
        "Over how many ranges of Firestore's indexes tasks are spread, up to 1000. Firestore takes some 500 "
        "writes a second into each. [Capacity](../run/capacity.md) says how many you need and how to raise "
        "it. Never lower it.",
        whole_number(MAX_SHARDS),
        default=1,
    )
    name_index: bool = setting(
        "CLOUDSCHED_NAME_INDEX",
        "`on` stores the beginnings of the words of each task's names in Firestore, so that a "
        "[search](../run/dashboard.md#find-what-you-look-for) finds them among all tasks. "
        "[Costs](../run/costs.md#an-index-of-names) says what that costs. Tasks that are stored already get them when "
        "they are written next. In SQLite every part of a name is found without it.",
        SWITCH,
        default=False,
    )
    queues_per_priority: int = setting(
        "CLOUDSCHED_QUEUES_PER_PRIORITY",
        "How many Cloud Tasks queues share the load of each priority, up to 200. Each delivers 500 calls a "
        "second. `QUEUES_PER_PRIORITY` in `infra/config.sh` sets it and makes the "
        "[queues](../run/capacity.md).",
        whole_number(MAX_QUEUES_PER_PRIORITY),
        default=1,
    )
    queue_admin: bool = setting(
        "CLOUDSCHED_QUEUE_ADMIN",
        "`on` lets admins look at the queues in Cloud Tasks through the API, and pause, change and purge "
        "them. `QUEUE_ADMIN` in `infra/config.sh` sets it and grants [the role](../run/operate.md#queues). "
        "A local Cloud Tasks needs neither.",
        SWITCH,
        default=False,
    )
    executor_url: str = setting(
        "CLOUDSCHED_EXECUTOR_URL",
        "The address of the `execute` function, without a path.",
        ADDRESS,
        default="",
        shown_default="**required**",
    )
    public_url: str = setting(
        "CLOUDSCHED_PUBLIC_URL",
        "The address at which people reach the API, with the path that you mount it under. Links in mails "
        "and [calendar feeds](../guides/calendars.md) begin with it. Without one, mails have codes instead "
        "of links and feeds cannot be made. An open API uses the address of the request.",
        ADDRESS,
        default="",
    )
    secret: str = setting(
        "CLOUDSCHED_SECRET",
        "The secret that signs calls to the executor, with at least 16 characters.",
        default="",
        is_secret=True,
        shown_default="**required**",
    )
    previous_secret: str | None = setting(
        "CLOUDSCHED_PREVIOUS_SECRET",
        "The secret before, which the executor still accepts during a rotation.",
        default=None,
        is_secret=True,
    )
    store: StoreKind | None = setting(
        "CLOUDSCHED_STORE",
        "`firestore` or `sqlite`.",
        choice_of(*get_args(StoreKind)),
        default=None,
        shown_default="`firestore` on Cloud Run and with its emulator, else none",
    )
    database: str = setting(
        "CLOUDSCHED_DATABASE",
        "The id of the Firestore database.",
        default="(default)",
    )
    collection_prefix: str = setting(
        "CLOUDSCHED_COLLECTION_PREFIX",
        "With what the ids of all Firestore collections begin, for a database that "
        "[an app of yours has](../run/deploy.md#in-the-database-of-your-app). Never change it.",
        matching(r"([a-z][a-z0-9_]{0,38}_)?", "it must be lowercase letters, digits and _, and end with _"),
        default="",
    )
    data: Path | None = setting(
        "CLOUDSCHED_DATA",
        "The SQLite file. Without one, everything is kept in memory. `cloudsched serve` has a folder instead.",
        PATH,
        default=None,
    )
    tasks_emulator: str | None = setting(
        "CLOUD_TASKS_EMULATOR_HOST",
        "`host:port` of a [local Cloud Tasks](resources.md#the-local-cloud-tasks), whose clock is then used.",
        default=None,
    )
    firestore_emulator: str | None = setting(
        "FIRESTORE_EMULATOR_HOST",
        "`host:port` of Google's Firestore emulator.",
        default=None,
    )
    invoker: str | None = setting(
        "CLOUDSCHED_INVOKER",
        "The service account as which the queue calls Cloud Run (OIDC).",
        default=None,
    )
    smtp_url: str | None = setting(
        "CLOUDSCHED_SMTP_URL",
        "The mail server that sends [results](../guides/delivery.md): `smtps://user:password@host:465`, or "
        "`smtp://user:password@host:587` for STARTTLS.",
        MAIL_SERVER,
        default=None,
        is_secret=True,
    )
    mail_from: str = setting(
        "CLOUDSCHED_MAIL_FROM",
        "The sender of mails, such as `Ada <ada@example.com>`. Required with `CLOUDSCHED_SMTP_URL`.",
        MAIL_SENDER,
        default="",
    )
    mail_idempotency_header: str | None = setting(
        "CLOUDSCHED_MAIL_IDEMPOTENCY_HEADER",
        "The header by which your mail provider drops repeated mails, such as `Resend-Idempotency-Key`.",
        default=None,
    )
    fcm_project: str | None = setting(
        "CLOUDSCHED_FCM_PROJECT",
        "The Firebase project whose apps get [pushes](../guides/delivery.md). Without one, nothing is pushed.",
        default=None,
    )
    apprise_urls: tuple[str, ...] = setting(
        "CLOUDSCHED_APPRISE_URLS",
        "Your team's own channels for `OPERATOR`, as [Apprise](../guides/delivery.md) writes them, "
        "separated by spaces. Needs the extra `apprise`.",
        CHANNELS,
        default=(),
        is_secret=True,
    )
    telegram_bot: tuple[str, ...] = setting(
        "CLOUDSCHED_TELEGRAM_BOT",
        "The token of your bot in [Telegram](../guides/delivery.md#send-to-telegram-and-slack) and, after a space, the "
        "secret that you give `setWebhook`, with at least 16 characters.",
        TELEGRAM_BOT,
        default=(),
        is_secret=True,
    )
    slack_app: tuple[str, ...] = setting(
        "CLOUDSCHED_SLACK_APP",
        "The bot token of your app in [Slack](../guides/delivery.md#send-to-telegram-and-slack), `xoxb-…` and, after a "
        "space, its signing secret.",
        SLACK_APP,
        default=(),
        is_secret=True,
    )
    preferred_channels: bool | None = setting(
        "CLOUDSCHED_PREFERRED_CHANNELS",
        "`on` gives a new task that names no `deliveryChannels` those that its owner "
        "[prefers](../guides/delivery.md), at the cost of one more read.",
        ANSWER,
        default=None,
        shown_default="`on` where mail, pushes or chats are set up",
    )
    default_lead: timedelta = setting(
        "CLOUDSCHED_DEFAULT_LEAD_SECONDS",
        "How long from now a [draft](../guides/plain-language.md) runs whose words name no time. Tasks that "
        "are no drafts run at once.",
        seconds_between(0, _YEAR),
        default=timedelta(minutes=5),
    )
    minimum_lead: timedelta = setting(
        "CLOUDSCHED_MINIMUM_LEAD_SECONDS",
        "The shortest time between the creation of a task and its first run.",
        seconds_between(0, _YEAR),
        default=timedelta(0),
    )
    draft_least_lead: timedelta = setting(
        "CLOUDSCHED_DRAFT_LEAST_LEAD_SECONDS",
        "The shortest time between a [draft](../guides/plain-language.md) of a single run and that run, so "
        "that people can read and confirm it.",
        seconds_between(0, _YEAR),
        default=timedelta(seconds=30),
    )
    default_time: time = setting(
        "CLOUDSCHED_DEFAULT_TIME",
        "The time of day, such as `08:30`, of [plain words](../guides/plain-language.md) that name a day "
        "and no time "
        '("every Monday").',
        TIME_OF_DAY,
        default=time(9),
    )
    default_calendar: str | None = setting(
        "CLOUDSCHED_DEFAULT_CALENDAR",
        "The id of the [calendar](../guides/calendars.md) that plain words mean by holidays and business days.",
        CALENDAR_ID,
        default=None,
    )
    fallback: bool = setting(
        "CLOUDSCHED_FALLBACK",
        "`on` lets the sweep run due tasks itself while the queue cannot be reached. Give the sweep "
        "function the time that your handlers need.",
        SWITCH,
        default=False,
    )
    retention: timedelta | None = setting(
        "CLOUDSCHED_RETENTION_DAYS",
        "How many days an ended task is kept with its executions, or `never` to keep it for good. A "
        "`retention` of a task or handler comes first.",
        DAYS,
        default=timedelta(days=400),
    )
    bucket: str | None = setting(
        "CLOUDSCHED_BUCKET",
        "The Cloud Storage bucket for results that are too large for a document. Without one, they are "
        "files beside the SQLite store.",
        default=None,
    )
    time_limit: timedelta = setting(
        "CLOUDSCHED_TIME_LIMIT_SECONDS",
        "How long one call of the executor may take, from 1. A durable handler goes on in another call before that.",
        seconds_between(1, _YEAR),
        default=timedelta(minutes=9),
    )
    kept_logs: str = setting(
        "CLOUDSCHED_KEPT_LOGS",
        "The lowest level of handlers' log lines that are kept with their executions. `off` keeps none.",
        choice_of("off", "debug", "info", "warning", "error"),
        default="info",
    )
    keeps_print: bool = setting(
        "CLOUDSCHED_KEEPS_PRINT",
        "`on` also keeps what handlers print, as lines of `INFO`. It replaces `print` in the handlers' process.",
        SWITCH,
        default=False,
    )
    replays_each_step: bool = setting(
        "CLOUDSCHED_REPLAYS_EACH_STEP",
        "`on` replays durable handlers at every durable point, for tests.",
        SWITCH,
        default=False,
    )
    log_level: LogLevel = setting(
        "CLOUDSCHED_LOG_LEVEL",
        "The lowest severity that a deployed function logs: `DEBUG`, `INFO`, `WARNING`, `ERROR` or "
        "`CRITICAL`. `WARNING` leaves out the lines of runs that succeed, which [some alerts "
        "need](../run/costs.md). OpenTelemetry metrics stay complete.",
        choice_of(*get_args(LogLevel)),
        default="INFO",
    )
    metric_labels: tuple[str, ...] = setting(
        "CLOUDSCHED_METRIC_LABELS",
        "The keys of tasks' labels by which [OpenTelemetry metrics](resources.md#traces-and-metrics) are "
        "broken down, at most 3, separated by spaces.",
        words_matching(
            r"[a-z][a-z0-9_.-]{0,62}",
            "each must be the key of a label, such as team",
            most=MAX_LABEL_KEYS,
        ),
        default=(),
    )
    sweep_ping: tuple[str, ...] = setting(
        "CLOUDSCHED_SWEEP_PING",
        "The address of a [dead-man's switch](../run/dashboard.md) that is called after each good sweep. "
        "After a space, one for bad sweeps. Keep both secret, because anybody who knows them can silence "
        "the alarm.",
        Kind(_parse_addresses, " ".join),
        default=(),
        is_secret=True,
    )
    access: Access = field(default_factory=Access)
    sandbox: Sandbox = field(default_factory=Sandbox)
    prices: Prices = field(default_factory=Prices)
    model: ModelSettings = field(default_factory=ModelSettings)
    assistant: AssistantSettings = field(default_factory=AssistantSettings)
    is_deployed: bool = False
    service: str = "cloudsched"
    service_version: str = ""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Read the settings from environment variables.

        Raises:
            Misconfigured: A variable cannot be understood, or has our prefix but is not a setting. The message names
                it.
        """
        env = os.environ if environment is None else environment
        sections: dict[str, Any] = {name: section.from_environment(env) for name, section in _SECTIONS.items()}
        settings = cls(
            **read_settings(cls, env),
            **sections,
            is_deployed="K_SERVICE" in env,
            service=env.get("K_SERVICE") or "cloudsched",
            service_version=env.get("K_REVISION", ""),
        )
        _require_known(env, settings._to_variables())
        if settings.smtp_url and not settings.mail_from:
            raise Misconfigured(f"CLOUDSCHED_SMTP_URL is set, and CLOUDSCHED_MAIL_FROM is not: {_NO_SENDER}")
        return settings

    @property
    def allows_http(self) -> bool:
        """Return whether webhooks may use plain HTTP: only on a developer's machine."""
        return self.access.open and not self.is_deployed

    @property
    def reads_preferences(self) -> bool:
        """Return whether owners' preferences give new tasks their channels."""
        if self.preferred_channels is not None:
            return self.preferred_channels
        return bool(self.smtp_url or self.fcm_project or self.telegram_bot or self.slack_app)

    def require_store(self) -> StoreKind:
        """Return the kind of store to open. Outside the cloud, Google's Firestore needs an explicit setting."""
        if self.store == "sqlite":
            return "sqlite"
        if not self.is_deployed and not self.firestore_emulator:
            if self.store is None:
                raise Misconfigured(_NO_STORE.format(command=name_own_command()))
            if self.project == _DEMO_PROJECT:
                raise Misconfigured(_NO_PROJECT)
        return "firestore"

    def to_environment(self) -> dict[str, str]:
        """Return the variables from which `from_environment` reads these settings again."""
        return {name: value for name, value in self._to_variables().items() if value}

    @property
    def unset_variables(self) -> tuple[str, ...]:
        """Return the variables that must not be set where `from_environment` is to read these settings."""
        return tuple(name for name, value in self._to_variables().items() if not value)

    def to_child_environment(self, **more: str) -> dict[str, str]:
        """Return this process's environment, with these settings and `more` in place of its own variables."""
        ours = self._to_variables()
        theirs = {name: value for name, value in os.environ.items() if name not in ours}
        return {**theirs, **self.to_environment(), **more}

    def _to_variables(self) -> dict[str, str | None]:
        written = write_settings(self)
        for name in _SECTIONS:
            written |= getattr(self, name).to_variables()
        return {**written, "K_SERVICE": None, "K_REVISION": None}  # only the cloud sets these two


_SECTIONS: Final[Mapping[str, type[SettingsSection]]] = {
    "access": Access,
    "sandbox": Sandbox,
    "prices": Prices,
    "model": ModelSettings,
    "assistant": AssistantSettings,
}


def is_firebase_emulated() -> bool:
    """Return whether Google's library, which reads this variable, accepts unsigned tokens in this process."""
    return bool(os.environ.get("FIREBASE_AUTH_EMULATOR_HOST"))


def _require_known(env: Mapping[str, str], known: Collection[str]) -> None:
    """Check that no variable is a misspelt setting, which would be ignored without notice."""
    ours = [name for name in env if name.startswith(_PREFIX) and name not in known]
    for name in ours:
        if name in _OF_COMMANDS or name.startswith(_OF_TESTS) or _OF_KUBERNETES.fullmatch(name):
            continue
        from difflib import get_close_matches  # noqa: PLC0415 - only where something is wrong

        near = get_close_matches(name, known, n=1, cutoff=0.8)
        hint = f"did you mean {near[0]}?" if near else "docs/reference/settings.md lists them."
        raise Misconfigured(f"{name} is no setting of cloudsched: {hint} Names that begin with {_PREFIX} are its own.")


def count_server_threads() -> int:
    """Return how many threads the web server of this process has, as ``THREADS`` says. 0 if nothing does."""
    threads = os.environ.get("THREADS", "")
    return int(threads) if threads.isdecimal() else 0
