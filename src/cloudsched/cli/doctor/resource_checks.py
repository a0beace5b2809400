"""A deployment's resources: APIs, database, indexes, TTL, queues, secret, functions, the sweep's job, backups."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from cloudsched.cli.doctor.deployment import FUNCTIONS, LINKS, SERVICES, Deployment, Finding, ok, unknown, wrong
from cloudsched.config.settings import MAX_QUEUES_PER_PRIORITY

MAX_RATE = 500
"""Dispatches a second of one Cloud Tasks queue."""
RISING = {"createdAt", "unlisted.createdAt", "nextExecutionTime", "wakeAt", "order", "writtenAt"}
"""The fields whose values rise: ranges of them that nothing leads are replaced by shards."""
MIN_ATTEMPTS = 100
"""The least attempts of a queue before it gives up."""
SWEEP_LIMIT = timedelta(minutes=3)
"""The longest time since the last sweep began."""


def check_services(deployment: Deployment) -> Iterator[Finding]:
    """Return whether each API that is needed is on."""
    enabled = set(deployment.gcloud.lines("services", "list", "--enabled", "--format=value(config.name)") or ())
    missing = [f"{each}.googleapis.com" for each in SERVICES if f"{each}.googleapis.com" not in enabled]
    if missing:
        project = deployment.gcloud.project
        mend = f"gcloud services enable {' '.join(missing)} --project={project}"
        yield wrong("apis", f"{', '.join(missing)}: not enabled", mend)
    else:
        yield ok("apis", f"all {len(SERVICES)} are enabled")


def check_database(deployment: Deployment) -> Iterator[Finding]:
    """Return whether the database is there, and its indexes and TTL policies are there and ready."""
    gcloud, database = deployment.gcloud, f"--database={deployment.database}"
    found = gcloud.resource("firestore", "databases", "describe", database)
    if found is None:
        yield wrong("database", f"there is no database {deployment.database}", deployment.deploy("database"))
        return
    if found.get("type") != "FIRESTORE_NATIVE":
        mend = "set DATABASE to another ID in infra/config.sh"
        yield wrong("database", f"{deployment.database} is {found.get('type')}, not in native mode", mend)
        return
    yield ok("database", f"{deployment.database} is in native mode")
    composites = gcloud.resource("firestore", "indexes", "composite", "list", database) or []
    fields = gcloud.resource("firestore", "indexes", "fields", "list", database) or []
    yield _check_indexes(deployment, composites, fields)
    policies = gcloud.resource("firestore", "fields", "ttls", "list", database) or []
    yield _check_ttl(deployment, policies)


def _check_indexes(deployment: Deployment, composites: list[Any], fields: list[Any]) -> Finding:
    single = [index for field in fields for index in field.get("indexConfig", {}).get("indexes", ())]
    unready = [index for index in [*composites, *single] if index.get("state") != "READY"]
    missing: list[str] = []
    if deployment.files is not None:
        content = json.loads((deployment.files / "firestore.indexes.json").read_text("utf-8"))
        present = {(_segment(each["name"], "collectionGroups"), _paths(each)) for each in composites}
        missing = [
            f"{each['collectionGroup']} ({', '.join(_paths(each))})"
            for each in _expect_indexes(content, present)
            if (each["collectionGroup"], _paths(each)) not in present
        ]
    if missing:
        what = f"{len(missing)} are missing, such as {missing[0]}"
        return wrong("indexes", what, deployment.deploy("indexes"))
    if unready:
        states = ", ".join(sorted({str(index.get("state")) for index in unready}))
        what = f"{len(unready)} of {len(composites) + len(single)} are not READY ({states})"
        mend = f"gcloud firestore operations list --database='{deployment.database}'"
        return wrong("indexes", what, mend)
    if not composites:
        return wrong("indexes", "there are none", deployment.deploy("indexes"))
    known = "" if deployment.files else "; run this in a clone to compare them with its index file"
    return ok("indexes", f"{len(composites) + len(single)} are READY{known}")


def _expect_indexes(content: dict[str, Any], present: set[tuple[str, tuple[str, ...]]]) -> list[dict[str, Any]]:
    """Return the composite indexes that a database needs. With those of several shards, some others may be gone."""
    sharded = content.get("sharded", {}).get("indexes", [])
    if not any((each["collectionGroup"], _paths(each)) in present for each in sharded):
        return list(content["indexes"])
    kept = [each for each in content["indexes"] if not is_replaced(each["collectionGroup"], _paths(each))]
    return [*kept, *sharded]


def is_replaced(group: str, paths: Sequence[str]) -> bool:
    """Return whether shards replace an index, as ``infra/lib/firestore_indexes.py`` says."""
    is_led = any(path in {"owner", "parent.taskId"} or path.rpartition(".")[2] == "shard" for path in paths)
    return group in {"tasks", "offers"} and paths[-1] in RISING and not is_led


def _check_ttl(deployment: Deployment, policies: list[Any]) -> Finding:
    present = {
        (_segment(each["name"], "collectionGroups"), _segment(each["name"], "fields")): each["ttlConfig"]
        for each in policies
        if each.get("ttlConfig")
    }
    wanted = {("executions", "expireAt"), ("messages", "expireAt")}
    if deployment.files is not None:
        listed = json.loads((deployment.files / "firestore.ttl.json").read_text("utf-8"))
        wanted = {(each["collectionGroup"], each["fieldPath"]) for each in listed}
    missing = sorted(".".join(each) for each in wanted if each not in present)
    if missing:
        return wrong("ttl", f"{', '.join(missing)}: no policy, so old documents stay", deployment.deploy("indexes"))
    broken = sorted(".".join(each) for each in wanted if present[each].get("state") == "NEEDS_REPAIR")
    if broken:
        what = f"{', '.join(broken)}: NEEDS_REPAIR"
        return wrong("ttl", what, f"gcloud firestore operations list --database='{deployment.database}'")
    return ok("ttl", f"{len(wanted)} policies")


def _segment(name: str, kind: str) -> str:
    segments = name.split("/")
    return segments[segments.index(kind) + 1].strip("`")


def _paths(index: dict[str, Any]) -> tuple[str, ...]:
    return tuple(path for each in index["fields"] if (path := each["fieldPath"].strip("`")) != "__name__")


def check_queues(deployment: Deployment, capacity: int | None) -> Iterator[Finding]:
    """Return whether each queue is there, runs, and has limits that Cloud Tasks and the executor can keep up with.

    Args:
        deployment: The deployment.
        capacity: The number of dispatches that the executor takes at once, None if that is unknown.
    """
    together = 0
    for kind in deployment.list_queues():
        name = deployment.queue(kind)
        found = deployment.gcloud.resource("tasks", "queues", "describe", name, f"--location={deployment.region}")
        if found is None:
            yield wrong("queues", f"{name} does not exist", deployment.deploy("queues"))
            continue
        limits, retry = found.get("rateLimits", {}), found.get("retryConfig", {})
        together += int(limits.get("maxConcurrentDispatches", 0))
        if found.get("state", "RUNNING") != "RUNNING":
            mend = f"gcloud tasks queues resume {name} --location={deployment.region}"
            yield wrong("queues", f"{name} is {found['state']}", mend)
        elif 0 < int(retry.get("maxAttempts", 0)) < MIN_ATTEMPTS:
            what = f"{name} gives up after {retry.get('maxAttempts')} attempts"
            yield wrong("queues", what, deployment.deploy("queues"))
        elif not 0 < float(limits.get("maxDispatchesPerSecond", 0)) <= MAX_RATE:
            yield wrong("queues", f"{name} dispatches nothing", deployment.deploy("queues"))
        else:
            rate = float(limits["maxDispatchesPerSecond"])
            yield ok("queues", f"{name} runs, {rate:g} a second, {limits.get('maxConcurrentDispatches')} at once")
    if capacity is not None and together > capacity:
        what = f"they send up to {together} dispatches at once, and the executor takes {capacity}"
        yield wrong("queues", what, "raise EXECUTE_MAX_INSTANCES in infra/config.sh, then infra/upgrade.sh")


def check_functions(deployment: Deployment, services: dict[str, Any]) -> Iterator[Finding]:
    """Return whether each function is there, ready, and serves, and whether their secrets fit together."""
    for function in (*FUNCTIONS, LINKS):
        name, found = f"{deployment.name}-{function}", services[function]
        if found is None and function == LINKS and not leads_links_to(name, services["api"]):
            continue
        if found is None:
            yield wrong("functions", f"{name} does not exist", deployment.deploy("functions"))
            continue
        status = found.get("status", {})
        bad = [
            each for each in status.get("conditions", ()) if each.get("type") == "Ready" and each["status"] != "True"
        ]
        if bad:
            mend = f"gcloud run services logs read {name} --region={deployment.region}, then infra/rollback.sh"
            yield wrong("functions", f"{name} is not ready: {bad[0].get('message', '')}", mend)
        else:
            yield ok("functions", f"{name} serves {status.get('latestReadyRevisionName')}")


def leads_links_to(name: str, api: dict[str, Any] | None) -> bool:
    """Return whether links in mails lead to the function of this name."""
    url = next(
        (each.get("value", "") for each in environment(api or {}) if each["name"] == "CLOUDSCHED_PUBLIC_URL"), ""
    )
    return url.startswith(f"https://{name}-")


def check_secret(deployment: Deployment, services: dict[str, Any]) -> Iterator[Finding]:
    """Return whether what each function signs with is enabled, and accepted by the executor."""
    listed = deployment.gcloud.lines(
        "secrets", "versions", "list", deployment.secret, "--filter=state=ENABLED", "--format=value(name.basename())"
    )
    if listed is None:
        yield wrong("secret", f"there is no secret {deployment.secret}", deployment.deploy("secret"))
        return
    enabled = {line.strip() for line in listed}
    mounts = {name: _mounted(found) for name, found in services.items() if found is not None and name != LINKS}
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
        yield wrong("secret", problem, "infra/upgrade.sh")
    if not problems:
        yield ok("secret", f"{deployment.secret} has {len(enabled)} enabled, and the functions agree")


def _mounted(service: dict[str, Any]) -> dict[str, str]:
    """Return the versions of the dispatch secret that a service mounts, by variable."""
    found = {}
    for each in environment(service):
        reference = each.get("valueFrom", {}).get("secretKeyRef")
        if reference is not None and each["name"] in {"CLOUDSCHED_SECRET", "CLOUDSCHED_PREVIOUS_SECRET"}:
            found[each["name"]] = str(reference["key"])
    return found


def environment(service: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the environment of a Cloud Run service's newest revision."""
    containers = service.get("spec", {}).get("template", {}).get("spec", {}).get("containers") or [{}]
    found: list[dict[str, Any]] = containers[0].get("env") or []
    return found


