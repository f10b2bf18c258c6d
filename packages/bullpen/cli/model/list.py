"""bullpen model list."""

from __future__ import annotations

import click

from bullpen.cli.output import as_json, print_json, print_table, read_transaction
from bullpen.core.roster.custom_providers import CUSTOM_PREFIX, list_custom_providers
from bullpen.core.roster.find import list_agents
from bullpen.core.settings import Settings


@click.command(name="list")
@as_json
@click.pass_obj
def list_(settings: Settings, as_json: bool) -> None:
    """List the models, and which agents use each.

    \b
    Example:
      bullpen model list
    """
    with read_transaction(settings) as tx:
        agents = list_agents(tx)
        usual = {CUSTOM_PREFIX + each.id: each.model for each in list_custom_providers(tx)}
    users: dict[tuple[str, str], list[str]] = {}
    for each in agents:
        model = each.model or usual.get(each.provider, "")
        users.setdefault((each.provider, model), []).append(each.id)
    found = [(provider, model, users[provider, model]) for provider, model in sorted(users)]
    if as_json:
        names = ("provider", "model", "agents")
        print_json([dict(zip(names, each, strict=True)) for each in found])
        return
    rows = [("PROVIDER", "MODEL", "AGENTS")]
    rows += [
        (provider, model or "(its own choice)", " ".join(agents))
        for provider, model, agents in found
    ]
    print_table(rows, "There are no agents yet. Next: bullpen agent add coder --provider claude")
