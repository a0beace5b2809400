"""Check the resources of a deployment that may change without a deploy: what serves, what runs, and who has access.

`infra/deploy.sh --check` compares the rest with the configuration: APIs, indexes, TTL, roles, limits and protection.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from cloudsched.cli.doctor.deployment import FUNCTIONS, CheckResult, Deployment, ok, skipped, unknown, wrong
from cloudsched.config.settings import MAX_QUEUES_PER_PRIORITY
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.errors import InvalidSchedule, Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

SWEEP_LIMIT = timedelta(minutes=2)
"""The most that a sweep may begin late."""
MAX_BACKUP_AGE = timedelta(hours=30)
"""How old the last daily backup may be. Firestore chooses the time of day."""
_INVOKER = "roles/run.invoker"
_EVERYBODY = ("allUsers", "allAuthenticatedUsers")
_UNCHECKED = "run.googleapis.com/invoker-iam-disabled"
"""The annotation of a function that everybody may call, where an organisation forbids roles for allUsers."""


def check_database(deployment: Deployment, now: datetime) -> Iterator[CheckResult]:
    """Return whether the database is there, its indexes are ready, and it was backed up lately.

    With a prefix the database is an app's: only the indexes of collections with it count, and no backups are asked for.
    """
    if not deployment.database:
        yield unknown("database", "which one the functions use is not known", deployment.deploy("functions"))
        return
    if deployment.configured_database not in {"", deployment.database}:
        what = f"the functions use {deployment.database}, and the configuration names {deployment.configured_database}"
        yield wrong("database", what, deployment.script("upgrade.sh"))
    gcloud = deployment.gcloud
    database = f"--database={deployment.database}"
    mend = deployment.deploy("database")
    found = gcloud.resource("firestore", "databases", "describe", database)
    if found is None:
        yield wrong("database", f"there is no database {deployment.database}", mend)
        return
    prefix = _find_prefix(deployment)
    listed = gcloud.resource("firestore", "indexes", "composite", "list", database) or []
    composites = [each for each in listed if f"/collectionGroups/{prefix}" in str(each.get("name"))]
    states = sorted({str(index.get("state")) for index in composites} - {"READY"})
    if states or not composites:
        what = f"not all indexes are READY ({', '.join(states)})" if states else "there are no indexes"
        yield wrong("database", what, deployment.deploy("indexes"))
    else:
        yield ok("database", f"{deployment.database} is there, and {len(composites)} indexes are READY")
    if prefix:
        yield skipped("backups", f"{deployment.database} is your app's, and so are its backups")
        return
    schedules = gcloud.resource("firestore", "backups", "schedules", "list", database) or []
    if not schedules:
        yield wrong("backups", f"{deployment.database} is never backed up: it has no schedule", mend)
    else:
        yield _check_age(deployment, schedules, now)


def _find_prefix(deployment: Deployment) -> str:
    """Return the prefix of the collections that the api uses."""
    api = deployment.gcloud.resource(
        "run", "services", "describe", f"{deployment.name}-api", f"--region={deployment.region}"
    )
    return find_value(api, "CLOUDSCHED_COLLECTION_PREFIX")


def check_queues(deployment: Deployment) -> Iterator[CheckResult]:
    """Return whether each queue is there and runs."""
    for kind in deployment.list_queues():
        yield check_queue(deployment, kind)


def check_queue(deployment: Deployment, kind: str) -> CheckResult:
    """Return whether a queue is there and runs."""
    name = deployment.queue(kind)
    found = deployment.gcloud.resource("tasks", "queues", "describe", name, f"--location={deployment.region}")
    if found is None:
        return wrong("queues", f"{name} does not exist", deployment.deploy("queues"))
    if found.get("state", "RUNNING") != "RUNNING":
        mend = f"gcloud tasks queues resume {name} {deployment.place('location')}"
        return wrong("queues", f"{name} is {found['state']}", mend)
    limits = found.get("rateLimits", {})
    rate = float(limits.get("maxDispatchesPerSecond", 0))
    return ok("queues", f"{name} runs, {rate:g} a second, {limits.get('maxConcurrentDispatches')} at once")


def check_functions(deployment: Deployment, services: dict[str, Any]) -> Iterator[CheckResult]:
    """Return whether each function is there, ready, and serves."""
    for function in FUNCTIONS:
        yield check_function(deployment, function, services[function])


def check_function(deployment: Deployment, function: str, found: dict[str, Any] | None) -> CheckResult:
    """Return whether a function is there, ready, and serves."""
    name = f"{deployment.name}-{function}"
    if found is None:
        return wrong("functions", f"{name} does not exist", deployment.deploy("functions"))
    status = found.get("status", {})
    for each in status.get("conditions", ()):
        if each.get("type") == "Ready" and each["status"] != "True":
            mend = f"gcloud run services logs read {name} {deployment.place()}, then {deployment.script('rollback.sh')}"
            return wrong("functions", f"{name} is not ready: {each.get('message', '')}", mend)
    return ok("functions", f"{name} serves {status.get('latestReadyRevisionName')}")


def check_secret(deployment: Deployment, services: dict[str, Any]) -> Iterator[CheckResult]:
    """Return whether what each function signs with is enabled, and accepted by the executor."""
    secret = f"{deployment.name}-dispatch"
    listed = deployment.gcloud.lines(
        "secrets", "versions", "list", secret, "--filter=state=ENABLED", "--format=value(name.basename())"
    )
    if listed is None:
        yield wrong("secret", f"there is no secret {secret}", deployment.deploy("secret"))
        return
    enabled = {line.strip() for line in listed}
    mounts = {name: _mounted(found) for name, found in services.items() if found is not None}
    accepted = set(mounts.get("execute", {}).values())
    problems = []
    for function, versions in mounts.items():
        signs_with = versions.get("CLOUDSCHED_SECRET")
        if signs_with is None:
            problems.append(f"{deployment.name}-{function} mounts no secret")
        elif signs_with not in {*enabled, "latest"}:
            problems.append(f"{deployment.name}-{function} mounts version {signs_with}, which is not enabled")
        elif "execute" in mounts and signs_with not in accepted:
            problems.append(f"{deployment.name}-{function} signs with version {signs_with}, which the executor refuses")
    for problem in problems:
        yield wrong("secret", problem, deployment.script("upgrade.sh"))
    if not problems:
        yield ok("secret", f"{secret} has {len(enabled)} enabled, and the functions agree")


def _mounted(service: dict[str, Any]) -> dict[str, str]:
    """Return the versions of the dispatch secret that a service mounts, by variable."""
    found = {}
    for each in environment(service):
        reference = each.get("valueFrom", {}).get("secretKeyRef")
        if reference is not None and each["name"] in {"CLOUDSCHED_SECRET", "CLOUDSCHED_PREVIOUS_SECRET"}:
            found[each["name"]] = str(reference["key"])
    return found


def find_service(deployment: Deployment, function: str) -> dict[str, Any] | None:
    """Return a function's Cloud Run service with the revision that serves, which after a rollback is not the newest."""
    name = (f"{deployment.name}-{function}", f"--region={deployment.region}")
    found: dict[str, Any] | None = deployment.gcloud.resource("run", "services", "describe", *name)
    status = (found or {}).get("status", {})
    serving = max(status.get("traffic") or [{}], key=lambda part: part.get("percent", 0)).get("revisionName")
    if found is None or serving in {None, status.get("latestCreatedRevisionName")}:
        return found
    revision = deployment.gcloud.resource("run", "revisions", "describe", serving, name[1])
    found["spec"]["template"]["spec"] = (revision or {}).get("spec", {})
    status["latestReadyRevisionName"] = serving
    return found


