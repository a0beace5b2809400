# ruff: noqa: INP001 - a script among shell scripts, not a package
"""Print which of these values an organisation's policy refuses, one a line.

Usage: policies.py ingress|locations|sharing VALUE… < what `gcloud resource-manager org-policies describe` prints

A policy that names a group of locations that is not known here may allow any
(cloud.google.com/resource-manager/docs/organization-policy/defining-locations).
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

NOT_IN_THE_EU = {"europe-west2", "europe-west6"}
"""London and Zurich, which are in Europe."""
MULTI_REGIONS = {"nam5": {"us"}, "nam7": {"us"}, "eur3": {"europe", "eu"}, "global": {"global"}}
"""Locations that are no region, and the groups that have them."""
_KNOWN = re.compile(
    r"[a-z]+-[a-z]+[0-9]+|nam[57]|eur3|global|africa|asia|australia|europe|eu|me|(north|south)america|us"
)


def list_names(location: str) -> set[str]:
    """Return the names by which a policy may mean a location."""
    groups = MULTI_REGIONS.get(location, {location, location.partition("-")[0]})
    if location.startswith("europe-") and location not in NOT_IN_THE_EU:
        groups = {*groups, "eu"}
    return {location, *groups}


def is_refused(kind: str, value: str, rules: dict[str, Any]) -> bool:
    """Whether a policy on a list refuses a value."""
    names = list_names(value) if kind == "locations" else {value}
    # A value may have the prefix `is:`, and a group is written `in:us-locations`.
    allowed, denied = (
        {each.removeprefix("is:").removeprefix("in:").removesuffix("-locations") for each in rules.get(which, ())}
        for which in ("allowedValues", "deniedValues")
    )
    if rules.get("allValues") == "DENY" or names & denied:
        return True
    is_clear = kind != "locations" or all(map(_KNOWN.fullmatch, allowed))
    return bool(allowed) and is_clear and not names & allowed


def main() -> None:
    """Print what is refused."""
    kind, *values = sys.argv[1:]
    rules = (json.load(sys.stdin) or {}).get("listPolicy", {})
    for each in dict.fromkeys(values):
        if is_refused(kind, each, rules):
            print(each)  # noqa: T201 - what the caller reads


if __name__ == "__main__":
    main()