def count_queues(service: dict[str, Any] | None) -> int:
    """Return over how many queues a service spreads the dispatches of each priority."""
    found = {each["name"]: each.get("value", "") for each in environment(service or {})}
    text = found.get("CLOUDSCHED_QUEUES_PER_PRIORITY", "")
    return int(text) if text.isdecimal() and 0 < int(text) <= MAX_QUEUES_PER_PRIORITY else 1


def capacity_of(service: dict[str, Any] | None) -> int | None:
    """Return the number of requests that a service takes at once, None if that is unknown."""
    if service is None:
        return None
    template = service.get("spec", {}).get("template", {})
    most = template.get("metadata", {}).get("annotations", {}).get("autoscaling.knative.dev/maxScale")
    each = template.get("spec", {}).get("containerConcurrency")
    return int(most) * int(each) if most and each else None


def check_job(deployment: Deployment, now: datetime) -> Iterator[Finding]:
    """Return whether Cloud Scheduler calls the sweep, and the last call was recent and succeeded."""
    name = f"{deployment.name}-sweep"
    found = deployment.gcloud.resource("scheduler", "jobs", "describe", name, f"--location={deployment.region}")
    if found is None:
        yield wrong("sweep", f"there is no job {name}", deployment.deploy("sweep"))
        return
    if found.get("state", "ENABLED") != "ENABLED":
        mend = f"gcloud scheduler jobs resume {name} --location={deployment.region}"
        yield wrong("sweep", f"the job {name} is {found['state']}", mend)
        return
    last = found.get("lastAttemptTime")
    if last is None:
        mend = f"gcloud scheduler jobs run {name} --location={deployment.region}"
        yield unknown("sweep", f"the job {name} has not run yet", mend)
        return
    age = now - datetime.fromisoformat(last).astimezone(UTC)
    code = found.get("status", {}).get("code", 0)
    if code:
        mend = f"infra/deploy.sh --check, and gcloud run services logs read {name} --region={deployment.region}"
        yield wrong("sweep", f"the last call of the job {name} failed with status {code}", mend)
    elif age > SWEEP_LIMIT:
        mend = f"gcloud scheduler jobs run {name} --location={deployment.region}"
        yield wrong("sweep", f"the last sweep began {age.total_seconds():.0f} s ago", mend)
    else:
        yield ok("sweep", f"the last one began {age.total_seconds():.0f} s ago, and succeeded")


