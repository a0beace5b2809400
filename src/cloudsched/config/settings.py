"""The settings: one frozen object, read once from the environment and passed down.

This is the only module that reads the environment. ``docs/reference/configuration.md`` lists every
variable in a table.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from datetime import time, timedelta
from typing import TYPE_CHECKING, Literal, get_args

from cloudsched.config.access import Access
from cloudsched.config.features import (
    AssistantSettings,
    DraftSettings,
    ModelSettings,
    Prices,
    Sandbox,
    SweepAlarmSettings,
)
from cloudsched.config.variables import (
    ADDRESS,
    ANSWER,
    CALENDAR_ID,
    CHANNELS,
    DAYS,
    MAIL_SENDER,
    MAIL_SERVER,
    PATH,
    POSITIVE_SECONDS,
    SECONDS,
    SWITCH,
    TIME_OF_DAY,
    Kind,
    SettingsSection,
    choice_of,
    read_settings,
    setting,
    whole_number,
    write_settings,
)
from cloudsched.errors import Misconfigured

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path


MAX_LABEL_KEYS = 3
"""How many keys may be named: each multiplies the number of time series."""
_KEY = re.compile(r"[a-z][a-z0-9_.-]{0,62}")


def _parse_keys(text: str) -> tuple[str, ...]:
    keys = tuple(dict.fromkeys(text.split()))
    wrong = next((each for each in keys if not _KEY.fullmatch(each)), None)
    if wrong is not None:
        raise ValueError(f"has {wrong!r}; each must be the key of a label, such as team.")
    if len(keys) > MAX_LABEL_KEYS:
        raise ValueError(f"has {len(keys)} keys; there may be {MAX_LABEL_KEYS}: each multiplies what metrics cost.")
    return keys


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSettings(SettingsSection):
    """Which labels of tasks metrics have.

    The documentation of each field stands beside it, and in ``docs/reference/configuration.md``.
    """

    label_keys: tuple[str, ...] = setting(
        "CLOUDSCHED_METRIC_LABELS",
        "the keys of tasks' labels that [OpenTelemetry metrics](logs.md#traces-and-metrics) are broken down by, "
        "at most 3, separated by spaces",
        Kind(_parse_keys, " ".join),
        default=(),
    )


EXECUTE_PATH = "/v1/tasks/execute"
"""The executor's path below its function's address."""


_PREFIX = "CLOUDSCHED_"
_OF_TESTS = "CLOUDSCHED_TEST_"
_OF_COMMANDS = frozenset(
    _PREFIX + name
    for name in "COMMIT COMPLETE EMULATOR_KEY KEY MCP_BEARER PLATFORM_TOKEN REPOSITORY TOKEN URL".split()  # noqa: SIM905 - a word each
)
"""Variables that clients, commands and pipelines read: they are no settings of an app."""
_OF_KUBERNETES = re.compile(r".*_(SERVICE_(HOST|PORT.*)|PORT(_[0-9]+_(TCP|UDP|SCTP).*)?)")
"""What every pod beside a service finds, here of one that is called ``cloudsched`` or ``cloudsched-api``."""
_NO_SENDER = "set it to the address that mail is from, such as ada@example.com."
_DEMO_PROJECT = "demo-cloudsched"
StoreKind = Literal["firestore", "sqlite"]
_NO_STORE = (
    "No store is set, and this is not the cloud, so nothing was opened. In a test: with Simulation(app). On your "
    'machine: cloudsched dev; in a second terminal, run eval "$(cloudsched dev --print-env)" first. Really in Google '
    "Cloud: set CLOUDSCHED_STORE=firestore and GOOGLE_CLOUD_PROJECT."
)
_NO_PROJECT = (
    "CLOUDSCHED_STORE is firestore, but GOOGLE_CLOUD_PROJECT is not set. Set it to your project; or, for Google's "
    "Firestore emulator, FIRESTORE_EMULATOR_HOST."
)

MAX_SHARDS = 1_000
MAX_QUEUES_PER_PRIORITY = 200
"""Cloud Tasks allows 1,000 queues in a region (cloud.google.com/tasks/docs/quotas); there are four priorities."""

LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How one app reaches its store, its queue and its users.

    The documentation of each field stands beside it, and in ``docs/reference/configuration.md``. `store` None is
    Firestore in the cloud and where its emulator is named, and else no store at all, so that nothing reaches production
    by accident; see `require_store`.

    Attributes:
        access: Who may use the API, and how much.
        sandbox: How much one script may use.
        prices: What things cost.
        drafts: How soon and how often what is drafted may run.
        model: Which language model is asked, and how.
        assistant: Whether tasks may be done by that model, and how much one execution may use.
        sweep_alarm: Whom the sweep tells that it runs.
        is_deployed: Whether this is a function or service in the cloud (``K_SERVICE`` is set).
        service: The name under which Error Reporting shows this program's errors.
        service_version: The version of that service.
    """

    project: str = setting(
        "GOOGLE_CLOUD_PROJECT",
        "the project of the store and the queue",
        default=_DEMO_PROJECT,
    )
    location: str = setting(
        "CLOUDSCHED_LOCATION",
        "the queue's region",
        default="us-central1",
    )
    queue: str = setting(
        "CLOUDSCHED_QUEUE",
        "the queue's id",
        default="cloudsched",
    )
    shards: int = setting(
        "CLOUDSCHED_SHARDS",
        "over how many ranges of Firestore's indexes tasks are spread, up to 1000: Firestore takes some 500 writes a "
        "second into each. [How many](../explanation/scale.md) depends on the rate. Raise it as the "
        "[guide](../how-to/capacity.md#more-shards) says; never lower it",
        whole_number(MAX_SHARDS),
        default=1,
    )
    queues_per_priority: int = setting(
        "CLOUDSCHED_QUEUES_PER_PRIORITY",
        "over how many queues the dispatches of each priority are spread, up to 200; Cloud Tasks delivers 500 a second "
        "from each. `infra/deploy.sh` sets it from `QUEUES_PER_PRIORITY`, and makes the "
        "[queues](../how-to/capacity.md#more-queues)",
        whole_number(MAX_QUEUES_PER_PRIORITY),
        default=1,
    )
    executor_url: str = setting(
        "CLOUDSCHED_EXECUTOR_URL",
        "the address of the `execute` function, without a path",
        ADDRESS,
        default="",
        shown_default="**required**",
    )
    public_url: str = setting(
        "CLOUDSCHED_PUBLIC_URL",
        "the address under which people and their programs reach the API, with the path that it is mounted under: what "
        "links and [feeds](../how-to/calendars.md) begin with; without one, mails have codes and no links, and no feed "
        "can be made, except where the API is open: there, the address of the request",
        ADDRESS,
        default="",
    )
    secret: str = setting(
        "CLOUDSCHED_SECRET",
        "the secret that signs dispatches; at least 16 characters",
        default="",
        is_secret=True,
        shown_default="**required**",
    )
    previous_secret: str | None = setting(
        "CLOUDSCHED_PREVIOUS_SECRET",
        "the previous secret, still accepted during a rotation",
        default=None,
        is_secret=True,
    )
    store: StoreKind | None = setting(
        "CLOUDSCHED_STORE",
        "`firestore` or `sqlite`",
        choice_of(*get_args(StoreKind)),
        default=None,
        shown_default="`firestore` in the cloud, and where its emulator is named; else none",
    )
    database: str = setting(
        "CLOUDSCHED_DATABASE",
        "the Firestore database",
        default="(default)",
    )
    data: Path | None = setting(
        "CLOUDSCHED_DATA",
        "the SQLite file; without one, everything is kept in memory",
        PATH,
        default=None,
    )
    tasks_emulator: str | None = setting(
        "CLOUD_TASKS_EMULATOR_HOST",
        "`host:port` of a local Cloud Tasks, whose clock is then used",
        default=None,
    )
    firestore_emulator: str | None = setting(
        "FIRESTORE_EMULATOR_HOST",
        "`host:port` of Google's Firestore emulator",
        default=None,
    )
    invoker: str | None = setting(
        "CLOUDSCHED_INVOKER",
        "the service account with which the queue authenticates to Cloud Run (OIDC)",
        default=None,
    )
    requires_delivery: bool = setting(
        "CLOUDSCHED_REQUIRE_DELIVERY",
        "`on`: an execution whose result would reach nobody by a channel that its task names, for want of an address "
        "or of a mail server, has failed. `off`: it has succeeded, and its record says what was not delivered",
        SWITCH,
        default=False,
    )
    smtp_url: str | None = setting(
        "CLOUDSCHED_SMTP_URL",
        "the mail server that sends [results](../how-to/email.md): `smtps://user:password@host:465`, or "
        "`smtp://user:password@host:587` for STARTTLS",
        MAIL_SERVER,
        default=None,
        is_secret=True,
    )
    mail_from: str = setting(
        "CLOUDSCHED_MAIL_FROM",
        "whom mail is from, such as `Ada <ada@example.com>`; required with `CLOUDSCHED_SMTP_URL`",
        MAIL_SENDER,
        default="",
    )
    mail_idempotency_header: str | None = setting(
        "CLOUDSCHED_MAIL_IDEMPOTENCY_HEADER",
        "the header by which the mail provider drops repeats, such as `Resend-Idempotency-Key`",
        default=None,
    )
    fcm_project: str | None = setting(
        "CLOUDSCHED_FCM_PROJECT",
        "the Firebase project whose apps get [pushes](../how-to/push.md); without one, there are none",
        default=None,
    )
    fcm_url: str = setting(
        "CLOUDSCHED_FCM_URL",
        "where Firebase Cloud Messaging is; `http://` on this machine, for tests",
        ADDRESS,
        default="https://fcm.googleapis.com",
    )
    apprise_urls: tuple[str, ...] = setting(
        "CLOUDSCHED_APPRISE_URLS",
        "your own channels for `OPERATOR`, as [Apprise](delivery.md) writes them, separated by spaces; needs "
        "`cloudsched[apprise]`",
        CHANNELS,
        default=(),
        is_secret=True,
    )
    preferred_channels: bool | None = setting(
        "CLOUDSCHED_PREFERRED_CHANNELS",
        "`on`: a new task that names no `deliveryChannels` gets those that its owner [prefers](../how-to/people.md), "
        "at the cost of one more read",
        ANSWER,
        default=None,
        shown_default="`on` where mail or pushes are set up",
    )
    default_lead: timedelta = setting(
        "CLOUDSCHED_DEFAULT_LEAD_SECONDS",
        "how long from now a [draft](../how-to/drafts.md) runs if its words name no time; elsewhere that is now",
        SECONDS,
        default=timedelta(minutes=5),
    )
    minimum_lead: timedelta = setting(
        "CLOUDSCHED_MINIMUM_LEAD_SECONDS",
        "the shortest time between a creation and its first run",
        SECONDS,
        default=timedelta(0),
    )
    default_time: time = setting(
        "CLOUDSCHED_DEFAULT_TIME",
        'the time of day of a schedule in [plain words](language.md) that names a day and no time ("every '
        'Monday"), as `08:30`',
        TIME_OF_DAY,
        default=time(9),
    )
    default_calendar: str | None = setting(
        "CLOUDSCHED_DEFAULT_CALENDAR",
        "the id of the [calendar](../how-to/holidays.md) that plain words mean by holidays and business days",
        CALENDAR_ID,
        default=None,
    )
    fallback: bool = setting(
        "CLOUDSCHED_FALLBACK",
        "`on`: while the queue cannot be reached, the sweep hands due dispatches to the executor itself. "
        "Give the sweep function the time that your handlers need",
        SWITCH,
        default=False,
    )
    retention: timedelta | None = setting(
        "CLOUDSCHED_RETENTION_DAYS",
        "how long an ended task is kept with its executions; a number, or `never`. "
        "Tasks and handlers with a `retention` of their own keep to that",
        DAYS,
        default=timedelta(days=400),
    )
    bucket: str | None = setting(
        "CLOUDSCHED_BUCKET",
        "the Cloud Storage bucket for results that are too large for a document; without one, they are "
        "stored as files beside the SQLite store",
        default=None,
    )
    time_limit: timedelta = setting(
        "CLOUDSCHED_TIME_LIMIT_SECONDS",
        "how long the executor function may run, greater than 0; a durable handler continues in another "
        "call of the function before that",
        POSITIVE_SECONDS,
        default=timedelta(minutes=9),
    )
    kept_logs: str = setting(
        "CLOUDSCHED_KEPT_LOGS",
        "from which level on what handlers log is kept with their executions; `off` keeps nothing",
        choice_of("off", "debug", "info", "warning", "error"),
        default="info",
    )
    replays_each_step: bool = setting(
        "CLOUDSCHED_REPLAYS_EACH_STEP",
        "`on` replays durable handlers at every durable point, for testing",
        SWITCH,
        default=False,
    )
    log_level: LogLevel = setting(
        "CLOUDSCHED_LOG_LEVEL",
        "the lowest severity of the lines that a deployed function writes: `DEBUG`, `INFO`, `WARNING`, "
        "`ERROR` or `CRITICAL`. `WARNING` leaves out the lines of an occurrence that succeeds, and [some "
        "alerts need those](../explanation/costs.md#prices); OpenTelemetry metrics stay complete",
        choice_of(*get_args(LogLevel)),
        default="INFO",
    )
    access: Access = field(default_factory=Access)
    sandbox: Sandbox = field(default_factory=Sandbox)
    prices: Prices = field(default_factory=Prices)
    drafts: DraftSettings = field(default_factory=DraftSettings)
    model: ModelSettings = field(default_factory=ModelSettings)
    assistant: AssistantSettings = field(default_factory=AssistantSettings)
    metrics: MetricSettings = field(default_factory=MetricSettings)
    sweep_alarm: SweepAlarmSettings = field(default_factory=SweepAlarmSettings)
    is_deployed: bool = False
    service: str = "cloudsched"
    service_version: str = ""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Read the settings from environment variables.

        Raises:
            Misconfigured: A variable cannot be understood, or its name begins like one of ours and is none. The message
                names it.
        """
        env = os.environ if environment is None else environment
        settings = cls(
            **read_settings(cls, env),
            access=Access.from_environment(env),
            sandbox=Sandbox.from_environment(env),
            prices=Prices.from_environment(env),
            drafts=DraftSettings.from_environment(env),
            model=ModelSettings.from_environment(env),
            assistant=AssistantSettings.from_environment(env),
            metrics=MetricSettings.from_environment(env),
            sweep_alarm=SweepAlarmSettings.from_environment(env),
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
        """Return whether webhooks may be without TLS: on a developer's machine."""
        return self.access.open and not self.is_deployed

    @property
    def reads_preferences(self) -> bool:
        """Return whether owners' preferences give new tasks their channels."""
        if self.preferred_channels is not None:
            return self.preferred_channels
        return self.smtp_url is not None or self.fcm_project is not None

    def require_store(self) -> StoreKind:
        """Return which store to open.

        Raises:
            Misconfigured: It would be Google's own Firestore, outside the cloud, and nobody has asked for that.
        """
        if self.store == "sqlite":
            return "sqlite"
        if not self.is_deployed and not self.firestore_emulator:
            if self.store is None:
                raise Misconfigured(_NO_STORE)
            if self.project == _DEMO_PROJECT:
                raise Misconfigured(_NO_PROJECT)
        return "firestore"

    def to_environment(self) -> dict[str, str]:
        """Return the variables from which `from_environment` reads these settings again."""
        return {name: value for name, value in self._to_variables().items() if value}

    @property
    def unset_variables(self) -> tuple[str, ...]:
        """The variables that must not be set where `from_environment` is to read these settings."""
        return tuple(name for name, value in self._to_variables().items() if not value)

    def to_child_environment(self, **more: str) -> dict[str, str]:
        """Return this process's environment, with these settings in place of what it says about them, and `more`."""
        ours = self._to_variables()
        theirs = {name: value for name, value in os.environ.items() if name not in ours}
        return {**theirs, **self.to_environment(), **more}

    def _to_variables(self) -> dict[str, str | None]:
        return {
            **write_settings(self),
            **self.access.to_variables(),
            **self.sandbox.to_variables(),
            **self.prices.to_variables(),
            **self.drafts.to_variables(),
            **self.model.to_variables(),
            **self.assistant.to_variables(),
            **self.metrics.to_variables(),
            **self.sweep_alarm.to_variables(),
            "K_SERVICE": None,  # only the cloud sets these two
            "K_REVISION": None,
        }


def is_firebase_emulated() -> bool:
    """Return whether Google's library, which reads this variable itself, accepts unsigned tokens in this process."""
    return bool(os.environ.get("FIREBASE_AUTH_EMULATOR_HOST"))


def _require_known(env: Mapping[str, str], known: Collection[str]) -> None:
    """Check that no variable is a misspelt setting, which would be ignored for as long as nobody looks."""
    ours = [name for name in env if name.startswith(_PREFIX) and name not in known]
    for name in ours:
        if name in _OF_COMMANDS or name.startswith(_OF_TESTS) or _OF_KUBERNETES.fullmatch(name):
            continue
        from difflib import get_close_matches  # noqa: PLC0415 - only where something is wrong

        near = get_close_matches(name, known, n=1, cutoff=0.8)
        hint = f"did you mean {near[0]}?" if near else "docs/reference/configuration.md lists them."
        raise Misconfigured(f"{name} is no setting of cloudsched: {hint} Names that begin with {_PREFIX} are its own.")
