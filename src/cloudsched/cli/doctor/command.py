"""The command ``cloudsched doctor``."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cloudsched.cli.options import connection_options, is_this_machine, json_option
from cloudsched.errors import CloudschedError
from cloudsched.features.table import FEATURES, find_place
from cloudsched.local.untrusted_text import to_json_line, to_printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from cloudsched.cli.doctor.deployment import CheckResult, Deployment


OF_CODE = frozenset({"api", "canary", "functions", "handlers", "sweep", "sweep lag", "version"})
"""The areas that new code or new settings of the functions may break. A rollback may fix them."""
NOT_OF_CODE = 7
"""The exit status if the only problems are an old backup, a paused queue or the like, or a check that could not run."""


@click.command()
@connection_options
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="Look at the deployment of this configuration, too, such as infra/config.sh, through gcloud.",
)
@click.option("--project", help="Look at the deployment in this Google Cloud project, too, without its configuration.")
@click.option("--region", help="The region of that deployment. [default: us-central1]")
@click.option("--name", help="The prefix of its resources' names. [default: cloudsched]")
@click.option("--as", "account", help="Ask its API as this service account, which gcloud then impersonates.")
@click.option("--handler", help="The handler of the test task. [default: the configuration's; remind, if there is one]")
@click.option("--payload", help="The test task's payload, as JSON. [default: the configuration's; {}]")
@click.option("--timeout", default=120, show_default=True, type=click.IntRange(1), help="Seconds for the test task.")
@click.option("--no-canary", is_flag=True, help="Run no test task.")
@json_option
@click.pass_context
def doctor(  # noqa: PLR0913 - one parameter for each option
    context: click.Context,
    /,
    *,
    url: str,
    config: Path | None,
    project: str | None,
    region: str | None,
    name: str | None,
    account: str | None,
    handler: str | None,
    payload: str | None,
    timeout: int,
    no_canary: bool,
    as_json: bool,
    **credentials: Any,
) -> None:
    """Check the local stack, or a deployment.

    Looks at the API: its version, late tasks, and whether a task runs from end to end. With --config or --project
    it first looks at the Google Cloud project, with your own rights: database, backups, queues, secret, functions,
    sweep, and what everybody may call. Nothing is changed, except that a test task is created and deleted.

    Each line that is wrong says the command that mends it. The exit status is 0 if all is well, and 1 if not. For a
    deployment it is 7 if nothing is wrong that new code, or new settings of the functions, can have caused.
    """
    if config is None and project is None and (region or name or account):
        raise click.UsageError("--region, --name and --as are about a deployment: give --config, or --project, too.")
    if config is not None and (project or region or name):
        raise click.UsageError("--config says the project, the region and the name already: leave those options out.")
    from cloudsched.cli.doctor.api_checks import Canary, CheckedApi, check_api  # noqa: PLC0415 - not needed for --help
    from cloudsched.cli.doctor.configuration import DEFAULTS, read_configuration  # noqa: PLC0415 - likewise
    from cloudsched.cli.doctor.deployment import Deployment, Gcloud, unknown  # noqa: PLC0415 - likewise
    from cloudsched.client import Client  # noqa: PLC0415 - likewise

    facts = {} if config is None else read_configuration(config)
    payload = payload or (facts.get("SMOKE_PAYLOAD") if handler is None else None) or "{}"
    handler = handler or facts.get("SMOKE_HANDLER")
    canary = None if no_canary else Canary(handler, _parse_payload(payload), timedelta(seconds=timeout))
    findings: list[CheckResult] = []
    show = findings.append if as_json else _print_each(findings)
    restart = "restart it: cloudsched dev"
    log = "gcloud run services logs read NAME-api --region=REGION"
    if project := facts.get("PROJECT", project):
        facts = {**DEFAULTS, **facts}
        deployment = Deployment(
            Gcloud(project), region or facts["REGION"], name or facts["NAME"], config, facts["DATABASE"]
        )
        services = _look_at_deployment(deployment, show)
        restart = deployment.script("upgrade.sh")
        log = f"gcloud run services logs read {deployment.name}-api {deployment.place()}"
        if context.get_parameter_source("url") is click.core.ParameterSource.DEFAULT:
            url = (services.get("api") or {}).get("status", {}).get("url", "")
        if account is not None and url:
            credentials["token"] = _make_token(deployment, account, services, show) or credentials["token"]
    if url:
        with Client(url, **credentials) as client:
            api = CheckedApi(client, url, "" if is_this_machine(url) else log, restart)
            _show_all(show, "api", check_api(api, canary))
    else:
        show(unknown("api", "its address is not known", "give it with --url"))
    _end(findings, 1 if project is None else NOT_OF_CODE, as_json=as_json)


def _make_token(
    deployment: Deployment, account: str, services: dict[str, Any], show: Callable[[CheckResult], None]
) -> str | None:
    """Return a token that identifies an account to the API, or show why there is none."""
    from cloudsched.cli.doctor.deployment import unknown  # noqa: PLC0415 - not for the local stack
    from cloudsched.cli.doctor.resource_checks import find_value  # noqa: PLC0415 - the same

    audiences = find_value(services.get("api"), "CLOUDSCHED_AUDIENCES").split()
    try:
        return deployment.gcloud.token(account, *audiences[:1])
    except CloudschedError as error:
        mend = f"grant yourself roles/iam.serviceAccountTokenCreator on {account}"
        show(unknown("access", f"you cannot ask as {account}: {error}", mend))
        return None


def _parse_payload(text: str) -> dict[str, Any]:
    try:
        payload = json.loads(text)
    except ValueError as error:
        raise click.UsageError(f"--payload is not JSON: {error}") from None
    if not isinstance(payload, dict):
        raise click.UsageError("--payload is not a JSON object, {…}.")
    return payload


def _look_at_deployment(deployment: Deployment, show: Callable[[CheckResult], None]) -> dict[str, Any]:
    """Show the state of the project's resources. Return its Cloud Run services by function."""
    from cloudsched.cli.doctor import resource_checks  # noqa: PLC0415 - not for the local stack
    from cloudsched.cli.doctor.deployment import FUNCTIONS  # noqa: PLC0415 - the same

    services: dict[str, Any] = {}
    for function in FUNCTIONS:
        try:
            services[function] = resource_checks.find_service(deployment, function)
        except CloudschedError as error:
            show(_explain_refusal("functions", error))
            return services
    deployment = replace(
        deployment,
        database=resource_checks.find_value(services["execute"], "CLOUDSCHED_DATABASE"),
        queues_per_priority=resource_checks.count_queues(services["api"]),
    )
    _show_all(show, "database", resource_checks.check_database(deployment, datetime.now(UTC)))
    _show_all(show, "functions", resource_checks.check_functions(deployment, services))
    _show_all(show, "queues", resource_checks.check_queues(deployment))
    _show_all(show, "secret", resource_checks.check_secret(deployment, services))
    _show_all(show, "iam", resource_checks.check_access(deployment, services))
    _show_all(show, "sweep", resource_checks.check_job(deployment, datetime.now(UTC)))
    for row in FEATURES:
        if row.doctor:
            _show_all(show, row.name, find_place(row.doctor)(deployment, services))
    return services


