"""What a new executor process may import until it has answered its first dispatch."""

from __future__ import annotations

from typing import Final

FRAMEWORK: Final = {
    "_cython_3_2_8": "gRPC",
    "_distutils_hack": "setuptools, where it is installed",
    "_sysconfigdata__linux_x86_64-linux-gnu": "Python itself",
    "annotated_types": "pydantic",
    "blinker": "Flask",
    "circuitbreaker": "the breakers of what a deployment reaches",
    "click": "Flask",
    "cloudevents": "functions-framework",
    "cython_runtime": "gRPC",
    "deprecation": "cloudevents",
    "flask": "functions-framework",
    "functions_framework": "the server of deployed functions",
    "google._upb": "protobuf",
    "google.cloud.functions": "functions-framework",
    "google.cloud.functions_v1": "functions-framework",
    "google.protobuf": "messages",
    "grpc": "calls to Firestore and Cloud Tasks",
    "itsdangerous": "Flask",
    "jinja2": "Flask",
    "markupsafe": "Jinja",
    "packaging": "deprecation",
    "pydantic": "documents",
    "pydantic_core": "documents",
    "typing_extensions": "pydantic",
    "typing_inspection": "pydantic",
    "tzdata": "time zones",
    "werkzeug": "Flask",
}
"""The libraries, and what needs them. Those that something else could bring in are listed by their parts."""
OWN: Final = {
    "": "app errors",
    "adapters": "blobs circuit_breaker clocks",
    "adapters.firestore": (
        "list_fields messages queries records rpc search shards store task_updates values write_limits"
    ),
    "adapters.google": "backoff channel cloud_tasks messages",
    "adapters.safe_http": "addresses",
    "config": "access features imports settings sweep_alarm variables",
    "domain": "brief_repr closed_sets first_error",
    "domain.calendars": "calendar_recurrence calendar_rule days free_days",
    "domain.documents": (
        "authority batch_change builtin_handlers category channel children delivery document execution "
        "journal json_limits log_lines policy pull record script stored_script task usage"
    ),
    "domain.recurrence": "allowance days expand iso8601 recurrence_set rrule rule_streams time_zones wall_clock",
    "domain.schedules": "schedule",
    "domain.transitions": (
        "backlog claim definitions deliveries drafts edits finish growth history invalid_input lifecycle locks offers "
        "outcome planning records requirements retry_execution suspend zone_plans"
    ),
    "engine": "builtin_handlers engine_context",
    "engine.children": "child_tasks",
    "engine.dispatch": "sender signing_keys",
    "engine.durable": (
        "archive arguments async_functions call_handle calls events journal_cursor no_journal not_a_value procedure "
        "race replay results step_attempt steps suspend timers"
    ),
    "engine.execution": "attempts claimed_run durable_services executor failure_hooks follow_ups invoke zone_replans",
    "engine.handlers": (
        "async_context calendar_tasks called_scripts context declaration dependencies handler operation payload_fields "
        "quick registry run_children signature typed_calls user_access validation"
    ),
    "engine.ports": "authority clock known_tasks pages queue records search store task_query tracing",
    "engine.state": "attempt_log commits deliveries event_log lease_renewal locks log_context quotas",
    "engine.tasks": "declared_tasks execution_search",
    "language": "task_fields",
    "runtime": "container factories telemetry",
    "web": "functions",
    "web.api": "parse problems",
}
"""The modules of cloudsched, by their room."""
