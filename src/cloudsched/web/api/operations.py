"""All operations of the API. The router, the checks and ``/openapi.json`` are made from them."""

from __future__ import annotations

from typing import Final

from cloudsched.web.api import (
    draft_operations,
    execution_operations,
    overview_operations,
    people_operations,
    record_operations,
    service_operations,
    task_operations,
    verb_operations,
    worker_operations,
)
from cloudsched.web.api.operation import find_operations

OPERATIONS: Final = (
    *find_operations(task_operations),
    *verb_operations.VERB_OPERATIONS,
    *find_operations(draft_operations),
    *find_operations(execution_operations),
    *find_operations(worker_operations),
    *find_operations(overview_operations),
    *find_operations(people_operations),
    *find_operations(record_operations),
    *find_operations(service_operations),
)
