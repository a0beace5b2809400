"""Which tests run when: `pytest` takes five minutes, `pytest --all` has the others too, and `check` has its own.

Each row names a folder, a file or the tests of a file whose names begin so, and says what is lost while only
`./emulator.sh pytest` has run. What the command line names by itself runs in any case.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
CHECK = {"architecture": "what the structure and the pages must keep: `./emulator.sh check` runs it"}
ALL = {
    "agents/frameworks/test_kills.py": "a service that is killed while it runs an agent of each framework",
    "adapters/firestore/test_emulator.py::test_googles_emulator_ends_when_its_parent": "an emulator that nobody stops",
    "adapters/google/test_credentials.py::test_a_token_that_does_not_come": "Google's slow tokens",
    "cli/test_init.py": "a new project's own tests and commands",
    "cli/test_signals.py": "signals to threads and children of every command",
    "clients": "the TypeScript client, built and used with npm's tools",
    "contract/test_journal_sizes.py::test_a_finished_journal_is_archived": "the largest journals",
    "dashboard/browser": "accessibility, keyboard, roles, forms and live pages in a browser",
    "deployables/test_companions.py": "the newest releases of what stands beside it: the world's answer, not ours",
    "deployables/test_doctor.py": "what the doctor finds in a deployment",
    "deployables/test_functions.py::test_an_instance_that_is_stopped": "what a function gives up when it is stopped",
    "deployables/test_infra_accept.py": "the acceptance of a deployment",
    "deployables/test_infra_access.py": "who can reach what, step by step",
    "deployables/test_infra_beside.py": "two deployments in one project",
    "deployables/test_infra_build.py": "what is packed for a build",
    "deployables/test_infra_capacity.py": "that the scripts take the settings that the page of capacity advises",
    "deployables/test_infra_delays.py": "Google's slow or late answers",
    "deployables/test_infra_deploy.py": "most orders, options and failures of a deployment",
    "deployables/test_infra_gcloud.py": "that gcloud itself takes each command that the scripts type",
    "deployables/test_infra_histories.py": "random orders of the deployment's commands",
    "deployables/test_infra_images.py": "one image for all functions",
    "deployables/test_infra_indexes.py": "indexes and contention during upgrades",
    "deployables/test_infra_links.py": "public links of a deployment",
    "deployables/test_infra_monitoring.py": "alerts that the scripts create",
    "architecture/test_removal.py::test_the_kernel_is_whole_without_it": "the kernel without each satellite",
    "deployables/test_infra_moves.py": "moves to a restored database",
    "deployables/test_infra_quota.py": "quotas that are too small",
    "deployables/test_infra_schedules.py": "the jobs that call the sweep",
    "deployables/test_infra_shards.py": "raising the number of shards",
    "deployables/test_infra_shell.py": "shellcheck's opinion",
    "deployables/test_infra_smoke.py": "the smoke test after a deployment",
    "deployables/test_infra_source.py": "the built source, with its requirements installed",
    "deployables/test_infra_teardown.py": "that a teardown removes only what is ours",
    "deployables/test_infra_upgrade.py": "upgrades and rollbacks",
    "deployables/test_outages.py": "that each outage opens an alert",
    "deployables/test_pipeline.py": "a pipeline that deploys",
    "deployables/test_resources.py": "that the scripts make and grant what the table of resources says",
    "docs/test_data_blocks.py::test_dockerfiles_start_commands_that_exist": "hadolint's opinion of the pages' images",
    "docs/test_shell_blocks.py::test_commands_do_as_the_page_shows[leap-day": "the pages' commands on a leap day",
    "docs/test_shell_blocks.py::test_commands_do_as_the_page_shows[today-web-f": "the page of web frameworks, typed",
    "docs/test_shell_blocks.py::test_commands_do_as_the_page_shows[today-workflows": "the page of workflows, typed",
    "docs/test_shell_blocks.py::test_commands_do_as_the_page_shows[year's-end": "the pages' commands years from now",
    "docs/test_shell_blocks.py::test_commands_for_google_cloud": "gcloud's opinion of the pages' commands",
    "domain/recurrence/test_against_dateutil.py": "random rules beside python-dateutil; the collected cases stay",
    "domain/recurrence/test_against_reference.py": "random rules beside a slow reference",
    "domain/recurrence/test_allowance.py::test_no_schedule_takes_more": "the costliest schedules",
    "domain/recurrence/test_search_bounds.py::test_random_rules_are_searched_or_refused_quickly": "random costly rules",
    "domain/schedules/test_icalendar_output.py::test_another_program": "what we write, as another program reads it",
    "domain/schedules/test_icaljs.py": "iCalendar as ical.js reads it",
    "domain/schedules/test_one_run_a_day.py": "random edits of daily schedules",
    "features/calendars/test_ics_judge.py": "calendar files as another program reads them",
    "domain/test_task_calendar.py::test_another_program": "a task's calendar, as another program reads it",
    "domain/transitions/test_growth.py": "documents at their largest",
    "doors/test_completeness.py::test_the_outcome_is_that_of_the_api[the API through d": "delegates beside the API",
    "doors/test_completeness.py::test_the_outcome_is_that_of_the_api[the command line]": "the commands beside the API",
    "doors/test_completeness.py::test_the_outcome_is_that_of_the_api[the dashboard]": "the dashboard beside the API",
    "doors/test_edits.py::test_a_zone_stays_unless_another_is_given[the": "zones at the doors that start a process",
    "doors/test_front.py::test_what_a_user_does_is_no_server_s_result": "the authority of everything that a user does",
    "engine/code_check/test_compare.py": "`cloudsched check` on random changes of code",
    "engine/durable/test_commit_batching.py::test_the_size_of_one_commit_is_bounded": "the largest commits",
    "engine/durable/test_outages.py": "outages of each store while a durable handler runs",
    "engine/options/test_table.py::test_an_option_can_be_taken_out": "the product without one of its options",
    "features/budgets/test_budgets_bind.py::test_one_way_after_the_other": "every way to spend after every other",
    "language/test_fuzz.py": "random words",
    "local/test_behind_proxies.py": "nginx, Apache and Caddy between a browser and the page",
    "local/test_silent_partners.py::test_a_partner": "partners that are called as another one is, and in both manners",
    "model/test_model.py::test_every_guard_is_missed": "that the explorer sees a missing guard",
    "mutations/test_mutations.py::test_a_broken_rule": "that a broken rule of five turns its test red",
    "outbox/test_crashes.py": "a relay that dies between two statements",
    "recipes/test_moving.py": "Celery and APScheduler beside the guides that leave them",
    "run/test_run.py::test_a_module_that_leaves_something_behind": "that a test which leaves something behind is told",
    "simulation/test_histories.py::test_a_seed_repeats_its_history": "that a history can be repeated",
    "stories/test_answer_by_tap.py": "the page of a link, by keyboard in a browser",
    "stories/test_crash_recovery.py": "hundreds of killed executors",
    "stories/test_demo.py": "the demo; CI's first command",
    "stories/test_dev.py": "what `dev` prints, reloads and survives",
    "stories/test_embedded_servers.py": "embedded in gunicorn, uvicorn and development servers",
    "stories/test_function_processes.py": "three functions as processes, killed",
    "stories/test_kept_answers.py": "answers to broken code, whose processes are killed",
    "stories/test_poisonous_handlers.py": "a handler that ends its process, among others",
    "stories/test_serve.py": "`serve` beside systemd, keys and a second process",
    "stories/test_tutorial.py": "the tutorial, typed",
    "stories/test_worker_process.py": "workers that share, wait, or meet hostile answers",
    "stories/test_workers_guide.py": "the workers' guide, typed",
    "web/api/test_fuzz.py": "random bodies of requests",
    "web/api/test_hostile_requests.py::test_no_answer_is_large": "answers about the largest that can be stored",
    "web/api/test_openapi.py::test_the_api_does_what_its_document_says": "odd requests",
    "web/api/test_openapi_tools.py::test_a_generated": "generated clients at work",
    "web/api/test_openapi_tools.py::test_the_linter_finds_nothing": "a linter's opinion of the API's description",
    "web/api/test_openapi_tools.py::test_typescript_generators": "TypeScript that others' tools generate",
    "web/test_mount.py::test_it_works_below_a_path_of_a_frameworks_application[Litestar]": "mounted in Litestar",
}
KEPT = (
    "deployables/test_resources.py::test_the_scripts_grant_what_the_table_says",
    "deployables/test_infra_deploy.py::test_a_second_run_changes_nothing",
    "deployables/test_infra_deploy.py::test_a_run_that_dies_is_resumed",
    *(
        f"local/test_silent_partners.py::test_a_partner_that_never_answers_holds_its_share_and_is_named[{row}"
        for row in (
            "email-dripping",
            "webhook-silent",
            "mobile-dripping",
            "slack-silent",
            "calendar-dripping",
            "assistant-silent",
        )
    ),
    "stories/test_dev.py::test_a_signal_stops_everything",
    "stories/test_dev.py::test_a_command_finds_the_stack_over_http",
    "stories/test_serve.py::test_nothing_acknowledged_is_lost_when_it_is_killed_under_load",
    "stories/test_serve.py::test_a_signal_lets_the_running_handler_finish",
    "stories/test_serve.py::test_it_goes_on_when_the_clock_is_set[2]",
    "stories/test_worker_process.py::test_a_worker_at_firestore_is_notified_of_work",
    "stories/test_worker_process.py::test_sigterm_lets_a_worker_finish_its_attempt",
    "stories/test_worker_process.py::test_the_attempt_of_a_killed_worker_is_made_by_another",
    "stories/test_worker_process.py::test_two_workers_share_the_work",
)
"""The tests of those files that run each time."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    text = "run every test there is, as before a release: fifteen minutes"
    parser.getgroup("cloudsched").addoption("--all", action="store_true", help=text)


