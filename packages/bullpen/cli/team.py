"""bullpen team: add, change, show, watch and remove teams."""

from __future__ import annotations

import sys
from dataclasses import asdict
from zoneinfo import ZoneInfo

import click

from bullpen.cli import completion
from bullpen.cli.agent import lane_activity
from bullpen.cli.agent_remove import orphan_notices
from bullpen.cli.command import read_transaction, require_person, write_transaction
from bullpen.cli.lazy import LazyGroup
from bullpen.cli.output import as_json, confirm, print_json, print_result, print_table, yes
from bullpen.cli.views.app import require_terminal
from bullpen.core.clock import owner_zone_name, start_of_day
from bullpen.core.company import remove_team
from bullpen.core.inspect.queue import get_lane
from bullpen.core.inspect.removal import schedules_orphaned_by_team
from bullpen.core.roster.agents import get_agent
from bullpen.core.roster.teams import (
    DeliveryMode,
    Team,
    TeamChange,
    add_members,
    add_team,
    change_team,
    get_team,
    list_teams,
    lock_team,
    remove_members,
)
from bullpen.core.settings import Settings
from bullpen.core.store.transaction import Transaction


@click.group(
    cls=LazyGroup,
    modules={
        "add": "bullpen.cli.team:add",
        "add-member": "bullpen.cli.team:add_member",
        "list": "bullpen.cli.team:list_",
        "remove": "bullpen.cli.team:remove",
        "remove-member": "bullpen.cli.team:remove_member",
        "set": "bullpen.cli.team:set_",
        "show": "bullpen.cli.team:show",
        "watch": "bullpen.cli.team:watch",
    },
    aliases={
        **dict.fromkeys(("add-agent", "agent-add", "member-add"), "add-member"),
        **dict.fromkeys(("remove-agent", "agent-remove", "member-remove"), "remove-member"),
    },
)
def team() -> None:
    """Add, change, look at, watch and remove teams.

    \b
    Example:
      bullpen team add dev coder reviewer --leader coder
    """


DELIVERIES = click.Choice([each.value for each in DeliveryMode])


@click.command()
@click.argument("team_id")
@click.argument("members", nargs=-1, required=True, shell_complete=completion.agents)
@click.option(
    "--leader",
    shell_complete=completion.agents,
    help="Who gets what is said to the team; the first, if not said.",
)
@click.option("--name", default="", help="What people call it.")
@click.option(
    "--delivery",
    type=DELIVERIES,
    default=DeliveryMode.STREAM.value,
    show_default=True,
    help="How answers come: each, or all as one.",
)
@as_json
@click.pass_obj
def add(
    settings: Settings,
    team_id: str,
    members: tuple[str, ...],
    leader: str | None,
    name: str,
    delivery: str,
    as_json: bool,
) -> None:
    """Make a team of agents.

    \b
    Example:
      bullpen team add dev coder reviewer --leader coder
    """
    require_person("make teams")
    made = Team(
        id=team_id,
        name=name,
        leader=leader or members[0],
        members=members,
        delivery=DeliveryMode(delivery),
    )
    with write_transaction(settings) as tx:
        add_team(tx, made)
    print_result(
        as_json, asdict(made), f"@{team_id} is there. Next: bullpen send '@{team_id} hello'"
    )


@click.command(name="list")
@as_json
@click.pass_obj
def list_(settings: Settings, as_json: bool) -> None:
    """List all teams.

    \b
    Example:
      bullpen team list
    """
    with read_transaction(settings) as tx:
        found = list_teams(tx)
    if as_json:
        print_json(found)
        return
    rows = [("TEAM", "NAME", "LEADER", "MEMBERS", "DELIVERY")]
    rows += [
        (each.id, each.name, each.leader, " ".join(each.members), each.delivery.value)
        for each in found
    ]
    print_table(rows, "There are no teams yet. Next: bullpen team add dev coder --leader coder")


@click.command(name="add-member")
@click.argument("team_id", shell_complete=completion.teams)
@click.argument("agent_id", nargs=-1, required=True, shell_complete=completion.agents)
@as_json
@click.pass_obj
def add_member(settings: Settings, team_id: str, agent_id: tuple[str, ...], as_json: bool) -> None:
    """Take agents into a team.

    \b
    Example:
      bullpen team add-member dev reviewer
    """
    require_person("change teams")
    with write_transaction(settings) as tx:
        changed = add_members(tx, team_id, agent_id)
    print_result(as_json, asdict(changed), _members(changed))


@click.command(name="remove-member")
@click.argument("team_id", shell_complete=completion.teams)
@click.argument("agent_id", nargs=-1, required=True, shell_complete=completion.agents)
@click.option(
    "--leader",
    shell_complete=completion.agents,
    help="Who leads from now on; if the leader goes and you do not say, who is next.",
)
@as_json
@click.pass_obj
def remove_member(
    settings: Settings,
    team_id: str,
    agent_id: tuple[str, ...],
    leader: str | None,
    as_json: bool,
) -> None:
    """Take agents out of a team; they stay otherwise.

    \b
    Example:
      bullpen team remove-member dev coder --leader reviewer
    """
    require_person("change teams")
    with write_transaction(settings) as tx:
        changed = remove_members(tx, team_id, agent_id, leader)
    print_result(as_json, asdict(changed), _members(changed))


def _members(team: Team) -> str:
    named = ", ".join(f"@{each}" for each in team.members)
    return f"@{team.id} is {named}; @{team.leader} leads"


