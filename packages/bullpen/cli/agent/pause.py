"""bullpen agent pause and resume."""

from __future__ import annotations

import click

from bullpen.cli import ids
from bullpen.cli.acting import only_people
from bullpen.cli.output import as_json, tell, writing
from bullpen.core.queue.lanes import pause_lane, resume_lane
from bullpen.core.roster.find import get_agent
from bullpen.core.settings import Settings


@click.command()
@click.argument("agent_id", nargs=-1, required=True, shell_complete=ids.agents)
@click.option("--reason", default="paused by hand", show_default=True, help="Why, for people.")
@as_json
@click.pass_obj
def pause(settings: Settings, agent_id: tuple[str, ...], reason: str, as_json: bool) -> None:
    """Start no more runs of agents; messages still come in.

    \b
    Example:
      bullpen agent pause coder --reason "on holiday"
    """
    only_people("pause agents")
    with writing(settings) as tx:
        for each in sorted(set(agent_id)):
            get_agent(tx, each)
            pause_lane(tx, each, reason)
    tell(
        as_json,
        {"paused": list(agent_id), "reason": reason},
        f"{_named(agent_id)} paused. Next: bullpen agent resume {' '.join(agent_id)}",
    )


@click.command()
@click.argument("agent_id", nargs=-1, required=True, shell_complete=ids.agents)
@as_json
@click.pass_obj
def resume(settings: Settings, agent_id: tuple[str, ...], as_json: bool) -> None:
    """Let agents work again.

    \b
    Example:
      bullpen agent resume coder
    """
    only_people("let agents work again")
    with writing(settings) as tx:
        for each in sorted(set(agent_id)):
            get_agent(tx, each)  # the lane of one that was removed stays closed
            resume_lane(tx, each)
    works = "works again" if len(agent_id) == 1 else "work again"
    named = ", ".join(f"@{each}" for each in agent_id)
    tell(as_json, {"resumed": list(agent_id)}, f"{named} {works}")


def _named(agents: tuple[str, ...]) -> str:
    return f"{', '.join(f'@{each}' for each in agents)} {'is' if len(agents) == 1 else 'are'}"
