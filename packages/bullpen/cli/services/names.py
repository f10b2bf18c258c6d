"""The name of a service, as an argument: those that have a file are completed."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from bullpen.core.services.declared import list_programs


class ServiceName(click.ParamType[str]):
    """One of the services; another is refused with the list of them."""

    name = "service"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name, if there is such a service."""
        known = [each.name for each in list_programs()]
        if value not in known:
            self.fail(f"there is no service {value!r}; there are {', '.join(known)}", param, ctx)
        return value

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Those that begin like this."""
        return [
            CompletionItem(each.name)
            for each in list_programs()
            if each.name.startswith(incomplete)
        ]


SERVICES = ServiceName()
