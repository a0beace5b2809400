"""Firestore in the fake project: databases, their protection, indexes and schedules of backups, and who uses them."""

from __future__ import annotations

import json
import zlib
from copy import deepcopy
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tests.deployables.fake_resources import PROJECT, Call, State, fail, format_resource, get_env

if TYPE_CHECKING:
    from tests.deployables.fake_gcloud import FakeCloud

DATABASE = "cloudsched"
"""The one that a deployment has if its configuration names none."""
LOCATIONS = ("us-central1", "us-east1", "europe-west1", "europe-west3", "nam5", "eur3")
"""Some of the places where Firestore is."""
ON, OFF = "ENABLED", "DISABLED"
FUNCTIONS = ("execute", "sweep", "api", "links")


def run_firestore(cloud: FakeCloud, call: Call) -> None:
    if call.words == ["firestore", "backups", "list"]:  # of all databases
        cloud.say(json.dumps(cloud.state.get("backups", [])))
        return
    database = call.flags["database"]
    key = f"database/{database}"
    if call.words[1:3] == ["databases", "create"]:
        _create_database(cloud, call, key)
    elif key not in cloud.state:
        fail("NOT_FOUND: The database does not exist.")
    elif call.words[1] == "databases":
        _change_database(cloud, call, key)
    elif call.words[1] == "backups":
        _schedule(cloud, call, cloud.state[key])
    elif call.words[1:4] == ["indexes", "composite", "delete"]:
        indexes = cloud.state[key_of("indexes", database)]
        kept = [each for each in indexes if each["name"] != call.words[4]]
        if len(kept) == len(indexes):
            fail("NOT_FOUND: no such index")
        cloud.change(lambda: cloud.state.update({key_of("indexes", database): kept}))
    elif call.words[-1] == "list":
        fields, indexes = cloud.state[key_of("fields", database)], cloud.state[key_of("indexes", database)]
        visible = indexes[: len(indexes) - cloud.hidden_indexes]
        cloud.say(json.dumps(visible if call.words[2] == "composite" else list(fields.values())))
        _poll(cloud, indexes, fields)
    else:
        _index(cloud, call, database)


def _create_database(cloud: FakeCloud, call: Call, key: str) -> None:
    if key in cloud.state:
        fail("ALREADY_EXISTS")
    if call.flags["location"] not in LOCATIONS:
        fail("INVALID_ARGUMENT: Invalid location.")
    cloud.require_allowed("gcp.resourceLocations", call.flags["location"])
    cloud.change(lambda: make_database(cloud.state, call.flags["database"], call.flags))


def key_of(what: str, database: str) -> str:
    """Return where a database's indexes or fields are kept."""
    return what if database == DATABASE else f"{what}/{database}"


OWN_COLLECTIONS = ("inboxes", "people", "sweeps", "tasks", "usage", "zones")
"""Some of those that a deployment has once it has swept."""


def list_collections(state: State, url: str) -> tuple[int, State]:
    """Answer which collections a database has at its top, as `documents:listCollectionIds` does."""
    database = url.partition("/databases/")[2].partition("/")[0]
    if f"database/{database}" not in state:
        return 404, {}
    found = state[key_of("collections", database)]
    return 200, {"collectionIds": found} if found else {}


def make_database(state: State, database: str, flags: dict[str, str] | None = None, **fields: str) -> None:
    """Make a database: without flags as a restore does, which has the backup's data and nothing that protects them.

    Delete protection, point-in-time recovery, schedules and TTL policies are no part of a backup
    (firebase.google.com/docs/firestore/backups).
    """
    flags = flags or {}
    state[f"database/{database}"] = {
        "name": f"projects/{PROJECT}/databases/{database}",
        "type": "FIRESTORE_NATIVE",
        "databaseEdition": "STANDARD",
        "locationId": flags.get("location", "us-central1"),
        "deleteProtectionState": f"DELETE_PROTECTION_{ON if 'delete-protection' in flags else OFF}",
        "pointInTimeRecoveryEnablement": f"POINT_IN_TIME_RECOVERY_{ON if 'enable-pitr' in flags else OFF}",
        "schedules": [],
    } | fields
    state[key_of("collections", database)] = [] if flags else [*OWN_COLLECTIONS]
    state[key_of("indexes", database)] = []
    state[key_of("fields", database)] = {}


