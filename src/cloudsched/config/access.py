"""Who may come in, as far as that can be set from outside: a part of `Settings`.

Nobody may, unless something here lets them; only where nothing is set at all, and only outside the cloud, is the API
open. Nothing here is secret: API keys are kept as hashes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from ipaddress import ip_network
from typing import TYPE_CHECKING, Final

from cloudsched.errors import Misconfigured

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Who may come in, from where, and how much of it they may use.

    Attributes:
        firebase_project: The Firebase project whose users come in with their ID tokens; None for none.
        firebase_emulator: ``host:port`` of the Firebase Auth emulator, whose unsigned tokens are then accepted.
        audiences: What the Google OIDC tokens of service accounts must have been made for: this API's addresses.
        service_accounts: Each service account's role, as ``email=role``.
        trust_cloud_run: Whether Cloud Run checks the tokens before this does (the service is not public). It takes
            the signature off a token that it has checked; such a token is then believed.
        api_keys: The servers' keys, as ``name:role:hash`` or ``name:role:hash:owner``; see `web.auth.api_keys`.
        sweeper: The service account by which Cloud Scheduler proves itself to the sweep; None leaves that to Cloud Run.
        origins: The web origins whose pages may call the API (CORS); ``*`` for all, none by default.
        reachable: The networks that handlers may reach for users' URLs besides the public internet; none by default.
        max_active_tasks: How many tasks that have not ended one user may have; None for any number.
        max_creations: How many tasks one user may create a minute; None for any number.
    """

    firebase_project: str | None = None
    firebase_emulator: str | None = None
    audiences: tuple[str, ...] = ()
    service_accounts: tuple[str, ...] = ()
    trust_cloud_run: bool = False
    api_keys: tuple[str, ...] = field(default=(), repr=False)
    sweeper: str | None = None
    origins: tuple[str, ...] = ()
    reachable: tuple[str, ...] = ()
    max_active_tasks: int | None = None
    max_creations: int | None = None

    def __post_init__(self) -> None:
        """Refuse contradictions.

        Raises:
            Misconfigured: A service account is listed more than once.
        """
        emails = [entry.partition("=")[0] for entry in self.service_accounts]
        for email in emails:
            if emails.count(email) > 1:
                raise Misconfigured(f"CLOUDSCHED_SERVICE_ACCOUNTS lists {email} more than once. Give it one role.")

    @property
    def is_configured(self) -> bool:
        """Whether there is any way in."""
        return bool(self.firebase_project or self.service_accounts or self.api_keys)

    @classmethod
    def from_environment(cls, env: Mapping[str, str]) -> Access:
        """Read it from variables; what is not set keeps its default.

        Raises:
            Misconfigured: A variable cannot be understood. The message names it.
        """
        values: dict[str, object] = {}
        for name, variable in VARIABLES.items():
            text = env.get(variable, "").strip()
            if not text:
                continue
            if name in _LISTS:
                values[name] = tuple(text.split())
                if name == "reachable":
                    _require_networks(variable, text.split())
            elif name in _NUMBERS:
                values[name] = _parse_number(variable, text)
            elif name == "trust_cloud_run":
                values[name] = _parse_switch(variable, text)
            else:
                values[name] = text
        access = cls(**values)  # type: ignore[arg-type]  # each by its own kind, above
        if access.firebase_emulator and "K_SERVICE" in env:
            raise Misconfigured(
                "FIREBASE_AUTH_EMULATOR_HOST is set in the cloud: anybody could make a token. Take it away."
            )
        return access

    def to_variables(self) -> dict[str, str | None]:
        """Return the variables from which `from_environment` reads it again."""
        return {VARIABLES[each.name]: _format_value(getattr(self, each.name)) for each in fields(self)}


VARIABLES: Final[Mapping[str, str]] = {
    "firebase_project": "CLOUDSCHED_FIREBASE_PROJECT",
    "firebase_emulator": "FIREBASE_AUTH_EMULATOR_HOST",
    "audiences": "CLOUDSCHED_AUDIENCES",
    "service_accounts": "CLOUDSCHED_SERVICE_ACCOUNTS",
    "trust_cloud_run": "CLOUDSCHED_TRUST_CLOUD_RUN",
    "api_keys": "CLOUDSCHED_API_KEYS",
    "sweeper": "CLOUDSCHED_SWEEPER",
    "origins": "CLOUDSCHED_CORS_ORIGINS",
    "reachable": "CLOUDSCHED_REACHABLE",
    "max_active_tasks": "CLOUDSCHED_MAX_ACTIVE_TASKS",
    "max_creations": "CLOUDSCHED_MAX_CREATIONS_A_MINUTE",
}
_LISTS = {"audiences", "service_accounts", "api_keys", "origins", "reachable"}
_NUMBERS = {"max_active_tasks", "max_creations"}


def _parse_number(variable: str, text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise Misconfigured(f"{variable} is {text!r}; it must be a whole number from 1 on.")
    return int(text)


def _require_networks(variable: str, texts: Iterable[str]) -> None:
    for text in texts:
        try:
            ip_network(text)
        except ValueError as error:
            raise Misconfigured(
                f"{variable} has {text!r}; each must be a network such as 10.1.0.0/16 ({error})."
            ) from None


def _parse_switch(variable: str, text: str) -> bool:
    if text not in {"on", "off"}:
        raise Misconfigured(f"{variable} is {text!r}; it must be on or off.")
    return text == "on"


def _format_value(value: object) -> str | None:
    if isinstance(value, bool):
        return "on" if value else None
    if isinstance(value, tuple):
        return " ".join(value)
    return None if value is None else str(value)
