"""What may be broken, and the test that must see it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]


class Mutation(NamedTuple):
    """One way to break the code."""

    name: str
    path: str
    """The file, from the project's root."""
    text: str
    """What is replaced. It is in the file once."""
    by: str
    breaks: str
    """The rule of the design that it breaks, or which right, secret or limit."""
    test: str
    """The test, as pytest names it, that must go red."""

    @property
    def is_found(self) -> bool:
        """Return whether the text to replace is in its file once, as it has to be."""
        return (ROOT / self.path).read_text(encoding="utf-8").count(self.text) == 1


MUTATIONS = (
    Mutation(
        "deleted task claimed",
        "src/cloudsched/domain/transitions/claim.py",
        "if task.deleted_at is not None:  # guard",
        "if False:  # guard",
        "rule 3",
        "tests/domain/transitions/test_claim.py::test_a_deleted_task_is_left_to_its_purge",
    ),
    Mutation(
        "older revision",
        "src/cloudsched/domain/transitions/claim.py",
        "if dispatch.revision != task.revision:  # guard: older",
        "if False:  # guard: older",
        "rule 3",
        "tests/domain/transitions/test_claim.py::test_a_dispatch_of_an_older_revision_runs_nothing",
    ),
    Mutation(
        "lost lease",
        "src/cloudsched/domain/transitions/finish.py",
        "or run.lease.token_hash != token_hash:  # guard: lease of outcome",
        "or not token_hash:  # guard",
        "rule 2",
        "tests/domain/transitions/test_claim.py::test_only_the_holder_of_the_lease_ends_an_attempt",
    ),
    Mutation(
        "one retry too many",
        "src/cloudsched/domain/transitions/finish.py",
        "> task.retry.max_retries:",
        "> task.retry.max_retries + 1:",
        "rule 15",
        "tests/engine/execution/test_handler_outcomes.py::test_any_exception_is_retried_and_recorded",
    ),
    Mutation(
        "next dispatch not sent",
        "src/cloudsched/engine/execution/executor.py",
        "self.dispatch_wakeups(task, already_sent=attempt.sent_wakeups)",
        "pass",
        "rule 4",
        "tests/engine/execution/test_handler_outcomes.py::test_what_follows_a_run_is_in_the_queue_when_it_ends",
    ),
    Mutation(
        "lock takes one too many",
        "src/cloudsched/features/locks/lock.py",
        "+ ahead < waiter.limit:",
        "+ ahead <= waiter.limit:",
        "rule 5",
        "tests/features/locks/test_locks.py::test_grants_go_by_due_time_up_to_the_limit",
    ),
    Mutation(
        "older version overwritten",
        "src/cloudsched/adapters/sqlite/writes.py",
        '{names} WHERE id = ? AND version = ?"',
        '{names} WHERE id = ? AND version != -?"',
        "rule 1",
        "tests/contract/test_store.py::test_a_stale_version_writes_nothing",
    ),
    Mutation(
        "recorded step called again",
        "src/cloudsched/engine/durable/steps.py",
        "cursor.require_replayable()\n    if entry is None:",
        "cursor.require_replayable()\n    if number:",
        "rule 1",
        "tests/engine/durable/test_steps.py::test_a_recorded_step_is_not_called_again",
    ),
    Mutation(
        "missed occurrences all run",
        "src/cloudsched/domain/transitions/overlap_and_catch_up.py",
        "is CatchUpMode.ALL or not ranges",
        "in CatchUpMode or not ranges",
        "rule 1",
        "tests/domain/transitions/test_backlog.py::test_a_pause_decides_by_catch_up_and_a_resume_runs_what_it_kept",
    ),
    Mutation(
        "no instant for the sweep",
        "src/cloudsched/domain/transitions/wakeups.py",
        "return max(min(due), task.updated_at) if due else None",
        "return None",
        "rule 4",
        "tests/engine/sweep/test_sweeper.py::test_lost_dispatches_are_sent_again_by_priority",
    ),
    Mutation(
        "dead holder keeps a lock",
        "src/cloudsched/features/locks/lock.py",
        "if one.until > now and (one.task_id",
        "if (one.task_id",
        "rule 15",
        "tests/features/locks/test_locks.py::test_no_waiter_starves_after_a_holder_died",
    ),
    Mutation(
        "acknowledged before it is on disk",
        "src/cloudsched/adapters/sqlite/database.py",
        "PRAGMA synchronous = FULL",
        "PRAGMA synchronous = NORMAL",
        "rule 8: what only a real disk loses",
        "tests/adapters/sqlite/test_store.py::test_every_commit_waits_for_the_disk",
    ),
    Mutation(
        "Firestore without precondition",
        "src/cloudsched/adapters/firestore/writes.py",
        "with_precondition(write, version)",
        "pass",
        "rule 1",
        "tests/contract/test_store.py::test_a_stale_version_writes_nothing",
    ),
    Mutation(
        "dispatch delivered twice",
        "src/cloudsched/adapters/in_process_queue.py",
        "or message.name in self._delivered_names:",
        "or not message.name:",
        "a queue's promise: a name is delivered once",
        "tests/contract/test_dispatcher.py::test_a_name_is_created_once_while_pending_and_after_delivery",
    ),
    Mutation(
        "Cloud Tasks without names",
        "src/cloudsched/adapters/google/cloud_tasks.py",
        'task.name = f"{queue}/tasks/{message.name}"',
        "task.name = queue",
        "a creation that is tried again makes one dispatch",
        "tests/adapters/google/test_cloud_tasks.py::test_a_dispatch_is_one_request",
    ),
    Mutation(
        "any token",
        "src/cloudsched/engine/signed_dispatches.py",
        "is_valid = False",
        "is_valid = True",
        "rule 7: the secret alone lets run",
        "tests/engine/test_signed_dispatches.py::test_only_the_right_token_is_accepted",
    ),
    Mutation(
        "reader changes tasks",
        "src/cloudsched/web/auth/roles.py",
        "_Grant(frozenset({Right.READ, Right.QUEUES}), sees_own=True)",
        "_Grant(frozenset(Right), sees_own=True)",
        "rule 9: the right to write",
        "tests/web/auth/test_roles.py::test_a_viewer_changes_nothing",
    ),
    Mutation(
        "other owners",
        "src/cloudsched/web/auth/roles.py",
        "or self.visible_owner == owner",
        "or bool(owner)",
        "rule 9: owners are isolated",
        "tests/web/auth/test_roles.py::test_a_stranger_cannot_tell_a_task_that_exists",
    ),
    Mutation(
        "script sees the environment",
        "src/cloudsched/scripts/quickjs/process.py",
        "env={},",
        "env=None,",
        "rule 7: secrets of the process",
        "tests/scripts/test_process.py::test_the_script_process_inherits_nothing",
    ),
    Mutation(
        "users call any address",
        "src/cloudsched/features/deliveries/maker.py",
        "COMPLETION, payload, now, url=url, is_users_url=is_users)",
        "COMPLETION, payload, now, url=url, is_users_url=False)",
        "rule 9: users call their own endpoint",
        "tests/people/test_on_completion.py::test_users_call_only_their_own_endpoint",
    ),
    Mutation(
        "task removed before its records",
        "src/cloudsched/domain/transitions/expiry.py",
        "or task.execution_retention is not None",
        "or False",
        "rule 15: Firestore removes each document alone",
        "tests/engine/tasks/test_retention.py::test_a_record_with_a_longer_life_goes_with_its_task",
    ),
)
