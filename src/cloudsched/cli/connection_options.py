"""The options that say where the API is, and with which credential to call it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., object]")

_OPTIONS = (
    click.option(
        "--url",
        envvar="CLOUDSCHED_URL",
        default="http://127.0.0.1:8080",
        show_default=True,
        help="The API's address. [env: CLOUDSCHED_URL]",
    ),
    click.option("--key", envvar="CLOUDSCHED_KEY", help="An API key. [env: CLOUDSCHED_KEY]"),
    click.option("--token", envvar="CLOUDSCHED_TOKEN", help="A Firebase or Google token. [env: CLOUDSCHED_TOKEN]"),
    click.option("--platform-token", envvar="CLOUDSCHED_PLATFORM_TOKEN", help="A token for Cloud Run's own IAM check."),
)


def connection_options(function: F) -> F:
    """Give a command `url`, `key`, `token` and `platform_token`, in this order."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function
