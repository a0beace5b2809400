"""What people type into the site's search finds the page that answers it, by the ranking of the site's own worker."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from tests.harness import ROOT, run_to_end

SEARCHES = """
quickstart, install: start/quickstart | choose how to run: start/choose | glossary, task status: start/concepts
faq, troubleshooting, getting started, dead letter, cron job, timeout, tenant, duplicate, GDPR, mock: start/faq
alternatives, temporal: start/comparison | unit test: guides/testing | retry: guides/retries-and-locks
rate limit, budget: guides/quotas | holidays: guides/calendars | time zone: guides/schedules | agents: guides/agents
exactly once: guarantees | webhook, e-mail: guides/delivery | approval: guides/approvals | crontab, celery: run/migrate
fastapi, django: guides/web-frameworks | api key: guides/access | deploy: run/deploy | systemd: run/serve
restore, upgrade: run/operate | costs: run/costs | checklist: run/checklist | environment variables: reference/settings
"""


def read_index() -> list[dict[str, str]]:
    """Return the pages of the navigation as the site indexes them: a title and a text for each page and heading."""
    docs = []
    for path in [*sorted((ROOT / "docs").glob("[!c]*/*.md")), ROOT / "docs" / "guarantees.md"]:
        place = path.relative_to(ROOT / "docs").with_suffix(".html").as_posix()
        plain = re.sub(r"(?s)```.*?```", lambda block: block[0].replace("#", " "), path.read_text("utf-8"))
        for number, part in enumerate(re.split(r"(?m)^#+ ", plain)[1:]):
            title, _, text = re.sub(r"\]\([^)]*\)|[`*|\[<>]", " ", part).partition("\n")
            docs.append({"location": f"{place}#{number}" if number else place, "title": title, "text": text})
    return docs


def test_each_search_finds_its_page() -> None:
    """Among the first three, as in a browser, where a word in a heading counts a thousand times."""
    if shutil.which("node") is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("the site's search needs node")
    lines = [each.split(": ") for each in re.split(r" \| |\n", SEARCHES.strip())]
    wanted = {query: f"{page}.html" for queries, page in lines for query in queries.split(", ")}
    worker = next(Path(pytest.importorskip("material").__file__).parent.rglob("workers/search.*.js"))
    asked = {"worker": str(worker), "docs": read_index(), "queries": list(wanted)}
    command = ["node", str(ROOT / ".ci/site/search.mjs")]
    done = run_to_end(command, input=json.dumps(asked), check=True)
    found = json.loads(done.stdout)
    assert not {query: found[query][:5] for query, page in wanted.items() if page not in found[query][:3]}