def _change_database(cloud: FakeCloud, call: Call, key: str) -> None:
    found = cloud.state[key]
    if call.words[2] == "describe":
        cloud.say(format_resource(found, call.flags["format"]))
    elif call.words[2] == "update":
        changes = {}
        for flag, field, prefix in (
            ("delete-protection", "deleteProtectionState", "DELETE_PROTECTION"),
            ("enable-pitr", "pointInTimeRecoveryEnablement", "POINT_IN_TIME_RECOVERY"),
        ):
            if flag in call.flags or f"no-{flag}" in call.flags:
                changes[field] = f"{prefix}_{ON if flag in call.flags else OFF}"
        cloud.change(lambda: found.update(changes))
    elif found["deleteProtectionState"].endswith(ON):
        fail("FAILED_PRECONDITION: Delete protection is enabled.")
    else:
        names = [key, *(key_of(what, call.flags["database"]) for what in ("collections", "indexes", "fields"))]
        cloud.change(lambda: [cloud.state.pop(name, None) for name in names])


def _schedule(cloud: FakeCloud, call: Call, database: State) -> None:
    schedules = database["schedules"]
    if call.words[3] == "list":
        if call.flags["format"] == "json":
            cloud.say(json.dumps(schedules))
            return
        cloud.say("\n".join(format_resource(each, call.flags["format"]) for each in schedules))
        return
    retention = f"{int(call.flags['retention'].removesuffix('d')) * 86_400}s"
    if call.words[3] == "update":
        found = next(each for each in schedules if each["name"].endswith(f"/{call.flags['backup-schedule']}"))
        cloud.change(lambda: found.update(retention=retention))
        return
    if any("dailyRecurrence" in each for each in schedules) and call.flags["recurrence"] == "daily":
        fail("ALREADY_EXISTS: A daily backup schedule already exists.")
    name = f"{database['name']}/backupSchedules/{len(schedules) + 1}"
    recurrence: State = {f"{call.flags['recurrence']}Recurrence": {}}
    made = f"{datetime.fromtimestamp(cloud.delays.time, UTC):%Y-%m-%dT%H:%M:%SZ}"
    cloud.change(lambda: schedules.append({"name": name, "retention": retention, "createTime": made} | recurrence))


def _poll(cloud: FakeCloud, composites: list[State], fields: State) -> None:
    """Let every index become ready once the indexes have been listed often enough."""
    cloud.polls += 1
    if cloud.polls < cloud.build_polls:
        return
    overrides = (field.get("indexConfig", {}).get("indexes", ()) for field in fields.values())
    for index in [*composites, *(index for indexes in overrides for index in indexes)]:
        if index["state"] == "CREATING":
            index["state"] = "READY"


def _index(cloud: FakeCloud, call: Call, database: str) -> None:
    if cloud.contended:
        cloud.contended -= 1
        fail("ABORTED: Aborted due to cross-transaction contention. Please retry.")
    cloud.polls = 0
    group = f"projects/p/databases/d/collectionGroups/{call.flags['collection-group']}"
    if call.words[2] == "composite":
        index = _shape(call, group)
        indexes = cloud.state[key_of("indexes", database)]
        if any(other | {"state": ""} == index | {"state": ""} for other in indexes):
            fail("ALREADY_EXISTS: index already exists")
        cloud.change(lambda: indexes.append(index))
        return
    path = call.words[-1]
    name = f"{group}/fields/{path}"
    fields = cloud.state[key_of("fields", database)]
    field = fields.get(name, {}) | {"name": name}
    if call.words[1] == "fields":
        field["ttlConfig"] = {"state": "CREATING"}
    else:
        shapes = [{"fieldPath": path, "order": order.removeprefix("order=").upper()} for order in call.indexes]
        kept = {index["fields"][0]["order"]: index for index in field.get("indexConfig", {}).get("indexes", ())}
        new = {"queryScope": "COLLECTION", "state": "CREATING"}
        field["indexConfig"] = {"indexes": [kept.get(shape["order"], new | {"fields": [shape]}) for shape in shapes]}
    cloud.change(lambda: fields.update({name: field}))


