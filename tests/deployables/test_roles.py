"""Each role is granted for a call that the page for platform teams names, and an alert comes if it is taken away."""

from __future__ import annotations

import re

from tests.deployables.cloud_world import TABLE
from tests.deployables.fake_project import ROOT
from tests.deployables.outages import OUTAGES

PAGE = (ROOT / "docs/how-to/platform-team.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(roles/[\w.]+)` \| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
NOT_RUNNING = {
    "roles/run.builder": "deployments alone",
    "roles/storage.objectUser": "only results that exceed a document",
}
"""Roles whose loss stops nothing that runs, and why."""


def test_the_page_has_each_role_that_is_granted() -> None:
    """With what it is on and whose it is, as infra/resources.json says."""
    told = {(role, on.partition(",")[0], of) for role, on, of, *_ in ROW.findall(PAGE)}
    assert told == {(each["role"], each["on"], ", ".join(each["accounts"])) for each in TABLE["roles"]}
    for _, _, _, call, without in ROW.findall(PAGE):
        assert call.strip()
        assert without.strip()


def test_each_role_that_runs_need_is_taken_away_in_the_virtual_world() -> None:
    """tests/deployables/test_outages.py then expects an alert; the loss of the others stops nothing that runs."""
    tried = {role for outage in OUTAGES for role in outage.roles}
    assert tried | set(NOT_RUNNING) == {each["role"] for each in TABLE["roles"]}
    assert not tried & set(NOT_RUNNING)
