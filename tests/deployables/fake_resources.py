"""The resources of the fake Google Cloud project: how commands create, update and format them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, NoReturn

PROJECT = "demo-project"
NUMBER = "123456789012"
MAX_ANNOTATIONS = 16_384
"""Bytes of all annotations of a secret (cloud.google.com/secret-manager/docs/reference/rest/v1/projects.secrets)."""
OPERATOR = "operator@example.com"
"""gcloud's active account."""

State = dict[str, Any]


def member_of(account: str) -> str:
    return f"{'serviceAccount' if account.endswith('.gserviceaccount.com') else 'user'}:{account}"


class Refusal(Exception):
    """The cloud refuses a command."""


class Call:
    """A parsed command line."""

    def __init__(self, arguments: list[str], stdin: str = "") -> None:
        self.stdin = stdin
        self.words = [word for word in arguments if not word.startswith("--")]
        flags = [word[2:].partition("=") for word in arguments if word.startswith("--")]
        self.flags = {
            name: value if equals else "yes" for name, equals, value in flags if name not in {"field-config", "index"}
        }
        self.fields = [value for name, _, value in flags if name == "field-config"]
        self.indexes = [value for name, _, value in flags if name == "index"]

    def starts(self, words: str) -> bool:
        wanted = words.split()
        return self.words[: len(wanted)] == wanted


def fail(message: str) -> NoReturn:
    raise Refusal(f"ERROR: (gcloud) {message}")


def format_resource(resource: Any, form: str) -> str:  # noqa: ANN401 - any JSON
    """Format a resource as its command's --format flag demands."""
    if form == "json":
        return json.dumps(resource)
    if form.startswith("json("):
        keys = [each.split(".", maxsplit=1)[0] for each in form[5:-1].split(",")]
        return json.dumps({key: resource[key] for key in keys if key in resource} or None)

    def value(path: str) -> str:
        found = resource
        for key in path.removesuffix(".basename()").split("."):
            found = found.get(key, "") if isinstance(found, dict) else ""
        return str(found).rpartition("/")[2] if path.endswith("basename()") else str(found)

    return "\t".join(value(path) for path in form[6:-1].split(","))