def find_value(service: dict[str, Any] | None, name: str) -> str:
    """Return a variable of a service's environment, empty if it has none."""
    return next((each.get("value", "") for each in environment(service or {}) if each["name"] == name), "")


def environment(service: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the environment of a Cloud Run service's revision that serves."""
    containers = service.get("spec", {}).get("template", {}).get("spec", {}).get("containers") or [{}]
    found: list[dict[str, Any]] = containers[0].get("env") or []
    return found


def count_queues(service: dict[str, Any] | None) -> int:
    """Return the number of queues over which a service spreads each priority's dispatches."""
    text = find_value(service, "CLOUDSCHED_QUEUES_PER_PRIORITY")
    return int(text) if text.isdecimal() and 0 < int(text) <= MAX_QUEUES_PER_PRIORITY else 1


def check_job(deployment: Deployment, now: datetime) -> Iterator[CheckResult]:
    """Return whether Cloud Scheduler calls the sweep, and the last call was recent and succeeded."""
    name = f"{deployment.name}-sweep"
    found = deployment.gcloud.resource("scheduler", "jobs", "describe", name, f"--location={deployment.region}")
    if found is None:
        yield wrong("sweep", f"there is no job {name}", deployment.deploy("sweep"))
        return
    if found.get("state", "ENABLED") != "ENABLED":
        mend = f"gcloud scheduler jobs resume {name} {deployment.place('location')}"
        yield wrong("sweep", f"the job {name} is {found['state']}", mend)
        return
    last = found.get("lastAttemptTime")
    since = _parse(last or found.get("userUpdateTime", "2000-01-01T00:00:00Z"))
    is_late = now > _next_sweep(found, since) + SWEEP_LIMIT
    code = found.get("status", {}).get("code", 0)
    run = f"gcloud scheduler jobs run {name} {deployment.place('location')}"
    if code:
        log = f"gcloud run services logs read {name} {deployment.place()}"
        mend = f"{deployment.script('deploy.sh', '--check')}, and {log}"
        yield wrong("sweep", f"the last call of the job {name} failed with status {code}", mend)
    elif last is None:
        what = f"the job {name} has not run yet"
        yield unknown("sweep", what, run) if is_late else ok("sweep", f"{what}: it was made a moment ago")
    elif is_late:
        yield wrong("sweep", f"the last sweep began {(now - since).total_seconds():.0f} s ago", run)
    else:
        yield ok("sweep", f"the last one began {(now - since).total_seconds():.0f} s ago, and succeeded")


def _next_sweep(job: dict[str, Any], since: datetime) -> datetime:
    """Return when a job has to run next. A notation that only Cloud Scheduler knows counts as every minute."""
    try:
        return Schedule.parse(job.get("schedule", "")).next_after(since) or datetime.max.replace(tzinfo=UTC)
    except InvalidSchedule:
        return since + timedelta(minutes=1)


def check_access(deployment: Deployment, services: dict[str, Any]) -> Iterator[CheckResult]:
    """Check that only accounts may call the private functions.

    An API that believes Cloud Run is among that: it accepts tokens without a signature.
    """
    trusts = find_value(services["api"], "CLOUDSCHED_TRUST_CLOUD_RUN") == "on"
    is_open = False
    for function in ("execute", "sweep", *(["api"] if trusts else [])):
        name = f"{deployment.name}-{function}"
        place = f"{name} {deployment.place()}"
        annotations = (services[function] or {}).get("metadata", {}).get("annotations", {})
        try:
            found = deployment.gcloud.bindings(
                "run", "services", "get-iam-policy", name, f"--region={deployment.region}"
            )
            found = found or set()
        except Unavailable as error:
            mend = f"ask an owner for roles/iam.securityReviewer on {deployment.gcloud.project}"
            yield unknown("iam", f"{name}: its policy cannot be read: {error.reason}", mend)
            continue
        mends = [
            f"gcloud run services remove-iam-policy-binding {place} --member={member} --role={_INVOKER}"
            for member in _EVERYBODY
            if (_INVOKER, member) in found
        ]
        if annotations.get(_UNCHECKED) == "true":
            mends.append(f"gcloud run services update {place} --invoker-iam-check")
        for mend in mends:
            is_open = True
            yield wrong("iam", f"everybody may call {name}", mend)
    if not is_open:
        yield ok("iam", "not everybody may call what only accounts may")


def _check_age(deployment: Deployment, schedules: list[Any], now: datetime) -> CheckResult:
    listed = deployment.gcloud.resource("firestore", "backups", "list") or []
    own = [each for each in listed if str(each.get("database", "")).endswith(f"/databases/{deployment.database}")]
    ready = [_parse(each["snapshotTime"]) for each in own if each.get("state") == "READY"]
    limit = MAX_BACKUP_AGE if any("dailyRecurrence" in each for each in schedules) else timedelta(days=8)
    project = deployment.gcloud.project
    mend = (
        f"gcloud firestore backups list --project={project}, and gcloud firestore operations list --project={project}"
    )
    if ready:
        age = now - max(ready)
        shown = f"{age.days} days" if age.days > 1 else f"{max(0, round(age / timedelta(hours=1)))} hours"
        what = f"the last backup of {deployment.database} is {shown} old"
        return ok("backups", what) if age <= limit else wrong("backups", what, mend)
    begun = [_parse(each["createTime"]) for each in schedules if "createTime" in each]
    if begun and now - min(begun) <= limit:
        return ok("backups", f"the first backup of {deployment.database} is made within a day")
    return unknown("backups", f"there is no backup of {deployment.database} yet", mend)


def _parse(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
