"""Which handler runs an imported job, and what of the job it gets as its payload."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from cloudsched.cli.imports.job import Refusal
from cloudsched.engine.handlers.declaration import Declaration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.cli.imports.job import Job
    from cloudsched.engine.handlers.registry import Registry


@dataclass(frozen=True, slots=True)
class HandlerChoice:
    """What the options say, beside the app's handlers.

    The first rule that fits: a pattern of ``--map``; a handler with the job's own name; ``--handler``. A handler that
    is found by one of the first two is for this job, and gets its body. The last is for any job, and gets all of it.
    """

    registry: Registry
    patterns: Sequence[tuple[str, str]]
    default: str | None
    owner: str

    def declare(self, job: Job) -> tuple[Declaration, list[str]]:
        """Return the task that a job becomes, and what of the job it does not have.

        Raises:
            Refusal: No handler is named for it, or its body is no payload.
        """
        own = next((name for pattern, name in self.patterns if fnmatchcase(job.name, pattern)), None)
        own = own or (job.name if job.name in self.registry else None)
        handler = own or self.default
        if handler is None:
            known = ", ".join(sorted(each.name for each in self.registry)) or "none"
            target = next((f" ({job.payload[key]})" for key in ("url", "topic", "path") if key in job.payload), "")
            raise Refusal(
                f"no handler is named for {job.name[:60]!r}{target}: give --map 'PATTERN=HANDLER' "
                f"or --handler HANDLER. There are: {known}"
            )
        payload, left_out = self._payload_for(job, handler, is_own=own is not None)
        declaration = Declaration(
            id=job.id,
            handler=handler,
            schedule=job.schedule,
            timezone=job.timezone,
            owner=self.owner,
            payload=payload,
            more={"title": job.title, **job.more},
            is_paused=job.is_paused,
        )
        return declaration, left_out

    def _payload_for(self, job: Job, name: str, *, is_own: bool) -> tuple[dict[str, Any], list[str]]:
        payload = job.body if is_own else job.payload
        handler = self.registry.find(name)
        left_out = [*job.left_out]
        if handler is not None and handler.payload is None:
            return {}, left_out if not payload else [*left_out, f"its payload, as {name} takes none"]
        if payload is None:
            raise Refusal(
                f"its body is no JSON object, so it cannot be the payload of {name!r}; --handler gets it as text"
            )
        if is_own and "attributes" in job.payload and "topic" in job.payload:
            left_out.append("its attributes")
        if handler is not None and "environment" in payload and not handler.accepts_field("environment"):
            left_out.append(f"its environment, as the payload of {name} has no such field")
            payload = {key: value for key, value in payload.items() if key != "environment"}
        return payload, left_out
