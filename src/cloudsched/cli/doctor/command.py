"""The command ``cloudsched doctor``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from cloudsched.cli.options import connection_options, is_this_machine, json_option
from cloudsched.errors import CloudschedError
from cloudsched.local.untrusted_text import to_json_line, to_printable

if TYPE_CHECKING:
    from cloudsched.cli.doctor.deployment import Deployment, Finding


@click.command()
@connection_options
@click.option("--project", help="Look at the deployment in this Google Cloud project, too, through gcloud.")
@click.option("--region", default="us-central1", show_default=True, help="The region of its functions and queues.")
@click.option("--name", default="cloudsched", show_default=True, help="The prefix of its resources' names.")
@click.option("--database", default="cloudsched", show_default=True, help="Its Firestore database.")
@click.option("--handler", help="The handler of the test task. [default: remind, if there is one]")
@click.option("--payload", default="{}", help="The test task's payload, as JSON.")
@click.option("--timeout", default=120, show_default=True, type=click.IntRange(1), help="Seconds for the test task.")
@click.option("--no-canary", is_flag=True, help="Run no test task.")
@json_option
@click.pass_context
def doctor(  # noqa: PLR0913 - one parameter for each option
    context: click.Context,
    /,
    *,
    url: str,
    project: str | None,
    region: str,
    name: str,
    database: str,
    handler: str | None,
    payload: str,
    timeout: int,
    no_canary: bool,
    as_json: bool,
    **credentials: Any,
) -> None:
    """Say what is right and wrong with the local stack, or with a deployment.

    Looks at the API: its version, late tasks, and whether a task runs from end to end. With --project it first
    looks at the Google Cloud project, with your own rights: database, backups, queues, secret, functions, sweep, and
    what everybody may call. Nothing is changed, except that a test task is created and deleted.

    Each line that is wrong says the command that mends it. The exit status is 0 if all is well, else 1.
    """
    from cloudsched.cli.doctor.api_checks import Api, Canary, check_api  # noqa: PLC0415 - not needed for --help
    from cloudsched.cli.doctor.deployment import Deployment, Gcloud, unknown  # noqa: PLC0415 - likewise
    from cloudsched.client import Client  # noqa: PLC0415 - likewise

    canary = None if no_canary else Canary(handler, _parse_payload(payload), timedelta(seconds=timeout))
    findings: list[Finding] = []
    show = findings.append if as_json else _print_each(findings)
    if project is not None:
        deployment = Deployment(Gcloud(project), region, name, database)
        services = _look_at_deployment(deployment, show)
        if context.get_parameter_source("url") is click.core.ParameterSource.DEFAULT:
            url = (services.get("api") or {}).get("status", {}).get("url", "")
    if url:
        with Client(url, **credentials) as client:
            api = Api(
                client, url, is_this_machine(url), "infra/upgrade.sh" if project else "restart it: cloudsched dev"
            )
            _show_all(show, "api", check_api(api, canary))
    else:
        show(unknown("api", "its address is not known", "give it with --url"))
    _end(findings, as_json=as_json)


def _parse_payload(text: str) -> dict[str, Any]:
    try:
        payload = json.loads(text)
    except ValueError as error:
        raise click.UsageError(f"--payload is not JSON: {error}") from None
    if not isinstance(payload, dict):
        raise click.UsageError("--payload is not a JSON object, {…}.")
    return payload


def _look_at_deployment(deployment: Deployment, show: Callable[[Finding], None]) -> dict[str, Any]:
    """Show the state of the project's resources. Return its Cloud Run services by function."""
    from cloudsched.cli.doctor import resource_checks  # noqa: PLC0415 - not for the local stack
    from cloudsched.cli.doctor.deployment import FUNCTIONS, LINKS  # noqa: PLC0415 - the same

    _show_all(show, "database", resource_checks.check_database(deployment, datetime.now(UTC)))
    services: dict[str, Any] = {}
    for function in (*FUNCTIONS, LINKS):
        try:
            services[function] = deployment.gcloud.resource(
                "run", "services", "describe", f"{deployment.name}-{function}", f"--region={deployment.region}"
            )
        except CloudschedError as error:
            _show_all(show, "functions", iter([_explain_refusal("functions", error)]))
            return services
    deployment = replace(deployment, queues_per_priority=resource_checks.count_queues(services["api"]))
    _show_all(show, "functions", resource_checks.check_functions(deployment, services))
    _show_all(show, "queues", resource_checks.check_queues(deployment))
    _show_all(show, "secret", resource_checks.check_secret(deployment, services))
    _show_all(show, "iam", resource_checks.check_access(deployment, services))
    _show_all(show, "sweep", resource_checks.check_job(deployment, datetime.now(UTC)))
    return services


def _show_all(show: Callable[[Finding], None], area: str, findings: Iterator[Finding]) -> None:
    """Show each finding as soon as it is found. A thing that cannot be looked at is a finding, too."""
    try:
        for finding in findings:
            show(finding)
    except CloudschedError as error:
        show(_explain_refusal(area, error))


def _explain_refusal(area: str, error: CloudschedError) -> Finding:
    from cloudsched.cli.doctor.deployment import unknown  # noqa: PLC0415 - not needed for --help

    return unknown(area, f"it cannot be looked at: {error}", "gcloud auth login, with roles/viewer on the project")


def _print_each(findings: list[Finding]) -> Callable[[Finding], None]:
    from rich.text import Text  # noqa: PLC0415 - not needed for JSON

    from cloudsched.cli.doctor.deployment import Verdict  # noqa: PLC0415 - not needed for --help
    from cloudsched.cli.output import make_console  # noqa: PLC0415 - likewise

    colours = {Verdict.OK: "green", Verdict.WRONG: "red", Verdict.UNKNOWN: "yellow", Verdict.SKIPPED: "dim"}

    console = make_console()

    def show(finding: Finding) -> None:
        findings.append(finding)
        line = Text(f"{finding.verdict:<8}", style=colours[finding.verdict])
        line.append(f"  {finding.area:<10} {to_printable(finding.what)}", style="default")
        console.print(line)
        if finding.mend:
            console.print(Text(f"          {'':<10} → {to_printable(finding.mend)}"))

    return show


def _end(findings: Iterable[Finding], *, as_json: bool) -> None:
    bad = [finding for finding in findings if not finding.is_well]
    if as_json:
        listed = [{"area": f.area, "verdict": f.verdict, "what": f.what, "mend": f.mend} for f in findings]
        click.echo(to_json_line({"isWell": not bad, "findings": listed}))
    else:
        click.echo("All is well." if not bad else f"{len(bad)} to look at.")
    sys.exit(1 if bad else 0)
