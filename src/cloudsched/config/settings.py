"""The settings: one frozen object, read once from the environment and passed down.

This is the only module that reads the environment. Every variable is listed in the table of ``docs/configuration.md``.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from datetime import time, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast, get_args

from cloudsched.config.access import Access
from cloudsched.config.sandbox import Sandbox
from cloudsched.errors import Misconfigured

if TYPE_CHECKING:
    from collections.abc import Mapping

EXECUTE_PATH = "/v1/tasks/execute"
"""The executor's path below its function's address."""


_DAY = timedelta(days=1)
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

LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How one app reaches its store, its queue and its users.

    Attributes:
        project: The Google Cloud project of the store and the queue.
        location: The queue's region.
        queue: The queue's short id.
        executor_url: The executor function's address, without a path.
        secret: The key that signs dispatches.
        previous_secret: The previous key, still accepted.
        store: ``firestore`` or ``sqlite``; None is Firestore in the cloud and where its emulator is named, and else no
            store at all, so that nothing reaches production by accident; see `require_store`.
        database: The Firestore database.
        data: The SQLite file; None keeps everything in memory.
        tasks_emulator: ``host:port`` of a local Cloud Tasks, whose clock the app then follows.
        firestore_emulator: ``host:port`` of Google's Firestore emulator.
        invoker: The service account that the queue authenticates to Cloud Run with (OIDC); None for none.
        default_lead: How long from now a task runs if its caller gives no time.
        minimum_lead: The least time between a task's creation and its first run.
        default_time: The time of day of a schedule in plain words that names a day and no time.
        fallback: Whether the sweep delivers due dispatches to the executor itself while the queue cannot be reached.
        retention: How long finished tasks are kept if their callers do not say; None for ever.
        bucket: The Cloud Storage bucket for results too large for a document; None keeps them in local files.
        time_limit: How long the executor function may run; a durable handler is suspended before that.
        replays_each_step: Whether durable handlers are suspended at every durable point, to test that they replay the
            same.
        log_level: The lowest severity of the lines that a deployed function logs; metrics count the others, too.
        access: Who may use the API, and how much.
        sandbox: How much one script may use.
        is_deployed: Whether this is a function or service in the cloud (``K_SERVICE`` is set).
        service: The name under which Error Reporting shows this program's errors.
        service_version: The version of that service.
    """

    project: str = _DEMO_PROJECT
    location: str = "us-central1"
    queue: str = "cloudsched"
    executor_url: str = ""
    secret: str = field(default="", repr=False)
    previous_secret: str | None = field(default=None, repr=False)
    store: StoreKind | None = None
    database: str = "(default)"
    data: Path | None = None
    tasks_emulator: str | None = None
    firestore_emulator: str | None = None
    invoker: str | None = None
    default_lead: timedelta = timedelta(minutes=5)
    minimum_lead: timedelta = timedelta(0)
    default_time: time = time(9)
    fallback: bool = False
    retention: timedelta | None = timedelta(days=7)
    bucket: str | None = None
    time_limit: timedelta = timedelta(minutes=9)
    replays_each_step: bool = False
    log_level: LogLevel = "INFO"
    access: Access = field(default_factory=Access)
    sandbox: Sandbox = field(default_factory=Sandbox)
    is_deployed: bool = False
    service: str = "cloudsched"
    service_version: str = ""

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str] | None = None, defaults: Settings | None = None
    ) -> Settings:
        """Read the settings from environment variables; what is not set is as in `defaults`.

        Raises:
            Misconfigured: A variable cannot be understood. The message names it.
        """
        env = os.environ if environment is None else environment
        defaults = defaults or cls()
        store = env.get("CLOUDSCHED_STORE") or None
        if store not in {"firestore", "sqlite", None}:
            raise Misconfigured(f"CLOUDSCHED_STORE is {store!r}; it must be firestore or sqlite.")
        data = env.get("CLOUDSCHED_DATA")
        return cls(
            project=env.get("GOOGLE_CLOUD_PROJECT") or defaults.project,
            location=env.get("CLOUDSCHED_LOCATION", defaults.location),
            queue=env.get("CLOUDSCHED_QUEUE", defaults.queue),
            executor_url=env.get("CLOUDSCHED_EXECUTOR_URL", "").rstrip("/"),
            secret=env.get("CLOUDSCHED_SECRET", "").strip(),
            previous_secret=env.get("CLOUDSCHED_PREVIOUS_SECRET", "").strip() or None,
            store=cast("StoreKind | None", store),
            database=env.get("CLOUDSCHED_DATABASE", defaults.database),
            data=Path(data) if data else None,
            tasks_emulator=env.get("CLOUD_TASKS_EMULATOR_HOST") or None,
            firestore_emulator=env.get("FIRESTORE_EMULATOR_HOST") or None,
            invoker=env.get("CLOUDSCHED_INVOKER") or None,
            default_lead=_parse_seconds(env, "CLOUDSCHED_DEFAULT_LEAD_SECONDS", defaults.default_lead),
            minimum_lead=_parse_seconds(env, "CLOUDSCHED_MINIMUM_LEAD_SECONDS", defaults.minimum_lead),
            default_time=_parse_time(env, "CLOUDSCHED_DEFAULT_TIME", defaults.default_time),
            fallback=_parse_switch(env, "CLOUDSCHED_FALLBACK"),
            retention=_parse_retention(env, defaults.retention),
            bucket=env.get("CLOUDSCHED_BUCKET") or None,
            time_limit=_parse_time_limit(env, defaults.time_limit),
            replays_each_step=_parse_switch(env, "CLOUDSCHED_REPLAYS_EACH_STEP"),
            log_level=_parse_log_level(env, defaults.log_level),
            access=Access.from_environment(env),
            sandbox=Sandbox.from_environment(env),
            is_deployed="K_SERVICE" in env,
            service=env.get("K_SERVICE") or defaults.service,
            service_version=env.get("K_REVISION", ""),
        )

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
            "GOOGLE_CLOUD_PROJECT": self.project,
            "CLOUDSCHED_LOCATION": self.location,
            "CLOUDSCHED_QUEUE": self.queue,
            "CLOUDSCHED_EXECUTOR_URL": self.executor_url,
            "CLOUDSCHED_SECRET": self.secret,
            "CLOUDSCHED_PREVIOUS_SECRET": self.previous_secret,
            "CLOUDSCHED_STORE": self.store,
            "CLOUDSCHED_DATABASE": self.database,
            "CLOUDSCHED_DATA": str(self.data) if self.data else None,
            "CLOUD_TASKS_EMULATOR_HOST": self.tasks_emulator,
            "FIRESTORE_EMULATOR_HOST": self.firestore_emulator,
            "CLOUDSCHED_INVOKER": self.invoker,
            "CLOUDSCHED_DEFAULT_LEAD_SECONDS": f"{self.default_lead.total_seconds():g}",
            "CLOUDSCHED_MINIMUM_LEAD_SECONDS": f"{self.minimum_lead.total_seconds():g}",
            "CLOUDSCHED_DEFAULT_TIME": f"{self.default_time:%H:%M}",
            "CLOUDSCHED_FALLBACK": "on" if self.fallback else "",
            "CLOUDSCHED_RETENTION_DAYS": "never" if self.retention is None else f"{self.retention / _DAY:g}",
            "CLOUDSCHED_BUCKET": self.bucket,
            "CLOUDSCHED_TIME_LIMIT_SECONDS": f"{self.time_limit.total_seconds():g}",
            "CLOUDSCHED_REPLAYS_EACH_STEP": "on" if self.replays_each_step else "",
            "CLOUDSCHED_LOG_LEVEL": self.log_level,
            **self.access.to_variables(),
            **self.sandbox.to_variables(),
            "K_SERVICE": None,  # only the cloud sets these two
            "K_REVISION": None,
        }


