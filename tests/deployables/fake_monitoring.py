"""Cloud Monitoring, log-based metrics and budgets in the fake project, as strict about names and fields as Google."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.deployables.alerting import check_policy
from tests.deployables.fake_resources import NUMBER, Call, State, fail, format_resource

if TYPE_CHECKING:
    from tests.deployables.fake_gcloud import FakeCloud

BILLING_ACCOUNT = "01AB-02CD"
_OWN_METRIC = re.compile(r"logging\.googleapis\.com/user/([\w-]+)")
_LABEL = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_LABEL_VALUE = re.compile(r"[a-z0-9_-]{0,63}")


def run_metrics(cloud: FakeCloud, call: Call) -> None:
    verb, name = call.words[2:]
    key = f"metric/{name}"
    found = cloud.state.get(key)
    if (found is None) != (verb == "create"):
        fail(f"{'NOT_FOUND' if found is None else 'ALREADY_EXISTS'}: {key}")
    if verb == "describe":
        cloud.say(format_resource(found, call.flags["format"]))
    elif verb == "delete":
        cloud.change(lambda: cloud.state.pop(key))
    else:
        told = json.loads(Path(call.flags["config-from-file"]).read_text("utf-8"))
        described = {each["key"] for each in told["metricDescriptor"].get("labels", ())}
        if told["name"] != name or described != set(told.get("labelExtractors", {})):
            fail(f"INVALID_ARGUMENT: {told}")
        cloud.change(lambda: cloud.state.update({key: told}))


def run_budgets(cloud: FakeCloud, call: Call) -> None:
    """List, create, update or delete budgets of a billing account, whose names Google chooses."""
    verb = call.words[2]
    if verb == "list":
        title = call.flags["filter"].removeprefix('displayName="').removesuffix('"')
        for key, value in cloud.state.items():
            if key.startswith(f"billingAccounts/{call.flags['billing-account']}/") and value["displayName"] == title:
                cloud.say(format_resource(value, call.flags["format"]))
        return
    if verb == "create":
        account = f"billingAccounts/{call.flags['billing-account']}"
        if account != f"billingAccounts/{BILLING_ACCOUNT}":
            fail("PERMISSION_DENIED: The caller does not have permission")
        name = f"{account}/budgets/{sum(key.startswith(account) for key in cloud.state)}-f00"
        told: State = {
            "name": name,
            "displayName": call.flags["display-name"],
            "projects": call.flags["filter-projects"],
        }
    else:
        name = call.words[3]
        if name not in cloud.state:
            fail(f"NOT_FOUND: {name}")
        told = cloud.state[name]
    if verb == "delete":
        cloud.change(lambda: cloud.state.pop(name))
        return
    amount = {"amount": {"specifiedAmount": {"units": call.flags["budget-amount"]}}}
    cloud.change(lambda: cloud.state.update({name: told | amount}))


def answer_monitoring(cloud: FakeCloud, method: str, url: str, told: State) -> tuple[int, Any]:
    """List, create, update or delete alert policies or dashboards, as the API does."""
    path, _, query = url.removeprefix("https://monitoring.googleapis.com/").partition("?")
    version, _, _, group, *rest = path.split("/")
    prefix = f"projects/{NUMBER}/{group}/"
    if (version, group) not in {("v3", "alertPolicies"), ("v1", "dashboards")}:
        return 404, {"error": f"no such collection: {path}"}
    if "monitoring.googleapis.com" not in cloud.state.get("services", ["monitoring.googleapis.com"]):
        return 403, {"error": "SERVICE_DISABLED"}
    if method == "GET":
        return 200, _list(cloud.state, prefix, query)
    if rest and prefix + rest[0] not in cloud.state:
        return 404, {"error": f"NOT_FOUND: {path}"}
    numbers = [int(key.rpartition("/")[2]) for key in cloud.state if key.startswith(prefix)]
    name = prefix + (rest[0] if rest else str(max(numbers, default=0) + 1))
    if method == "DELETE":
        cloud.change(lambda: cloud.state.pop(name))
        return 200, {}
    return _refuse(cloud, told, group) or _store(cloud, told, name)


def _list(state: State, prefix: str, query: str) -> State:
    found = [value for key, value in state.items() if key.startswith(prefix)]
    start = int(query.partition("pageToken=")[2] or 0)  # a page has two, so that tests turn them
    more = {"nextPageToken": str(start + 2)} if len(found) > start + 2 else {}
    return {prefix.split("/")[2]: found[start : start + 2]} | more


def _store(cloud: FakeCloud, told: State, name: str) -> tuple[int, Any]:
    tag = cloud.state.get(name, {}).get("etag", "")
    if told.pop("etag", "") != tag:
        return 409, {"error": "ABORTED: the etag is not that of the stored version"}
    new = told | {"name": name} | ({"etag": str(int(tag or 0) + 1)} if "/dashboards/" in name else {})
    cloud.change(lambda: cloud.state.update({name: new}))
    return 200, new


def _refuse(cloud: FakeCloud, told: State, group: str) -> tuple[int, Any] | None:
    for label, value in told["userLabels" if group == "alertPolicies" else "labels"].items():
        if not (_LABEL.fullmatch(label) and _LABEL_VALUE.fullmatch(value)):
            return 400, {"error": f"INVALID_ARGUMENT: label {label}={value}"}
    if group == "alertPolicies":
        try:
            check_policy(told)
        except ValueError as refused:
            return 400, {"error": f"INVALID_ARGUMENT: {refused}"}
    for metric in _OWN_METRIC.findall(json.dumps(told)) if group == "alertPolicies" else ():
        if f"metric/{metric}" not in cloud.state or cloud.unknown_metrics:
            cloud.unknown_metrics -= bool(cloud.unknown_metrics)
            return 404, {"error": f"Cannot find metric that matches type {metric}"}
    return None
