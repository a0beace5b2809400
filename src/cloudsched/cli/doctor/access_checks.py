"""Check the rights in a deployment: too few, so that something fails, or too many, so that somebody can do harm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from cloudsched.cli.doctor.deployment import LINKS, Deployment, Finding, ok, unknown, wrong
from cloudsched.cli.doctor.resource_checks import environment, leads_links_to
from cloudsched.errors import Unavailable

EVERYBODY = {"allUsers", "allAuthenticatedUsers"}
INVOKER = "roles/run.invoker"
UNCHECKED = "run.googleapis.com/invoker-iam-disabled"
"""The annotation of a function that everybody may call, where an organisation forbids roles for allUsers."""


class Resource(NamedTuple):
    """A resource with a policy of its own, and the bindings that it needs.

    Attributes:
        what: The resource, in words.
        group: The gcloud commands of its kind.
        name: Its name and the flags that locate it.
        needed: The roles and members that it needs.
        is_closed: True if nobody else may have one of these roles.
    """

    what: str
    group: tuple[str, ...]
    name: tuple[str, ...]
    needed: frozenset[tuple[str, str]]
    is_closed: bool


def list_resources(deployment: Deployment, *, has_links: bool) -> list[Resource]:
    """Return the resources on which the deployment's accounts need roles, as `infra/lib/project.sh` grants them."""
    region = f"--region={deployment.region}"
    users = [f"serviceAccount:{deployment.account(kind)}" for kind in ("api", "executor")]
    invoker = f"serviceAccount:{deployment.account('invoker')}"

    def both(role: str) -> frozenset[tuple[str, str]]:
        return frozenset((role, user) for user in users)

    found = [
        Resource(
            f"secret {deployment.secret}",
            ("secrets",),
            (deployment.secret,),
            both("roles/secretmanager.secretAccessor"),
            is_closed=True,
        ),
        Resource(
            f"account {deployment.name}-invoker",
            ("iam", "service-accounts"),
            (deployment.account("invoker"),),
            both("roles/iam.serviceAccountUser"),
            is_closed=True,
        ),
    ]
    for kind in deployment.list_queues():
        name = deployment.queue(kind)
        place = (name, f"--location={deployment.region}")
        needed = both("roles/cloudtasks.enqueuer")
        found.append(Resource(f"queue {name}", ("tasks", "queues"), place, needed, is_closed=True))
    for function in ("execute", "sweep"):
        name = f"{deployment.name}-{function}"
        needed = frozenset([(INVOKER, invoker)])
        found.append(Resource(f"function {name}", ("run", "services"), (name, region), needed, is_closed=True))
    api = f"{deployment.name}-api"
    found.append(Resource(f"function {api}", ("run", "services"), (api, region), frozenset(), is_closed=False))
    if has_links:
        links = f"{deployment.name}-{LINKS}"
        needed = frozenset([(INVOKER, "allUsers")])
        found.append(Resource(f"function {links}", ("run", "services"), (links, region), needed, is_closed=False))
    return found


def check_access(deployment: Deployment, services: dict[str, Any]) -> Iterator[Finding]:
    """Compare each policy with what the deployment needs."""
    wrongs = 0
    for finding in _compare(deployment, services):
        wrongs += 1
        yield finding
    if not wrongs:
        yield ok("iam", "the accounts have the roles that they need, and no others")


