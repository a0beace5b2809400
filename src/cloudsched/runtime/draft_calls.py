"""What an app's own code does with drafts; the HTTP API has its own way to the same parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from cloudsched.domain.documents.authority import SYSTEM_OWNER, Authority
from cloudsched.runtime.parts import ReplaceableParts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from cloudsched.domain.documents.draft_responses import DraftResult
    from cloudsched.domain.documents.task import Task
    from cloudsched.runtime.confirmation import ConfirmingApp

OWN_CODE: Final = "code"
"""Who has asked, if the app's own code did."""


class DraftCalls(ReplaceableParts):
    """Makes and confirms drafts."""

    def draft(
        self,
        text: str,
        *,
        timezone: str,
        owner: str = SYSTEM_OWNER,
        conversation: Sequence[dict[str, str]] = (),
        context: dict[str, Any] | None = None,
        now: datetime | None = None,
        authority: Authority = Authority.USERS,
    ) -> DraftResult:
        """Return what somebody asks for: a task to create, a change of one of theirs, or why not. It stores nothing.

        Show it, and give it to `confirm`.

        Args:
            text: What they said.
            timezone: Their IANA time zone.
            owner: Whose task it is.
            conversation: What was said before, each with `role` and `content`.
            context: What the app knows: see ``docs/how-to/drafts.md``.
            now: The instant from which "tomorrow" counts; now if None.
            authority: SERVERS proposes handlers that users may not name, too.

        Raises:
            InvalidInput: An argument is not valid.
        """
        from cloudsched.drafts.request import DraftRequest  # noqa: PLC0415 - imported only when used
        from cloudsched.drafts.service import Access  # noqa: PLC0415 - the same
        from cloudsched.drafts.tokens import Requester  # noqa: PLC0415 - the same

        content = {
            "text": text,
            "timezone": timezone,
            "conversation": list(conversation),
            "context": context or {},
            "now": None if now is None else now.isoformat(),
        }
        request = DraftRequest.from_wire(content)
        access = Access(Requester(OWN_CODE, owner), authority, lambda _: None)
        return self.container.drafts.make(request, access)

    def confirm(self, draft: DraftResult, *, owner: str = SYSTEM_OWNER) -> Task:
        """Store what a draft of this app's code shows: create its task, or change the task that it is about.

        Repeating it creates nothing new.

        Raises:
            InvalidInput: The draft is no longer valid, or not the one that was made for this owner.
            PreconditionFailed: The task has changed since.
        """
        from cloudsched.drafts.tokens import Requester  # noqa: PLC0415 - imported only when used
        from cloudsched.runtime.confirmation import create_confirmed, patch_confirmed  # noqa: PLC0415 - the same

        requester, content = Requester(OWN_CODE, owner), draft.require_complete()
        app = cast("ConfirmingApp", self)
        if draft.task_id is not None:
            return patch_confirmed(app, draft.task_id, content, requester)
        return create_confirmed(app, content, requester)[0]