def is_firebase_emulated() -> bool:
    """Return whether Google's library, which reads this variable itself, accepts unsigned tokens in this process."""
    return bool(os.environ.get("FIREBASE_AUTH_EMULATOR_HOST"))


def _parse_switch(env: Mapping[str, str], name: str) -> bool:
    text = env.get(name, "off")
    if text not in {"on", "off", ""}:
        raise Misconfigured(f"{name} is {text!r}; it must be on or off.")
    return text == "on"


def _parse_log_level(env: Mapping[str, str], default: LogLevel) -> LogLevel:
    text = env.get("CLOUDSCHED_LOG_LEVEL") or default
    for level in get_args(LogLevel):
        if text == level:
            return cast("LogLevel", level)
    raise Misconfigured(f"CLOUDSCHED_LOG_LEVEL is {text!r}; it must be one of {', '.join(get_args(LogLevel))}.")


def _parse_retention(env: Mapping[str, str], default: timedelta | None) -> timedelta | None:
    text = env.get("CLOUDSCHED_RETENTION_DAYS")
    if text is None:
        return default
    if text == "never":
        return None
    try:
        days = float(text) * _DAY
    except (ValueError, OverflowError):
        days = timedelta(0)
    if days <= timedelta(0):
        raise Misconfigured(f"CLOUDSCHED_RETENTION_DAYS is {text!r}; it must be a number of days above 0, or never.")
    return days


def _parse_time_limit(env: Mapping[str, str], default: timedelta) -> timedelta:
    limit = _parse_seconds(env, "CLOUDSCHED_TIME_LIMIT_SECONDS", default)
    if not limit:
        raise Misconfigured("CLOUDSCHED_TIME_LIMIT_SECONDS is 0; it must be above 0, or no handler could run.")
    return limit


def _parse_time(env: Mapping[str, str], name: str, default: time) -> time:
    text = env.get(name)
    if text is None:
        return default
    found = re.fullmatch(r"([01]?[0-9]|2[0-3]):([0-5][0-9])", text)
    if found is None:
        raise Misconfigured(f"{name} is {text!r}; it must be a time of day from 00:00 to 23:59.")
    return time(int(found.group(1)), int(found.group(2)))


def _parse_seconds(env: Mapping[str, str], name: str, default: timedelta) -> timedelta:
    text = env.get(name)
    if text is None:
        return default
    try:
        value = timedelta(seconds=float(text))
    except (ValueError, OverflowError):
        raise Misconfigured(f"{name} is {text!r}; it must be a number of seconds.") from None
    if value < timedelta(0):
        raise Misconfigured(f"{name} is {text!r}; it must not be negative.")
    return value