def list_rows(config: pytest.Config) -> list[str]:
    """Return what does not run, unless the command line names it. A change of `infra` is tried by the rest of it."""
    if config.getoption("--all"):
        rows = [*CHECK]
    else:
        spared = "deployables/" if config.getoption("--changed") else "-"
        rows = [*CHECK, *(row for row in ALL if not row.startswith(spared))]
    named = [Path(each.partition("[")[0].partition("::")[0]).resolve() for each in config.args]
    return [row for row in rows if not any(each.is_relative_to(TESTS / row.partition("::")[0]) for each in named)]


def is_left_out(file: Path, rows: list[str]) -> bool:
    """Return whether nothing of a file runs this time."""
    is_kept = any(file == TESTS / row.partition("::")[0] for row in KEPT)
    return not is_kept and any(file.is_relative_to(TESTS / row) for row in rows)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out single tests of files that otherwise run."""
    rows = list_rows(config)
    left_out = [item for item in items if _is_in(item, rows) and not _is_in(item, KEPT)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def _is_in(item: pytest.Item, rows: Iterable[str]) -> bool:
    """Return whether a row names a test: its folder, its file, or how its name begins."""
    parts = (row.partition("::") for row in rows)
    return any(item.path.is_relative_to(TESTS / path) and item.name.startswith(name) for path, _, name in parts)
