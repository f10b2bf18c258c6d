"""bullpen team: add, change, show, watch and remove teams."""

from __future__ import annotations

import sys
from dataclasses import asdict
from zoneinfo import ZoneInfo

import click

from bullpen.cli import completion
from bullpen.cli.agent import lane_activity
from bullpen.cli.agent_remove import orphan_notices
from bullpen.cli.command import Result, command, json_requested, read_transaction, write_transaction
from bullpen.cli.lazy import LazyGroup
from bullpen.cli.options import yes
from bullpen.cli.output import confirm, format_fields
from bullpen.cli.views.app import require_terminal
from bullpen.core.clock import owner_zone_name, start_of_day
from bullpen.core.company import remove_team
from bullpen.core.inspect.lanes import get_lane
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


@command(team, people_only="make teams", tx="write")
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
def add(
    tx: Transaction,
    team_id: str,
    members: tuple[str, ...],
    leader: str | None,
    name: str,
    delivery: str,
) -> Result:
    """Make a team of agents.

    \b
    Example:
      bullpen team add dev coder reviewer --leader coder
    """
    team = Team(
        id=team_id,
        name=name,
        leader=leader or members[0],
        members=members,
        delivery=DeliveryMode(delivery),
    )
    add_team(tx, team)
    return Result(team, f"@{team_id} is there. Next: bullpen send '@{team_id} hello'")


@command(team, tx="read", listing=True)
def list_(tx: Transaction) -> Result:
    """List all teams.

    \b
    Example:
      bullpen team list
    """
    teams = list_teams(tx)
    rows = [("TEAM", "NAME", "LEADER", "MEMBERS", "DELIVERY")]
    rows += [
        (each.id, each.name, each.leader, " ".join(each.members), each.delivery.value)
        for each in teams
    ]
    empty = "There are no teams yet. Next: bullpen team add dev coder --leader coder"
    return Result(teams, rows=rows, empty=empty, ids=(each.id for each in teams))


@command(team, people_only="change teams", tx="write")
@click.argument("team_id", shell_complete=completion.teams)
@click.argument("agent_id", nargs=-1, required=True, shell_complete=completion.agents)
def add_member(tx: Transaction, team_id: str, agent_id: tuple[str, ...]) -> Result:
    """Take agents into a team.

    \b
    Example:
      bullpen team add-member dev reviewer
    """
    changed = add_members(tx, team_id, agent_id)
    return Result(changed, _describe_members(changed))


@command(team, people_only="change teams", tx="write")
@click.argument("team_id", shell_complete=completion.teams)
@click.argument("agent_id", nargs=-1, required=True, shell_complete=completion.agents)
@click.option(
    "--leader",
    shell_complete=completion.agents,
    help="Who leads from now on; if the leader goes and you do not say, who is next.",
)
def remove_member(
    tx: Transaction, team_id: str, agent_id: tuple[str, ...], leader: str | None
) -> Result:
    """Take agents out of a team; they stay otherwise.

    \b
    Example:
      bullpen team remove-member dev coder --leader reviewer
    """
    changed = remove_members(tx, team_id, agent_id, leader)
    return Result(changed, _describe_members(changed))


def _describe_members(team: Team) -> str:
    named = ", ".join(f"@{each}" for each in team.members)
    return f"@{team.id} is {named}; @{team.leader} leads"


@command(team, people_only="disband teams")
@click.argument("team_id", nargs=-1, required=True, shell_complete=completion.teams)
@yes
def remove(settings: Settings, team_id: tuple[str, ...], yes: bool) -> Result:
    """Disband teams; their agents stay, and so does what was said in their rooms.

    \b
    Example:
      bullpen team remove dev
    """
    names = sorted(set(team_id))
    with read_transaction(settings) as tx:
        orphaned = {each: schedules_orphaned_by_team(tx, each) for each in names}
    confirm("\n".join(_describe_removal(each, len(orphaned[each])) for each in names), yes)
    with write_transaction(settings) as tx:
        for each in names:
            lock_team(tx, each)
            orphaned[each] = schedules_orphaned_by_team(tx, each)
            remove_team(tx, each)
    paused = [schedule for each in names for schedule in orphaned[each]]
    return Result(
        {"removed": names, "schedules": sorted(paused)},
        [*(f"@{each} is disbanded; its agents stay" for each in names), *orphan_notices(paused)],
    )


def _describe_removal(team: str, schedules: int) -> str:
    paused = f" ({schedules} schedule{'s' if schedules > 1 else ''} paused)" if schedules else ""
    return f"Disband @{team}{paused}"


@command(team, people_only="change teams", tx="write")
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
def set_(tx: Transaction, /, team_id: str, usual_limits: bool, **options: object) -> Result:
    """Change what is named; the rest stays.

    \b
    Example:
      bullpen team set dev --delivery aggregate --max-hops 4
    """
    change = TeamChange()
    if usual_limits:
        change = TeamChange(max_hops=None, max_messages=None, max_cost=None)
    for name, value in options.items():
        if value is not None and value != ():
            change[name] = value  # type: ignore[literal-required] # options are named as fields
    if "delivery" in change:
        change["delivery"] = DeliveryMode(change["delivery"])
    return Result(change_team(tx, team_id, **change), f"@{team_id} is changed")


@command(team, tx="read")
@click.argument("team_id", shell_complete=completion.teams)
def show(tx: Transaction, team_id: str) -> Result:
    """Show everything about one team, and what its members are at.

    \b
    Example:
      bullpen team show dev
    """
    team = get_team(tx, team_id)
    agents = [_member_fields(tx, each) for each in team.members]
    limits = _limits(team, tx.settings)
    fields = format_fields(
        ("id", team.id),
        ("name", team.name or None),
        ("leader", f"@{team.leader}"),
        ("delivery", team.delivery.value),
        ("handoffs", f"{limits['max_hops']} in a row"),
        ("messages", f"{limits['max_messages']} of one conversation"),
        ("cost", f"${limits['max_cost']} of one conversation" if limits["max_cost"] else "any"),
        width=10,
    )
    members = (f"  @{each['id']}: {each['provider']}, {each['state']}" for each in agents)
    return Result(
        {**asdict(team), "limits": limits, "agents": agents}, [*fields, "members", *members]
    )


def _member_fields(tx: Transaction, agent_id: str) -> dict[str, object]:
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
    """Return a team's own limits, and the settings' where it has none."""
    return {
        "max_hops": settings.max_hops if team.max_hops is None else team.max_hops,
        "max_messages": settings.max_messages if team.max_messages is None else team.max_messages,
        "max_cost": settings.max_cost if team.max_cost is None else team.max_cost,
    }


@command(team, people_only="watch the whole company")
@click.argument("team_id", metavar="[TEAM]", required=False, shell_complete=completion.teams)
def watch(settings: Settings, team_id: str | None) -> Result:
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

    zone = ZoneInfo(owner_zone_name(settings))
    with read_transaction(settings) as tx:  # an unknown team is an error before the view opens
        company = get_company_status(tx, team_id)
        day = start_of_day(tx.now, zone)
        spent = run_totals_since(tx, day, last_run_before(tx, day))
    if json_requested():
        from bullpen.cli.views.company_data import company_fields

        return Result(company_fields(company, spent))
    require_terminal(f"bullpen team show {team_id}" if team_id else "bullpen agent list")
    from bullpen.cli.views.app import run_view
    from bullpen.cli.views.company import WatchView

    sys.exit(run_view(WatchView(settings, team_id, zone)))