def describe_resource(key: str, resource: State, call: Call) -> list[str]:
    form = call.flags["format"]
    if (
        key.startswith("job/") and resource.get("state") == "ENABLED"
    ):  # it runs each minute, unless a test says otherwise
        resource = {"lastAttemptTime": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"} | resource
    if key.startswith("secret/"):
        resource = resource | {"etag": get_etag(resource)}
    if "flatten" in call.flags:
        return [format_resource({"status": {"traffic": part}}, form) for part in resource["status"]["traffic"]]
    return [format_resource(to_knative(resource) if key.startswith("service/") and form == "json" else resource, form)]


def list_queues(state: State, call: Call) -> str:
    return "\n".join(format_resource(state[key], call.flags["format"]) for key in state if key.startswith("queue/"))


KINDS = {
    "tasks queues": "queue",
    "iam service-accounts": "account",
    "secrets": "secret",
    "run services": "service",
    "scheduler jobs": "job",
    "storage buckets": "bucket",
    "logging sinks": "sink",
    "projects": "project",
    "artifacts repositories": "repository",
}


def create_resource(state: State, call: Call, key: str) -> None:
    kind, _, name = key.partition("/")
    if kind in {"queue", "job"}:
        state[key] = {"name": name, "state": "RUNNING" if kind == "queue" else "ENABLED"}
        update_resource(state[key], call, key, "update")
    elif kind == "secret":
        places = (call.flags["replication-policy"], "locations" in call.flags)
        if places not in {("automatic", False), ("user-managed", True)}:
            fail("INVALID_ARGUMENT: --locations is required with --replication-policy=user-managed, and only then.")
        annotations = dict(pair.split("=", 1) for pair in call.flags["set-annotations"].split(","))
        labels = dict(pair.split("=", 1) for pair in call.flags["labels"].split(","))
        locations = call.flags.get("locations", "").split(",")
        state[key] = {
            "name": name,
            "annotations": annotations,
            "versions": {},
            "labels": labels,
            "locations": locations,
        }
    elif kind == "account":
        state[key] = {"email": name}
    elif kind in {"bucket", "repository"}:
        state[key] = {"name": name}


def get_etag(resource: State) -> str:
    """Return what changes with each change of a resource."""
    return f'"{sha256(json.dumps(resource, sort_keys=True).encode()).hexdigest()[:12]}"'


def deploy_service(state: State, call: Call, name: str) -> None:
    service = state.setdefault("service/" + name, {"metadata": {}, "status": {"traffic": [], "revisions": {}}})
    url = f"https://{name}-{NUMBER}.{call.flags['region']}.run.app"
    service["metadata"].setdefault("annotations", {})["run.googleapis.com/urls"] = json.dumps([url])
    told = {flag: value for flag, value in call.flags.items() if flag not in {"project", "quiet", "source"}}
    if "source" in call.flags:
        # What a source deployment leaves: the uploaded source, and the image in its repository
        # (cloud.google.com/run/docs/deploying-source-code).
        state[f"bucket/gs://run-sources-{PROJECT}-{call.flags['region']}"] = {"name": "run-sources"}
        number = sum(key.startswith(call.flags["image"]) for key in state) + 1
        digest = sha256(f"{name} {number}".encode()).hexdigest()
        told["image"] = f"{call.flags['image']}/{name}@sha256:{digest}"
        state[told["image"]] = {"repository": call.flags["image"].rpartition("/")[2]}
        told["base-image"] = f"us-central1-docker.pkg.dev/serverless-runtimes/google-22/runtimes/{told['base-image']}"
    elif "/" not in call.flags["base-image"]:
        fail("INVALID_ARGUMENT: the base image of a prebuilt image must be named in full.")
    create_revision(service, name, told)


QUOTA = {"cpu_allocation": 20_000, "mem_allocation": 40 * 2**30}
"""Of a new project in a region: milli-vCPU and bytes (github.com/googlecodelabs/feedback/issues/1856 and 2311)."""


def require_quota(quota: dict[str, int], call: Call) -> None:
    """Refuse a revision whose instances could use more than the quota, in Cloud Run's words (the same reports)."""
    memory = int(call.flags["memory"].removesuffix("Mi").removesuffix("Gi"))
    each = memory * (2**30 if call.flags["memory"].endswith("Gi") else 2**20)
    most = int(call.flags["max-instances"])
    asked = {"cpu_allocation": most * 1000 * int(call.flags["cpu"]), "mem_allocation": most * each}
    names = {"cpu_allocation": "CpuAllocPerProjectRegion", "mem_allocation": "MemAllocPerProjectRegion"}
    lines = [f"{names[key]} requested: {asked[key]} allowed: {quota[key]}" for key in quota if asked[key] > quota[key]]
    if lines:
        fits = min(quota[key] * most // asked[key] for key in quota)
        fail(
            "spec.template.metadata.annotations[autoscaling.knative.dev/maxScale]: Max instances must be set to "
            f"{fits} or fewer to set the requested total CPU.\nConsider running your workload in a region with greater "
            "capacity, or requesting an increase in quota for this region if you are seeing sustained usage near this "
            "limit, see https://cloud.google.com/run/quotas.\n\nQuota violated:\n" + "\n".join(lines)
        )


def list_quota(quota: dict[str, int]) -> State:
    """Return the quota as the Service Usage API does: for any region, and for one."""
    buckets = {
        name: [{"effectiveLimit": "1"}, {"effectiveLimit": str(value), "dimensions": {"region": "us-central1"}}]
        for name, value in quota.items()
    }
    return {
        "metrics": [
            {
                "metric": f"run.googleapis.com/{name}",
                "consumerQuotaLimits": [{"unit": "1/{project}/{region}", "quotaBuckets": found}],
            }
            for name, found in buckets.items()
        ]
    }


def is_unchecked(service: State) -> bool:
    """Return whether Cloud Run lets everybody through to a service, whatever roles they have."""
    found: str = service["metadata"]["annotations"].get("run.googleapis.com/invoker-iam-disabled", "")
    return found == "true"


def describe_revision(state: State, call: Call) -> str:
    """Return the image that a revision runs, by digest, and what is below it; or, as JSON, what it runs."""
    name = call.words[3]
    service = state.get("service/" + name[: -len("-00001-abc")])
    if service is None or name not in service["status"]["revisions"]:
        fail(f"NOT_FOUND: {name}")
    told = service["status"]["revisions"][name]
    if call.flags["format"] == "value(status.imageDigest)":
        return str(told["image"])
    if call.flags["format"] == "json":
        return json.dumps({"spec": describe_containers(told)})
    annotations = {"run.googleapis.com/base-images": json.dumps({"": told["base-image"]})}
    return json.dumps({"metadata": {"annotations": annotations}, "status": {"imageDigest": told["image"]}})


def create_revision(service: State, name: str, told: State) -> None:
    """Create a revision. It gets all requests unless traffic has been assigned explicitly."""
    status = service["status"]
    revision = f"{name}-{len(status['revisions']) + 1:05}-abc"
    status["revisions"][revision] = told
    status["latestReadyRevisionName"] = revision
    if not status.get("pinned"):
        status["traffic"] = [{"percent": 100, "revisionName": revision}]


def update_resource(resource: State, call: Call, key: str, verb: str) -> None:
    flags, kind = call.flags, key.partition("/")[0]
    if kind == "queue":
        resource["rateLimits"] = {
            "maxDispatchesPerSecond": float(flags["max-dispatches-per-second"]),
            "maxConcurrentDispatches": int(flags["max-concurrent-dispatches"]),
        }
        names = {"minBackoff": "min-backoff", "maxBackoff": "max-backoff", "maxDoublings": "max-doublings"}
        names |= {"maxAttempts": "max-attempts", "maxRetryDuration": "max-retry-duration"}
        resource["retryConfig"] = {name: flags[flag] for name, flag in names.items()}
    elif kind == "job":
        account, audience = flags["oidc-service-account-email"], flags["oidc-token-audience"]
        token = {"serviceAccountEmail": account, "audience": audience}
        resource["httpTarget"] = {"uri": flags["uri"], "oidcToken": token}
        resource |= {"schedule": flags["schedule"], "attemptDeadline": flags["attempt-deadline"]}
    elif kind == "secret":
        if flags.get("etag", get_etag(resource)) != get_etag(resource):
            fail("FAILED_PRECONDITION: The etag provided does not match the current etag of the secret.")
        if "clear-annotations" in flags or "remove-annotations" in flags:
            gone = flags.get("remove-annotations", ",".join(resource["annotations"])).split(",")
            resource["annotations"] = {
                name: value for name, value in resource["annotations"].items() if name not in gone
            }
            return
        told = resource["annotations"] | dict(pair.split("=", 1) for pair in flags["update-annotations"].split(","))
        if sum(len(key) + len(value) for key, value in told.items()) > MAX_ANNOTATIONS:
            fail("INVALID_ARGUMENT: The total size of annotations must be at most 16384 bytes.")
        resource["annotations"] = told
    elif kind == "sink":
        update_exclusions(resource["exclusions"], flags)
    elif "invoker-iam-check" in flags or "no-invoker-iam-check" in flags:
        told = str("no-invoker-iam-check" in flags).lower()
        resource["metadata"]["annotations"]["run.googleapis.com/invoker-iam-disabled"] = told
    elif verb == "update":
        update_secrets(resource, call, key)
    else:
        assign_traffic(resource["status"], flags)


def update_exclusions(exclusions: list[State], flags: dict[str, str]) -> None:
    """Add, update or remove one exclusion of a log sink; the values of flags have no comma of their own."""
    action, value = next((flag, flags[flag]) for flag in flags if "exclusion" in flag)
    if action == "remove-exclusions":
        kept = [each for each in exclusions if each["name"] != value]
        if kept == exclusions:
            fail(f"INVALID_ARGUMENT: there is no exclusion {value}")
        exclusions[:] = kept
        return
    told: State = dict(pair.split("=", 1) for pair in value.split(","))
    told["disabled"] = told.get("disabled") == "true"
    found = [each for each in exclusions if each["name"] == told["name"]]
    if bool(found) != (action == "update-exclusion"):
        fail(f"INVALID_ARGUMENT: exclusion {told['name']} exists: {bool(found)}")
    if found:
        found[0].update(told)
    else:
        exclusions.append(told)


def update_secrets(service: State, call: Call, key: str) -> None:
    """Create a revision of the same code with other secrets."""
    latest = service["status"]["revisions"][service["status"]["latestReadyRevisionName"]]
    secrets = dict(pair.split("=") for pair in latest["set-secrets"].split(","))
    secrets |= dict(pair.split("=") for pair in call.flags.get("update-secrets", "").split(",") if pair)
    secrets.pop(call.flags.get("remove-secrets", ""), None)
    told = latest | {"set-secrets": ",".join(f"{name}={value}" for name, value in secrets.items())}
    create_revision(service, key.partition("/")[2], told)


def assign_traffic(status: State, flags: dict[str, str]) -> None:
    if "to-latest" in flags:
        status["pinned"] = False
        status["traffic"] = [{"percent": 100, "revisionName": status["latestReadyRevisionName"]}]
    elif "to-revisions" in flags:
        status["pinned"] = True
        shares = [share.split("=") for share in flags["to-revisions"].split(",")]
        if sum(int(percent) for _, percent in shares) != 100 or any(
            name not in status["revisions"] for name, _ in shares
        ):
            fail("INVALID_ARGUMENT: traffic")
        status["traffic"] = [{"percent": int(percent), "revisionName": name} for name, percent in shares]
    elif "update-tags" in flags:
        tag, _, name = flags["update-tags"].partition("=")
        status.setdefault("tags", {})[tag] = name


def get_env(revision: State) -> dict[str, str]:
    """Return a revision's environment variables, without its secrets."""
    return dict(pair.split("=", 1) for pair in revision["set-env-vars"].removeprefix("^~^").split("~"))


def find_reachable_revisions(service: State) -> list[State]:
    """Return the revisions of a service that requests can reach, through traffic or through a tag."""
    status = service["status"]
    names = {part["revisionName"] for part in status["traffic"] if part["percent"]} | {*status.get("tags", {}).values()}
    return [status["revisions"][name] for name in sorted(names)]


def to_knative(service: State) -> State:
    """Return a service as `gcloud run services describe --format=json` does."""
    status = service["status"]
    newest = status["latestReadyRevisionName"]
    told = status["revisions"][newest]
    scale = {"autoscaling.knative.dev/maxScale": told["max-instances"]}
    spec = describe_containers(told)
    conditions = [{"type": "Ready", "status": status.get("ready", "True")}]
    shown = {"latestReadyRevisionName": newest, "latestCreatedRevisionName": newest, "traffic": status["traffic"]}
    url = status.get("url", json.loads(service["metadata"]["annotations"]["run.googleapis.com/urls"])[0])
    return {
        "metadata": service["metadata"],
        "spec": {"template": {"metadata": {"annotations": scale}, "spec": spec}},
        "status": shown | {"conditions": conditions, "url": url},
    }


def describe_containers(told: State) -> State:
    """Return what a revision runs, with its environment."""
    env: list[State] = [{"name": name, "value": value} for name, value in get_env(told).items()]
    for pair in filter(None, told.get("set-secrets", "").split(",")):
        name, _, mounted = pair.partition("=")
        secret, _, version = mounted.partition(":")
        env.append({"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": version}}})
    return {"containerConcurrency": int(told["concurrency"]), "containers": [{"env": env}]}
