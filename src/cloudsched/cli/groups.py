"""Groups of commands that answer a mistyped command or a misplaced option with what was probably meant."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NoReturn

import click

if TYPE_CHECKING:
    from collections.abc import Mapping


class SuggestingGroup(click.Group):
    """A group whose refusals name the command that was probably meant.

    Args:
        synonyms: What people type, and the command (with its group, if that is another one) that they mean.
    """

    def __init__(self, *args: Any, synonyms: Mapping[str, str] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._synonyms = synonyms or {}

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is named first. Raises UsageError with a suggestion if there is none."""
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            self._refuse(ctx, name)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's signature
        """Run the command; an option of this group that stands behind the command is refused with its place."""
        try:
            return super().invoke(ctx)
        except click.NoSuchOption as error:
            options = {name for param in self.params if isinstance(param, click.Option) for name in param.opts}
            if error.option_name not in options or error.ctx is None or error.ctx is ctx:
                raise
            place = f"{ctx.command_path} {error.option_name} … {error.ctx.info_name}"
            raise click.UsageError(f"{error.option_name} goes before the command: {place}", error.ctx) from error

    def _refuse(self, ctx: click.Context, name: str) -> NoReturn:
        message = f"No such command {name!r}."
        commands = self.list_commands(ctx)
        if (meant := self._synonyms.get(name.lower())) is not None:
            close = [meant if meant.startswith("cloudsched ") else f"{ctx.command_path} {meant}"]
        else:
            matches = get_close_matches(name.lower(), [*commands, *self._synonyms], n=3)
            close = list(dict.fromkeys(self._full_name(ctx, match) for match in matches))
        if close:
            message += f" Did you mean {' or '.join(close)}?"
        raise click.UsageError(message, ctx)

    def _full_name(self, ctx: click.Context, name: str) -> str:
        meant = self._synonyms.get(name, name)
        return meant if meant.startswith("cloudsched ") else f"{ctx.command_path} {meant}"
