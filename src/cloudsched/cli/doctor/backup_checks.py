"""Whether a deployment's database could be had back: what protects it, how old its last backup is, and who tried."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from cloudsched.cli.doctor.deployment import ok, skipped, unknown, wrong

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudsched.cli.doctor.deployment import Deployment, Finding

MAX_BACKUP_AGE = timedelta(hours=30)
"""How old the last backup may be of a database that is backed up each day: the time of day is Firestore's choice."""
REHEARSED_EVERY = timedelta(days=180)
"""How long ago a restore may have been tried."""
_HOW = "docs/how-to/backup.md#rehearse-it"


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
    yield _check_rehearsal(deployment, now)


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


def _check_rehearsal(deployment: Deployment, now: datetime) -> Finding:
    """Return when the deployment last moved to another database, as it does to one that was restored."""
    secret = deployment.gcloud.resource("secrets", "describe", deployment.secret) or {}
    text = str(secret.get("annotations", {}).get("moved.at", ""))
    if not text.isdecimal():
        return skipped("backups", f"no restore was ever tried here; {_HOW}")
    age = now - datetime.fromtimestamp(int(text), UTC)
    what = f"a restored database was last put to use {_say(age)} ago"
    return ok("backups", what) if age <= REHEARSED_EVERY else skipped("backups", f"{what}; {_HOW}")


def _parse(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _say(age: timedelta) -> str:
    return f"{age.days} days" if age.days > 1 else f"{max(0, round(age / timedelta(hours=1)))} hours"
