"""The settings that docs/run/capacity.md advises are settings that the scripts accept."""

from __future__ import annotations

import random
import re
import shutil
from pathlib import Path

import pytest
from benchmarks.scale_limits import DEMANDS, make_limits_sheet
from benchmarks.scale_settings import HANDLER_SECONDS, MAX_RATE, SHOWN_RATES, choose_settings, make_settings_sheet
from benchmarks.scale_tables import put
from tests.cases import try_each
from tests.deployables.fake_project import PROJECT, ROOT, Cloud
from tests.harness import run_to_end

PAGE = (ROOT / "docs/run/capacity.md").read_text("utf-8")
LOAD = """source lib/commands.sh
for file; do (load_configuration "$file") || exit 1; done"""
"""Reads configurations as each script does, one after the other."""


def read_rows() -> list[dict[str, str]]:
    """Return the rows of the page's table: for each rate, the lines of the configuration."""
    table = re.search(r"<!-- settings -->\n(.*?)\n<!-- /settings -->", PAGE, re.DOTALL)
    assert table
    heading, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table[1].splitlines()]
    names = [each.strip("`") for each in heading[1:]]
    return [dict(zip(names, row[1:], strict=True)) for row in rows]


@try_each("number", range(len(SHOWN_RATES)))
def test_deploy_accepts_each_row_of_the_page(number: int, tmp_path: Path) -> None:
    """Whoever copies a row into config.sh, and nothing else, can deploy it."""
    row = read_rows()[number]
    folder = tmp_path / f"{number}"
    folder.mkdir()
    cloud = Cloud(folder, None, **row)
    printed = cloud.ok("deploy.sh", "--dry-run").out
    assert f"--max-concurrent-dispatches={row['QUEUE_NORMAL'].partition('/')[2]}" in printed
    assert f"--max-instances={row['EXECUTE_MAX_INSTANCES']} " in printed


def test_the_page_has_the_table_of_the_formulas() -> None:
    """The page's rows are those that its formulas give, and no table is left that nothing makes."""
    assert put(PAGE, [make_settings_sheet()]) == PAGE
    assert {*re.findall(r"<!-- (\w+) -->", PAGE)} == {"settings", "limits"}


def test_the_page_has_the_limits_with_their_sources() -> None:
    """Each limit has Google's line and figure. A line that is only interpreted says how."""
    assert put(PAGE, [make_limits_sheet()]) == PAGE
    for each in DEMANDS:
        assert each.limit.source.startswith("https://")
        said = each.limit.said.replace(",", "")
        assert (
            each.limit.assumed or f"{each.limit.value:.0f}" in said or f"{60 * each.limit.value:.0f} requests" in said
        )


def test_the_formulas_give_settings_that_the_scripts_accept(tmp_path: Path) -> None:
    """At any rate and for handlers of any length, up to the most that the page names."""
    chance = random.Random(88)  # noqa: S311 - the same rates each time
    cases = [(MAX_RATE, HANDLER_SECONDS), (1, 0.01), (101, 8.0)]
    cases += [(MAX_RATE ** chance.random(), 0.02 * 100 ** chance.random()) for _ in range(6)]
    files = []
    for number, (rate, seconds) in enumerate(cases):
        lines = {"PROJECT": PROJECT, **choose_settings(rate, seconds).variables}
        file = tmp_path / f"{number}.sh"
        file.write_text("".join(f"{name}={value}\n" for name, value in lines.items()), "utf-8")
        files.append(str(file))
    command = [str(shutil.which("bash")), "-ec", LOAD, "bash", *files]
    done = run_to_end(command, cwd=ROOT / "infra")
    assert done.returncode == 0, done.stderr


def test_a_rate_beyond_all_queues_is_refused() -> None:
    """The formulas do not name settings that do not exist."""
    with pytest.raises(ValueError, match="a second deployment"):
        choose_settings(MAX_RATE + 1)
