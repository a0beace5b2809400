"""A view of the dashboard, as each page declares it. Pages of features are in their folders, and in their rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from cloudsched.dashboard.api import Json
    from cloudsched.dashboard.forms.fields import Again, Submitted
    from cloudsched.dashboard.visit import Visit


@dataclass(frozen=True, slots=True)
class View:
    """A view: its requests to the API, and what its template needs of the answers."""

    path: str
    fetch: Callable[..., Json]
    build: Callable[[Json, Visit], Json]
    """Returns what the template shows. A ``title`` in it is the page's, which otherwise is the tab's name."""
    template: str
    """Its file, in the folder of the dashboard's templates or beside the module of a feature."""
    tab: str
    """The name of the view in the top bar that it belongs to."""
    key: str = field(default="", kw_only=True)
    """The key that leads there after ``g``. Empty if it is not in the top bar."""
    send: Callable[..., Submitted | Again] | None = None
    """Carries out the view's form. None if it has none."""
    list_rows: Callable[[Visit], tuple[str, Mapping[str, str | None]]] | None = field(default=None, kw_only=True)
    """Returns the list of the API that has the view's rows, and the filters. None if it cannot be downloaded."""
    parameters: Collection[str] = field(default=(), kw_only=True)
    """The parameters of its address, beside those of any view (`visit.OF_ANY`). Others are refused."""
    is_form: bool = field(default=False, kw_only=True)
    """True if the view is a form. Only those who may change something see it, and it does not change by itself."""
    is_live: bool = field(default=True, kw_only=True)
    """True if it changes by itself. Usage does not, because each look sums up the changes, at a read for each task."""
