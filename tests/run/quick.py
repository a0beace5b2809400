"""The quick run, `pytest --quick`: some tests of every room, chosen before any is imported, without other programs."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
ROOMS = {
    "": ["/test_app.py", "/doors/test_completeness.py"],
    "adapters": ["test_circuit_breaker.py", "test_in_process_queue.py"],
    "adapters/delivery": ["test_mail.py", "test_mail_reports.py"],
    "adapters/firestore": ["test_index_rules.py"],
    "adapters/google": ["test_channel.py", "test_id_tokens.py", "test_messages.py"],
    "adapters/language_model": ["/adapters/test_language_models.py"],
    "adapters/quickjs": ["test_process.py"],
    "adapters/safe_http": ["/adapters/test_safe_http.py"],
    "adapters/sqlite": ["/contract/test_store.py", "test_upgrades.py"],
    "cli": ["test_apply.py", "test_instants.py", "test_next.py", "test_run.py", "/clients/test_typescript_types.py"],
    "client": ["test_drafts.py", "test_newer_api.py", "test_overview_operations.py"],
    "config": ["test_settings.py", "test_store_choice.py"],
    "dashboard": [
        "test_forms.py",
        "test_forms_have_actions.py",
        "test_calendar_month.py",
        "test_home.py",
        "test_times.py",
    ],
    "domain": ["/domain/documents/test_copies.py"],
    "domain/calendars": ["test_calendar_recurrence.py"],
    "domain/documents": ["test_document_size.py", "test_instants.py", "test_retry_policy.py"],
    "domain/explanation": ["/engine/tasks/test_explanations.py"],
    "domain/feeds": ["test_task_calendar.py"],
    "domain/people": ["test_quiet_hours.py", "test_send_decision.py"],
    "domain/recurrence": [
        "test_clock_change_policies.py",
        "test_foreign.py",
        "test_rfc5545_cases.py",
        "test_skip.py",
    ],
    "domain/schedules": [
        "test_calendar_ends.py",
        "test_describe.py",
        "test_ics_days.py",
        "test_preview.py",
        "test_schedule.py",
    ],
    "domain/transitions": ["test_claim.py", "test_lifecycle.py", "test_planning.py"],
    "drafts": ["test_assistant_drafts.py", "test_creations.py", "test_updates.py"],
    "emulator": ["test_startup.py"],
    "emulator/api": ["test_error_details.py", "test_queues.py", "test_tasks.py"],
    "emulator/http": ["test_gate.py"],
    "emulator/model": ["test_faults.py", "test_retry.py"],
    "emulator/runtime": ["test_clock.py", "test_operations.py"],
    "emulator/storage": ["test_write_ahead_log.py"],
    "engine": ["test_billed_operations.py"],
    "engine/assistant": ["test_rights.py", "test_tasks.py"],
    "engine/children": ["test_task_tree.py"],
    "engine/delivery": ["test_deliveries.py", "test_held_deliveries.py", "test_on_completion.py"],
    "engine/dispatch": ["/engine/execution/test_early_deliveries.py"],
    "engine/durable": ["test_calls.py", "test_crash_points.py", "test_events.py", "test_race.py", "test_steps.py"],
    "engine/execution": ["test_follow_ups.py", "test_handler_outcomes.py", "test_lease_expiry.py"],
    "engine/handlers": ["test_dependencies.py", "test_payload_fields.py", "test_registry.py"],
    "engine/people": ["test_journeys.py"],
    "engine/ports": ["/contract/test_store.py"],
    "engine/pull": ["test_feature_combinations.py", "test_races.py"],
    "engine/state": ["test_compare_and_set.py", "test_lock_handover.py", "test_locks.py"],
    "engine/tasks": ["test_manual_runs.py", "test_schedule_forms.py", "test_sweeper_order.py", "test_sweeper_races.py"],
    "engine/usage": ["test_budgets.py"],
    "language": ["test_calendars.py", "test_reader.py"],
    "local": ["test_import_errors.py", "test_untrusted_text.py", "test_windowed_queue.py"],
    "outbox": ["test_handover.py"],
    "runtime": ["test_handler_logs.py", "test_telemetry.py"],
    "testing": ["test_simulation.py"],
    "web": ["test_secret_leaks.py"],
    "web/api": ["test_drafts.py", "test_executions.py", "test_routes.py", "test_trigger.py"],
    "web/auth": ["test_open_api.py", "test_user_locks.py"],
    "worker": ["test_async_handlers.py", "test_log_fields.py"],
}
"""The test files of each room of `src/cloudsched`: in the folder of the same name, or below `tests` after a slash."""


def find_files(room: str) -> list[Path]:
    """Return the test files that a quick run has for a room."""
    return [TESTS / (name[1:] if name.startswith("/") else f"{room}/{name}") for name in ROOMS[room]]


_FILES = frozenset(path for room in ROOMS for path in find_files(room))
_FOLDERS = frozenset(folder for path in _FILES for folder in path.parents)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option `--quick`."""
    text = "run some tests of every room, in a tenth of the time; without Firestore, browsers, gcloud, and Terraform"
    parser.getgroup("cloudsched").addoption("--quick", action="store_true", help=text)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave all other files out, and folders without any: to import them takes longer than to run the chosen ones."""
    if not config.getoption("--quick"):
        return None
    if collection_path.is_dir():
        return True if collection_path not in _FOLDERS else None
    return True if collection_path not in _FILES and collection_path.suffix == ".py" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the cases of a chosen file that need Google's emulator."""
    if config.getoption("--quick"):
        left_out = [item for item in items if "firestore" in _list_parameters(item)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say that it was the quick run, and what it left out."""
    if config.getoption("--quick"):
        left_out = sum(1 for _ in TESTS.rglob("test_*.py")) - len(_FILES)
        terminalreporter.write_line(
            f"This was the quick run: {len(_FILES)} files, some of every room. It left out {left_out} files: random "
            "histories, stories, pages, browsers, Firestore, scripts of deployment. ./emulator.sh pytest runs them."
        )


def _list_parameters(item: pytest.Item) -> list[object]:
    callspec = getattr(item, "callspec", None)
    return list(callspec.params.values()) if callspec else []