def _show_all(show: Callable[[CheckResult], None], area: str, findings: Iterator[CheckResult]) -> None:
    """Show each result as it arrives. A check that cannot be made is a result, too."""
    try:
        for finding in findings:
            show(finding)
    except CloudschedError as error:
        show(_explain_refusal(area, error))


def _explain_refusal(area: str, error: CloudschedError) -> CheckResult:
    from cloudsched.cli.doctor.deployment import unknown  # noqa: PLC0415 - not needed for --help

    return unknown(area, f"it cannot be looked at: {error}", "gcloud auth login, with roles/viewer on the project")


def _print_each(findings: list[CheckResult]) -> Callable[[CheckResult], None]:
    from rich.text import Text  # noqa: PLC0415 - not needed for JSON

    from cloudsched.cli.doctor.deployment import Verdict  # noqa: PLC0415 - not needed for --help
    from cloudsched.cli.output import make_console  # noqa: PLC0415 - likewise

    colours = {Verdict.OK: "green", Verdict.WRONG: "red", Verdict.UNKNOWN: "yellow", Verdict.SKIPPED: "dim"}

    console = make_console()

    def show(finding: CheckResult) -> None:
        findings.append(finding)
        line = Text(f"{finding.verdict:<8}", style=colours[finding.verdict])
        line.append(f"  {finding.area:<10} {to_printable(finding.what)}", style="default")
        console.print(line)
        if finding.mend:
            console.print(Text(f"          {'':<10} → {to_printable(finding.mend)}"))

    return show


def _end(findings: Iterable[CheckResult], other: int, *, as_json: bool) -> None:
    """Print the summary. Exit with 1 if the code may be at fault, or with the other status for other problems."""
    from cloudsched.cli.doctor.deployment import Verdict  # noqa: PLC0415 - not needed for --help

    bad = [finding for finding in findings if not finding.is_well]
    if as_json:
        listed = [{"area": f.area, "verdict": f.verdict, "what": f.what, "mend": f.mend} for f in findings]
        click.echo(to_json_line({"isWell": not bad, "findings": listed}))
    else:
        click.echo("All is well." if not bad else f"{len(bad)} to look at.")
    faults = [finding for finding in bad if finding.verdict is Verdict.WRONG and finding.area in OF_CODE]
    sys.exit(1 if faults else other if bad else 0)
