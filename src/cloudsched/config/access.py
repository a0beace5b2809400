"""Access to the API: the part of `Settings` for authentication, networks and quotas.

Nobody has access unless a setting here grants it. Where no credentials are set, `open` admits requests
from the same machine, and only outside the cloud. Nothing here is secret: API keys are stored as hashes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from cloudsched.config.variables import (
    NETWORKS,
    SWITCH,
    WORDS,
    SettingsSection,
    read_settings,
    seconds_between,
    setting,
    whole_number,
)
from cloudsched.errors import Misconfigured

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Access(SettingsSection):
    """The callers of the API, their networks and their quotas.

    The documentation of each field stands beside it, and in ``docs/reference/settings.md``.
    ``docs/guides/access.md`` explains them.
    """

    firebase_project: str | None = setting(
        "CLOUDSCHED_FIREBASE_PROJECT",
        "The Firebase project whose users may call the API. [Access](../guides/access.md) explains this and "
        "the following settings.",
        default=None,
    )
    firebase_emulator: str | None = setting(
        "FIREBASE_AUTH_EMULATOR_HOST",
        "`host:port` of the Firebase Auth emulator, whose unsigned tokens are then accepted. Refused in the cloud.",
        default=None,
    )
    audiences: tuple[str, ...] = setting(
        "CLOUDSCHED_AUDIENCES",
        "The audiences that service accounts' tokens must be issued for: the API's addresses.",
        WORDS,
        default=(),
    )
    service_accounts: tuple[str, ...] = setting(
        "CLOUDSCHED_SERVICE_ACCOUNTS",
        "The service accounts that may call the API, with their roles: `a@p.iam.gserviceaccount.com=admin …`.",
        WORDS,
        default=(),
    )
    trust_cloud_run: bool = setting(
        "CLOUDSCHED_TRUST_CLOUD_RUN",
        "`on` where Cloud Run checks tokens before the API does, because the service is private.",
        SWITCH,
        default=False,
    )
    api_keys: tuple[str, ...] = setting(
        "CLOUDSCHED_API_KEYS",
        "The API keys of servers, as hashes that `cloudsched admin keys new` prints: `name:role:hash …`, or "
        "`name:worker@queue+queue:hash …`.",
        WORDS,
        default=(),
        is_secret=True,
    )
    sweeper: str | None = setting(
        "CLOUDSCHED_SWEEPER",
        "The service account that calls the sweep. Without one, Cloud Run checks the caller.",
        default=None,
    )
    origins: tuple[str, ...] = setting(
        "CLOUDSCHED_CORS_ORIGINS",
        "The web origins whose pages may call the API, or `*` for all.",
        WORDS,
        default=(),
    )
    reachable: tuple[str, ...] = setting(
        "CLOUDSCHED_REACHABLE",
        "The networks that handlers may reach for users' URLs, besides the public internet: `10.1.0.0/16 …`.",
        NETWORKS,
        default=(),
    )
    ping_hosts: tuple[str, ...] = setting(
        "CLOUDSCHED_PING_HOSTS",
        "The hosts to which users' tasks may send [pings](../guides/delivery.md), besides that of their "
        "owner's webhook: `hc-ping.com cronitor.link`.",
        WORDS,
        default=(),
    )
    open: bool = setting(
        "CLOUDSCHED_OPEN",
        "`on` admits requests from the same machine without a credential, while none is configured. "
        "`cloudsched dev` sets it. Refused in the cloud.",
        SWITCH,
        default=False,
    )
    max_active_tasks: int | None = setting(
        "CLOUDSCHED_MAX_ACTIVE_TASKS",
        "How many tasks that have not ended one user may have, calls included, or `unlimited`. Set it for "
        "executors, and for workers that open the store, too.",
        whole_number(none="unlimited"),
        default=1000,
    )
    max_creations: int | None = setting(
        "CLOUDSCHED_MAX_CREATIONS_A_MINUTE",
        "How many tasks one user may create in a minute, calls included. Set it in the same places.",
        whole_number(none="unlimited"),
        default=None,
        shown_default="any number",
    )
    max_run_creations: int | None = setting(
        "CLOUDSCHED_MAX_RUN_CREATIONS_A_MINUTE",
        "How many tasks runs may create for one owner in a minute, or `unlimited`. It stops a handler that "
        "creates tasks of its own kind. As many an hour may multiply by runs of tasks that runs have created. "
        "Calls and children are not limited by it.",
        whole_number(none="unlimited"),
        default=500,
    )
    least_interval: timedelta = setting(
        "CLOUDSCHED_LEAST_INTERVAL_SECONDS",
        "The shortest time between two runs of a schedule that a user sets or a "
        "[draft](../guides/plain-language.md) proposes. Anything more frequent is refused.",
        seconds_between(0, 365 * 86_400),
        default=timedelta(minutes=1),
    )

    def __post_init__(self) -> None:
        emails = [entry.partition("=")[0] for entry in self.service_accounts]
        for email in emails:
            if emails.count(email) > 1:
                raise Misconfigured(
                    f"CLOUDSCHED_SERVICE_ACCOUNTS lists {email} more than once. Give it one role.",
                )

    @property
    def is_configured(self) -> bool:
        """Return whether any authentication method is configured."""
        return bool(self.firebase_project or self.service_accounts or self.api_keys)

    @classmethod
    def from_environment(cls, env: Mapping[str, str]) -> Access:
        """Read the settings from variables. Those that are not set keep their defaults."""
        access = cls(**read_settings(cls, env))
        if access.firebase_emulator and "K_SERVICE" in env:
            raise Misconfigured(
                "FIREBASE_AUTH_EMULATOR_HOST is set in the cloud, where anyone could then forge a token. Remove it."
            )
        if access.open and "K_SERVICE" in env:
            raise Misconfigured(
                "CLOUDSCHED_OPEN is on in the cloud, where it would protect nothing. Remove it.",
            )
        return access