def _shape(call: Call, group: str) -> State:
    shapes = [dict(part.split("=") for part in field.split(",")) for field in call.fields]
    fields = [
        {"fieldPath": shape["field-path"], "order": shape["order"].upper()}
        if "order" in shape
        else {"fieldPath": shape["field-path"], "arrayConfig": shape["array-config"].upper()}
        for shape in shapes
    ]
    last = {"fieldPath": "__name__", "order": fields[-1]["order"]}
    scope = call.flags.get("query-scope", "collection").upper().replace("-", "_")
    shape = {"queryScope": scope, "fields": [*fields, last]}
    return {"name": f"{group}/indexes/{zlib.crc32(json.dumps(shape).encode())}", **shape, "state": "CREATING"}


# ── An app of somebody else's ────────────────────────────────────────────────────────────────────────────────────────

CREATED = {"fieldPath": "createdAt", "order": "ASCENDING"}
GROUPS = f"projects/{PROJECT}/databases/(default)/collectionGroups"


def add_app(state: State) -> State:
    """Add an app of Firebase, whose collections are called as some of ours; return what it has."""
    make_database(state, "(default)")
    release = f"projects/{PROJECT}/releases/cloud.firestore"
    state |= {
        key_of("collections", "(default)"): ["chats", "messages", "people", "tasks"],
        key_of("indexes", "(default)"): [
            {
                "name": f"{GROUPS}/messages/indexes/1",
                "queryScope": "COLLECTION_GROUP",
                "state": "READY",
                "fields": [
                    {"fieldPath": "room", "order": "ASCENDING"},
                    {"fieldPath": "createdAt", "order": "ASCENDING"},
                ],
            }
        ],
        key_of("fields", "(default)"): {
            f"{GROUPS}/messages/fields/createdAt": {
                "name": f"{GROUPS}/messages/fields/createdAt",
                "indexConfig": {"indexes": [{"queryScope": "COLLECTION_GROUP", "state": "READY", "fields": [CREATED]}]},
            },
            f"{GROUPS}/sessions/fields/expireAt": {
                "name": f"{GROUPS}/sessions/fields/expireAt",
                "ttlConfig": {"state": "ACTIVE"},
            },
        },
        f"rules/{release}": {"name": release, "rulesetName": f"projects/{PROJECT}/rulesets/app"},
        f"rules/projects/{PROJECT}/rulesets/app": {
            "name": f"projects/{PROJECT}/rulesets/app",
            "source": {"files": [{"name": "firestore.rules", "content": "service cloud.firestore {}"}]},
        },
    }
    return get_app(state)


def get_app(state: State) -> State:
    own = (f"rules/projects/{PROJECT}/releases/cloud.firestore", f"rules/projects/{PROJECT}/rulesets/app")
    keys = ("database/(default)", *(key_of(each, "(default)") for each in ("collections", "indexes", "fields")), *own)
    return deepcopy({key: state[key] for key in keys})


# ── Who uses them ────────────────────────────────────────────────────────────────────────────────────────────────────


def may_use(cloud: FakeCloud, revision: State) -> bool:
    """Return whether a revision can use the database that its settings name: there is one, and its account may."""
    database = get_env(revision)["CLOUDSCHED_DATABASE"]
    condition = f'expression=resource.name=="projects/{PROJECT}/databases/{database}",title=cloudsched-database'
    member = f"serviceAccount:{revision['service-account']}"
    is_allowed = cloud.is_granted(f"project/{PROJECT}", member, "roles/datastore.user", condition)
    return is_allowed and f"database/{database}" in cloud.state


def find_served(cloud: FakeCloud) -> set[str]:
    """Return the databases that requests can change now: each revision that gets some uses that of its own settings.

    Nobody but the queues calls the executor, and nobody but the job calls the sweep.
    """
    state = cloud.state
    queues = [each for key, each in state.items() if key.startswith("queue/")]
    is_called = {
        "execute": any(each.get("state", "RUNNING") == "RUNNING" for each in queues),
        "sweep": state.get("job/cloudsched-sweep", {"state": "PAUSED"}).get("state", "ENABLED") == "ENABLED",
    }
    found = set()
    for function in FUNCTIONS:
        status = state.get(f"service/cloudsched-{function}", {"status": {"traffic": []}})["status"]
        for part in status["traffic"] if is_called.get(function, True) else ():
            revision = status["revisions"][part["revisionName"]]
            if part["percent"] and may_use(cloud, revision):
                found.add(get_env(revision)["CLOUDSCHED_DATABASE"])
    return found