@click.command()
@click.argument("team_id", nargs=-1, required=True, shell_complete=completion.teams)
@yes
@as_json
@click.pass_obj
def remove(settings: Settings, team_id: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Disband teams; their agents stay, and so does what was said in their rooms.

    \b
    Example:
      bullpen team remove dev
    """
    require_person("disband teams")
    names = sorted(set(team_id))
    with read_transaction(settings) as tx:
        found = {each: schedules_orphaned_by_team(tx, each) for each in names}
    confirm("\n".join(_what(each, len(found[each])) for each in names), yes)
    with write_transaction(settings) as tx:
        for each in names:
            lock_team(tx, each)
            found[each] = schedules_orphaned_by_team(tx, each)
            remove_team(tx, each)
    said = [f"@{each} is disbanded; its agents stay" for each in names]
    paused = [schedule for each in names for schedule in found[each]]
    document = {"removed": names, "schedules": sorted(paused)}
    print_result(as_json, document, *said, *orphan_notices(paused))


def _what(team: str, schedules: int) -> str:
    paused = f" ({schedules} schedule{'s' if schedules > 1 else ''} paused)" if schedules else ""
    return f"Disband @{team}{paused}"


@click.command(name="set")
@click.argument("team_id", shell_complete=completion.teams)
@click.option(
    "--leader", shell_complete=completion.agents, help="Who gets what is said to the team."
)
@click.option(
    "--member",
    "members",
    multiple=True,
    shell_complete=completion.agents,
    help="A member; give all of them.",
)
@click.option("--name", help="What people call it.")
@click.option("--delivery", type=DELIVERIES, help="How answers come: each, or all as one.")
@click.option("--max-hops", type=int, help="Handoffs in a row.")
@click.option("--max-messages", type=int, help="Messages of one conversation.")
@click.option("--max-cost", type=float, help="Dollars of one conversation; 0 is any.")
@click.option("--usual-limits", is_flag=True, help="No limits of its own: those of the settings.")
@as_json
@click.pass_obj
def set_(
    settings: Settings, /, team_id: str, usual_limits: bool, as_json: bool, **given: object
) -> None:
    """Change what is named; the rest stays.

    \b
    Example:
      bullpen team set dev --delivery aggregate --max-hops 4
    """
    require_person("change teams")
    usual = TeamChange(max_hops=None, max_messages=None, max_cost=None)
    change = usual if usual_limits else TeamChange()
    for name, value in given.items():
        if value is not None and value != ():
            change[name] = value  # type: ignore[literal-required]
    if "delivery" in change:
        change["delivery"] = DeliveryMode(change["delivery"])
    with write_transaction(settings) as tx:
        changed = change_team(tx, team_id, **change)
    print_result(as_json, asdict(changed), f"@{team_id} is changed")


@click.command()
@click.argument("team_id", shell_complete=completion.teams)
@as_json
@click.pass_obj
def show(settings: Settings, team_id: str, as_json: bool) -> None:
    """Show everything about one team, and what its members are at.

    \b
    Example:
      bullpen team show dev
    """
    with read_transaction(settings) as tx:
        found = get_team(tx, team_id)
        agents = [_member(tx, each) for each in found.members]
    limits = _limits(found, settings)
    if as_json:
        print_json({**asdict(found), "limits": limits, "agents": agents})
        return
    for name, value in (
        ("id", found.id),
        *((("name", found.name),) if found.name else ()),
        ("leader", f"@{found.leader}"),
        ("delivery", found.delivery.value),
        ("handoffs", f"{limits['max_hops']} in a row"),
        ("messages", f"{limits['max_messages']} of one conversation"),
        ("cost", f"${limits['max_cost']} of one conversation" if limits["max_cost"] else "any"),
    ):
        click.echo(f"{name:<10} {value}".rstrip())
    click.echo("members")
    for each in agents:
        click.echo(f"  @{each['id']}: {each['provider']}, {each['state']}")


def _member(tx: Transaction, agent_id: str) -> dict[str, object]:
    agent, lane = get_agent(tx, agent_id), get_lane(tx, agent_id)
    return {
        "id": agent.id,
        "name": agent.name,
        "provider": agent.provider,
        "model": agent.model,
        "state": lane_activity(lane),
        "pending": lane.pending,
        "processing": lane.processing,
    }


def _limits(team: Team, settings: Settings) -> dict[str, float]:
    """Its own, or the settings where it has none."""
    return {
        "max_hops": settings.max_hops if team.max_hops is None else team.max_hops,
        "max_messages": settings.max_messages if team.max_messages is None else team.max_messages,
        "max_cost": settings.max_cost if team.max_cost is None else team.max_cost,
    }


@click.command()
@click.argument("team_id", metavar="[TEAM]", required=False, shell_complete=completion.teams)
@as_json
@click.pass_obj
def watch(settings: Settings, team_id: str | None, as_json: bool) -> None:
    """Watch the agents of a team at work, or all agents. With --json print how they stand now.

    \b
    Keys: ↑ ↓ choose an agent, enter looks at it, p pauses it, r lets it work again, ? explains,
    q leaves.

    \b
    Examples:
      bullpen team watch
      bullpen team watch dev
      bullpen team watch dev --json
    """
    from bullpen.core.inspect.activity import get_company_status, last_run_before, run_totals_since

    require_person("watch the whole company")
    zone = ZoneInfo(owner_zone_name(settings))
    with read_transaction(
        settings
    ) as tx:  # a name that is wrong is told before the screen is taken
        company = get_company_status(tx, team_id)
        day = start_of_day(tx.now, zone)
        spent = run_totals_since(tx, day, last_run_before(tx, day))
    if as_json:
        from bullpen.cli.views.company_data import company_fields

        print_json(company_fields(company, spent))
        return
    require_terminal(f"bullpen team show {team_id}" if team_id else "bullpen agent list")
    from bullpen.cli.views.app import run_view
    from bullpen.cli.views.company import WatchView

    sys.exit(run_view(WatchView(settings, team_id, zone)))
