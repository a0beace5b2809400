"""One setting: its variable, its type, its default, and its meaning.

The fields of `Settings` and of its sections, such as `Access`, are declared with `setting`. These declarations
are the one table from which variables are read and written again. A test compares
``docs/reference/settings.md`` with it.
"""

from __future__ import annotations

import math
import re
from dataclasses import Field, dataclass, field, fields
from datetime import time, timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar

from cloudsched.errors import Misconfigured

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")

_SETTING = "setting"
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """The parser and the format of a variable's text."""

    parse: Callable[[str], T]
    """Raises ValueError, whose message continues a sentence that begins with the variable's name."""
    format: Callable[[T], str] = str
    none: str | None = None
    """The text that means None, if there is one. Otherwise None cannot be set."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The facts about a field besides its name and default."""

    variable: str
    about: str
    """Its meaning, in Markdown, as ``docs/reference/settings.md`` has it."""
    kind: Kind[Any]
    shown_default: str | None
    """The default as the documentation shows it. None shows the variable's text."""


class _Section(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


def setting(
    variable: str,
    about: str,
    kind: Kind[Any] | None = None,
    *,
    default: Any,  # noqa: ANN401 - a value of the field's type
    is_secret: bool = False,
    shown_default: str | None = None,
) -> Any:  # noqa: ANN401 - like `dataclasses.field`
    """Declare a field that is read from a variable. See `Setting`. A secret is omitted from `repr`."""
    about_field = Setting(variable, about, kind or TEXT, shown_default)
    return field(default=default, repr=not is_secret, metadata={_SETTING: about_field})


def list_settings(section: type[_Section]) -> dict[str, Setting]:
    """Return the settings of a class by the names of its fields."""
    return {each.name: each.metadata[_SETTING] for each in fields(section) if _SETTING in each.metadata}


def read_settings(section: type[_Section], env: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a class that variables set. A missing or empty variable sets none."""
    values: dict[str, Any] = {}
    for name, each in list_settings(section).items():
        if text := env.get(each.variable, "").strip():
            try:
                values[name] = None if text == each.kind.none else each.kind.parse(text)
            except ValueError as error:
                raise Misconfigured(f"{each.variable} {error}") from None
    return values


def write_settings(section: Any) -> dict[str, str | None]:  # noqa: ANN401 - `Settings`, or a section
    """Return the variables from which `read_settings` reads the same values. None for one that must not be set."""
    written: dict[str, str | None] = {}
    for name, each in list_settings(type(section)).items():
        value = getattr(section, name)
        written[each.variable] = each.kind.none if value is None else each.kind.format(value) or None
    return written


class SettingsSection:
    """A part of `Settings`: a frozen dataclass whose fields are made by `setting`."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @classmethod
    def from_environment(cls, env: Mapping[str, str]) -> Self:
        """Read the settings from variables. Those that are not set keep their defaults."""
        return cls(**read_settings(cls, env))

    def to_variables(self) -> dict[str, str | None]:
        """Return the variables from which `from_environment` reads the same settings."""
        return write_settings(self)


def _refuse(text: str, must: str) -> ValueError:
    return ValueError(f"is {text!r}; it must {must}.")


def choice_of(*choices: str) -> Kind[str]:
    """Return the kind of one of several words."""
    several = f"one of {', '.join(choices)}" if len(choices) > 2 else " or ".join(choices)  # noqa: PLR2004

    def parse(text: str) -> str:
        if text not in choices:
            raise _refuse(text, f"be {several}")
        return text

    return Kind(parse)


def either(yes: str, no: str) -> Kind[bool]:
    """Return the kind of two words, one for True and one for False."""
    words = choice_of(yes, no)
    return Kind(lambda text: words.parse(text) == yes, lambda value: yes if value else no)


def matching(pattern: str, must: str) -> Kind[str]:
    """Return the kind of a text that a regular expression matches as a whole."""

    def parse(text: str) -> str:
        if re.fullmatch(pattern, text) is None:
            raise _refuse(text, must)
        return text

    return Kind(parse)


def words_matching(pattern: str, must: str, most: int | None = None) -> Kind[tuple[str, ...]]:
    """Return the kind of different words, each of which a regular expression matches."""

    def parse(text: str) -> tuple[str, ...]:
        words = tuple(dict.fromkeys(text.split()))
        wrong = next((each for each in words if re.fullmatch(pattern, each) is None), None)
        if wrong is not None:
            raise ValueError(f"has {wrong!r}; {must}.")
        if most is not None and len(words) > most:
            raise ValueError(f"has {len(words)} words; there may be {most}.")
        return words

    return Kind(parse, " ".join)


def whole_number(maximum: int | None = None, *, unit: int = 1, none: str | None = None) -> Kind[int]:
    """Return the kind of a whole number from 1 on, in a `unit` such as bytes. `none` is the word for no number."""
    upper = "on" if maximum is None else f"to {maximum}"
    must = f"be a whole number from 1 {upper}"
    if none:
        must += f" or {none}"

    def parse(text: str) -> int:
        is_number = text.isascii() and text.isdigit() and len(text) <= len(str(maximum or 10**18))
        if not is_number or not 1 <= int(text) <= (maximum or 10**18):
            raise _refuse(text, must)
        return int(text) * unit

    return Kind(parse, lambda value: str(value // unit), none)


def seconds_between(least: float, most: float) -> Kind[timedelta]:
    """Return the kind of a duration between two numbers of seconds."""

    def parse(text: str) -> timedelta:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not text.isascii() or not least <= value <= most:
            raise _refuse(text, f"be a number of seconds from {least:g} to {most:.10g}")
        return timedelta(seconds=value)

    return Kind(parse, lambda value: f"{value.total_seconds():g}")


def _parse_days(text: str) -> timedelta:
    try:
        days = float(text) * _DAY
    except (ValueError, OverflowError):
        days = timedelta(0)
    if days <= timedelta(0):
        raise _refuse(text, "be a number of days above 0, or never")
    return days


def _parse_time(text: str) -> time:
    match = re.fullmatch(r"([01]?[0-9]|2[0-3]):([0-5][0-9])", text)
    if match is None:
        raise _refuse(text, "be a time of day from 00:00 to 23:59")
    return time(int(match.group(1)), int(match.group(2)))


def _parse_networks(text: str) -> tuple[str, ...]:
    for network in text.split():
        try:
            ip_network(network)
        except ValueError as error:
            form = f"a network such as 10.1.0.0/16 ({error})"
            raise ValueError(f"has {network!r}; each must be {form}.") from None
    return tuple(text.split())


def _parse_address(text: str) -> str:
    if re.fullmatch(r"https?://[^\s/?#@]+(/[^\s?#]*)?", text) is None:
        raise _refuse(text, "be an address such as https://tasks.example.com")
    return text.rstrip("/")


def _parse_mail_server(text: str) -> str:
    """Return the URL of a mail server. No message shows a part of it, since it has a password."""
    host = r"([^\s@:/?#\[\]]+|\[[0-9a-fA-F:.]+\])(:[0-9]{1,5})?/?"
    if re.fullmatch(rf"smtps?://([^\s@:/?#]+:[^\s@:/?#]*@)?{host}", text) is None:
        form = "smtps://user:password@host:465, or smtp://user:password@host:587 for STARTTLS"
        raise ValueError(f"must be {form}; write other characters of user and password as %40.")
    return text


def _parse_channels(text: str) -> tuple[str, ...]:
    channels = tuple(text.split())
    if not all("://" in channel for channel in channels):
        raise ValueError("must be Apprise's URLs, such as slack://…, separated by spaces.")  # they have keys
    return channels


def _parse_pair(first: str, second: str, form: str) -> Callable[[str], tuple[str, ...]]:
    def parse(text: str) -> tuple[str, ...]:
        if re.fullmatch(rf"{first} +{second}", text) is None:
            raise ValueError(f"must be {form}.")  # without the text, which is secret
        return tuple(text.split())

    return parse


_TELEGRAM_FORM = "a bot's token, a space, and a secret of 16 to 256 letters, digits, hyphens and underscores"
TELEGRAM_BOT: Kind[tuple[str, ...]] = Kind(
    _parse_pair(r"[0-9]+:[\w-]{20,}", r"[A-Za-z0-9_-]{16,256}", _TELEGRAM_FORM), " ".join
)
SLACK_APP: Kind[tuple[str, ...]] = Kind(
    _parse_pair(r"xoxb-[\w-]{10,}", r"[0-9a-zA-Z]{16,}", "a bot token, xoxb-…, a space, and the app's signing secret"),
    " ".join,
)
TEXT: Kind[str] = Kind(str)
ADDRESS: Kind[str] = Kind(_parse_address)
MAIL_SERVER: Kind[str] = Kind(_parse_mail_server)
_MAIL_ADDRESS = r"[^<>@\s]+@[^<>@\s]+"
MAIL_SENDER: Kind[str] = matching(
    rf"{_MAIL_ADDRESS}|[^<>]*<{_MAIL_ADDRESS}>",
    "be an address such as ada@example.com, or Ada <ada@example.com>",
)
CHANNELS: Kind[tuple[str, ...]] = Kind(_parse_channels, " ".join)
PATH: Kind[Path] = Kind(Path)
ANSWER: Kind[bool] = either("on", "off")
"""A switch whose default is neither on nor off."""
SWITCH: Kind[bool] = Kind(ANSWER.parse, lambda value: "on" if value else "")
DAYS: Kind[timedelta] = Kind(_parse_days, lambda value: f"{value / _DAY:g}", none="never")
TIME_OF_DAY: Kind[time] = Kind(_parse_time, lambda value: f"{value:%H:%M}")
CALENDAR_ID: Kind[str] = matching(
    r"[A-Za-z0-9_-]{1,64}", "be the id of a calendar: letters, digits, hyphens and underscores"
)
WORDS: Kind[tuple[str, ...]] = Kind(lambda text: tuple(text.split()), " ".join)
NETWORKS: Kind[tuple[str, ...]] = Kind(_parse_networks, " ".join)