def _compare(deployment: Deployment, services: dict[str, Any]) -> Iterator[Finding]:
    has_links = services[LINKS] is not None
    are_needed = has_links and leads_links_to(f"{deployment.name}-{LINKS}", services["api"])
    yield from _compare_project(deployment, has_links=has_links)
    for resource in list_resources(deployment, has_links=are_needed):
        try:
            found = deployment.gcloud.bindings(*resource.group, "get-iam-policy", *resource.name)
        except Unavailable as error:
            mend = f"ask an owner for roles/iam.securityReviewer on {deployment.gcloud.project}"
            yield unknown("iam", f"{resource.what}: its policy cannot be read: {error.reason}", mend)
            continue
        if found is None:
            continue  # another check reports that it does not exist
        present = {(role, member) for role, member, _ in found}
        if _is_unchecked(resource, services):  # Cloud Run looks at no role, as if everybody had it
            present.add((INVOKER, "allUsers"))
        for role, member in sorted(resource.needed - present):
            step = deployment.deploy("functions" if role == INVOKER else "roles")
            yield wrong("iam", f"{resource.what}: {member} lacks {role}", step)
        roles = {role for role, _ in resource.needed}
        for role, member in sorted(present - resource.needed):
            if member in EVERYBODY and (resource.is_closed or _trusts_cloud_run(services["api"])):
                mend = _revoke(resource, role, member)
                if _is_unchecked(resource, services):
                    mend = " ".join(("gcloud run services update", *resource.name, "--invoker-iam-check"))
                yield wrong("iam", f"{resource.what}: everybody has {role}", mend)
            elif member not in EVERYBODY and resource.is_closed and role in roles:
                yield wrong("iam", f"{resource.what}: {member} has {role}, too", _revoke(resource, role, member))
    yield from _check_smoke_account(deployment)


def _is_unchecked(resource: Resource, services: dict[str, Any]) -> bool:
    """Return whether a resource is a function for which Cloud Run checks no roles."""
    if resource.group != ("run", "services"):
        return False
    found: dict[str, Any] = services.get(resource.name[0].rpartition("-")[2]) or {}
    return bool(found.get("metadata", {}).get("annotations", {}).get(UNCHECKED) == "true")


def _compare_project(deployment: Deployment, *, has_links: bool) -> Iterator[Finding]:
    project = deployment.gcloud.project
    try:
        lines = deployment.gcloud.bindings("projects", "get-iam-policy", project)
    except Unavailable as error:
        mend = f"ask an owner for roles/iam.securityReviewer on {project}"
        yield unknown("iam", f"the project's policy cannot be read: {error.reason}", mend)
        return
    title = f"{deployment.name}-database"
    kinds = ("api", "executor", *([LINKS] if has_links else []))
    users = [f"serviceAccount:{deployment.account(kind)}" for kind in kinds]
    builder = f"serviceAccount:{deployment.account('builder')}"
    needed = {("roles/datastore.user", user, title) for user in users}
    needed.add(("roles/run.builder", builder, ""))
    found = set(lines or ())
    for role, member, _ in sorted(needed - found):
        yield wrong("iam", f"project {project}: {member} lacks {role}", deployment.deploy("roles"))
    accounts = {f"serviceAccount:{deployment.account(kind)}" for kind in (*kinds, "invoker", "builder", "smoke")}
    for role, member, condition in sorted(found - needed):
        if member in accounts:
            scope = f"--condition=title={condition}" if condition else "--condition=None"
            mend = f"gcloud projects remove-iam-policy-binding {project} --member={member} --role={role} {scope}"
            about = "" if condition else " on the whole project"
            yield wrong("iam", f"project {project}: {member} has {role}{about}, which it does not need", mend)


def _check_smoke_account(deployment: Deployment) -> Iterator[Finding]:
    try:
        found = deployment.gcloud.bindings("iam", "service-accounts", "get-iam-policy", deployment.account("smoke"))
    except Unavailable:
        return
    for role, member, _ in sorted(found or ()):
        if role == "roles/iam.serviceAccountTokenCreator":
            what = f"{member} may act as the smoke test's account, although no test has to be running"
            yield wrong("iam", what, deployment.deploy())


def _trusts_cloud_run(service: dict[str, Any] | None) -> bool:
    """Return whether the API believes tokens without a signature, so that Cloud Run must not admit everybody."""
    variables = environment(service or {})
    return any(each["name"] == "CLOUDSCHED_TRUST_CLOUD_RUN" and each.get("value") == "on" for each in variables)


def _revoke(resource: Resource, role: str, member: str) -> str:
    words = " ".join((*resource.group, "remove-iam-policy-binding", *resource.name))
    return f"gcloud {words} --member={member} --role={role}"
