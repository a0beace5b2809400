"""``cloudsched demo``: runs more than a year of three tasks in seconds and prints the results."""

from __future__ import annotations

import sys

import click

from cloudsched.cli.signals import Stopped, raise_on_signal
from cloudsched.config.imports import pause_collection


@click.command()
@click.option("--ui", is_flag=True, help="Stay until Ctrl-C, so that the dashboard can show the year.")
def demo(*, ui: bool) -> None:
    """Watch a year of tasks run in seconds.

    Creates a reminder, a weekday report and a birthday over HTTP, and moves the clock from 1 January 2027 to
    February 2028. Shows what ran, and exits with 1 if anything did not run as it should.
    """
    with pause_collection(keeps_all=True):
        from cloudsched.cli.demo_report import run_and_print  # noqa: PLC0415 - not needed for --help

    try:
        with raise_on_signal():
            problems = run_and_print(stays=ui)
    except Stopped as stopped:
        sys.exit(stopped.exit_code)
    sys.exit(1 if problems else 0)