MAX_BACKUP_AGE = timedelta(hours=30)
"""The greatest age of the last backup of a database that is backed up each day: Firestore chooses the time of day."""


def check_backups(deployment: Deployment, now: datetime) -> Iterator[Finding]:
    """Return whether the database is protected, was backed up lately, and when a restore was last tried."""
    gcloud, database = deployment.gcloud, f"--database={deployment.database}"
    found = gcloud.resource("firestore", "databases", "describe", database)
    if found is None:
        return  # which is said elsewhere
    mend = deployment.deploy("database")
    if found.get("deleteProtectionState") != "DELETE_PROTECTION_ENABLED":
        yield wrong("backups", f"{deployment.database} may be deleted by mistake: no delete protection", mend)
    if found.get("pointInTimeRecoveryEnablement") != "POINT_IN_TIME_RECOVERY_ENABLED":
        yield wrong("backups", f"{deployment.database} has no point-in-time recovery", mend)
    schedules = gcloud.resource("firestore", "backups", "schedules", "list", database) or []
    if not schedules:
        yield wrong("backups", f"{deployment.database} is never backed up: it has no schedule", mend)
    else:
        yield _check_age(deployment, schedules, now)


def _check_age(deployment: Deployment, schedules: list[Any], now: datetime) -> Finding:
    listed = deployment.gcloud.resource("firestore", "backups", "list") or []
    own = [each for each in listed if str(each.get("database", "")).endswith(f"/databases/{deployment.database}")]
    ready = [_parse(each["snapshotTime"]) for each in own if each.get("state") == "READY"]
    limit = MAX_BACKUP_AGE if any("dailyRecurrence" in each for each in schedules) else timedelta(days=8)
    mend = "gcloud firestore backups list, and gcloud firestore operations list"
    if ready:
        age = now - max(ready)
        what = f"the last backup of {deployment.database} is {_say(age)} old"
        return ok("backups", what) if age <= limit else wrong("backups", what, mend)
    begun = [_parse(each["createTime"]) for each in schedules if "createTime" in each]
    if begun and now - min(begun) <= limit:
        return ok("backups", f"the first backup of {deployment.database} is made within a day")
    return unknown("backups", f"there is no backup of {deployment.database} yet", mend)


def _parse(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _say(age: timedelta) -> str:
    return f"{age.days} days" if age.days > 1 else f"{max(0, round(age / timedelta(hours=1)))} hours"
