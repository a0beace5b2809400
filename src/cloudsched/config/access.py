"""Who may use the API: the part of `Settings` for authentication, networks and quotas.

Nobody has access unless a setting here grants it. Where no credentials are set, `open` admits requests from the same
machine, and only outside the cloud. Nothing here is secret: API keys are stored as hashes.
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
    """Who may use the API, from where, and how much.

    Attributes:
        firebase_project: The Firebase project whose users authenticate with ID tokens; None for none.
        firebase_emulator: ``host:port`` of the Firebase Auth emulator, whose unsigned tokens are then accepted.
        audiences: The accepted audiences of service accounts' Google OIDC tokens: this API's addresses.
        service_accounts: Each service account's role, as ``email=role``.
        trust_cloud_run: Whether Cloud Run verifies the tokens first (the service is not public). It removes the
            signature from a token that it has verified; such a token is then accepted.
        api_keys: The API keys, as ``name:role:hash`` or ``name:role:hash:owner``; see `web.auth.api_keys`.
        sweeper: The service account that Cloud Scheduler calls the sweep with; None leaves the check to Cloud Run.
        origins: The web origins whose pages may call the API (CORS); ``*`` for all, none by default.
        reachable: The networks besides the public internet from which handlers may fetch users' URLs; none by default.
        open: Whether requests from the same machine need no credentials while none are configured. ``cloudsched dev``
            sets it; in the cloud it is refused.
        max_active_tasks: The most unfinished tasks of one user; None for no limit.
        max_creations: The most tasks that one user may create per minute; None for no limit.
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
    open: bool = False
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
        """Whether any authentication method is configured."""
        return bool(self.firebase_project or self.service_accounts or self.api_keys)

    @classmethod
    def from_environment(cls, env: Mapping[str, str]) -> Access:
        """Read the settings from variables; those not set keep their defaults.

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
            elif name in _SWITCHES:
                values[name] = _parse_switch(variable, text)
            else:
                values[name] = text
        access = cls(**values)  # type: ignore[arg-type]  # each parsed by its type above
        if access.firebase_emulator and "K_SERVICE" in env:
            raise Misconfigured(
                "FIREBASE_AUTH_EMULATOR_HOST is set in the cloud, where anyone could then forge a token. Remove it."
            )
        if access.open and "K_SERVICE" in env:
            raise Misconfigured("CLOUDSCHED_OPEN is on in the cloud, where it would protect nothing. Remove it.")
        return access

    def to_variables(self) -> dict[str, str | None]:
        """Return the variables from which `from_environment` reads the same settings."""
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
    "open": "CLOUDSCHED_OPEN",
    "max_active_tasks": "CLOUDSCHED_MAX_ACTIVE_TASKS",
    "max_creations": "CLOUDSCHED_MAX_CREATIONS_A_MINUTE",
}
_LISTS = {"audiences", "service_accounts", "api_keys", "origins", "reachable"}
_SWITCHES = {"trust_cloud_run", "open"}
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
