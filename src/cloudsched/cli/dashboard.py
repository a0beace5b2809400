"""``cloudsched dashboard``: the pages of a deployment, on this machine."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import Any, Final
from urllib.parse import urlsplit

import click

from cloudsched.cli.options import connection_options
from cloudsched.cli.signals import Stopped, raise_on_signal, wait_for_signal

PORT: Final = 8090


@click.command()
@connection_options
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="Its port. 0 takes any.")
def dashboard(url: str, port: int, **credentials: Any) -> None:
    """Show the dashboard of a deployment, on this machine only.

    It acts with your credentials, so nothing is made public, and it offers only what they allow. Ctrl-C stops
    it.
    """
    from cloudsched.client.client import Client  # noqa: PLC0415 - not needed for --help
    from cloudsched.dashboard.application import Dashboard  # noqa: PLC0415 - likewise
    from cloudsched.local.warm_up import warm_up_soon  # noqa: PLC0415 - likewise
    from cloudsched.local.wsgi_server import WebServer  # noqa: PLC0415 - likewise

    with raise_on_signal():
        try:
            with ExitStack() as parts:
                client = parts.enter_context(Client(url, **credentials))
                application = Dashboard(client, place=f"of {urlsplit(url).netloc}")
                server = parts.enter_context(WebServer(application, port=port))
                server.serve()
                warm_up_soon()
                click.echo(f"http://{server.address}/ shows {url}. Ctrl-C stops it.")
                wait_for_signal()
        except Stopped:
            sys.exit(0)
