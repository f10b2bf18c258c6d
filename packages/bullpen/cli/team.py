"""bullpen team: create, change, show, watch and remove teams."""

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
from bullpen.cli.options import Amount, Count, require_change, yes
from bullpen.cli.output import confirm, format_count, format_fields
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
    """Create, change, watch and remove teams.

    \b
    Example:
      bullpen team add dev coder reviewer --leader coder
    """


def _split_names(_: click.Context, __: click.Parameter, words: tuple[str, ...]) -> tuple[str, ...]:
    """Names that are separate words or separated by commas."""
    names = tuple(name for word in words for name in word.split(",") if name)
    if words and not names:
        raise click.BadParameter("give at least one agent")
    return names


members_argument = click.argument(
    "members",
    metavar="AGENT...",
    nargs=-1,
    required=True,
    callback=_split_names,
    shell_complete=completion.agents,
)

DELIVERIES = click.Choice([each.value for each in DeliveryMode])


@command(team, people_only="create teams", tx="write")
@click.argument("team_id", metavar="TEAM")
@members_argument
@click.option(
    "--leader",
    metavar="AGENT",
    show_default="the first agent",
    shell_complete=completion.agents,
    help="Agent that gets the team's messages.",
)
@click.option("--name", default="", help="Display name.")
@click.option(
    "--delivery",
    type=DELIVERIES,
    default=DeliveryMode.STREAM.value,
    show_default=True,
    help="Send each answer at once, or all answers as one.",
)
def add(
    tx: Transaction,
    team_id: str,
    members: tuple[str, ...],
    leader: str | None,
    name: str,
    delivery: str,
) -> Result:
    """Create a team of agents.

    \b
    Examples:
      bullpen team add dev coder reviewer --leader coder
      bullpen team add ops coder,reviewer
    """
    team = Team(
        id=team_id,
        name=name,
        leader=leader or members[0],
        members=members,
        delivery=DeliveryMode(delivery),
    )
    add_team(tx, team)
    return Result(team, f'Created @{team_id}. Next: bullpen send "@{team_id} hello"')


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
    empty = "No teams yet. Next: bullpen team add dev coder reviewer"
    return Result(teams, rows=rows, empty=empty, ids=(each.id for each in teams))


@command(team, people_only="change teams", tx="write")
@click.argument("team_id", metavar="TEAM", shell_complete=completion.teams)
@members_argument
def add_member(tx: Transaction, team_id: str, members: tuple[str, ...]) -> Result:
    """Add agents to a team.

    \b
    Example:
      bullpen team add-member dev reviewer
    """
    changed = add_members(tx, team_id, members)
    return Result(changed, _describe_members(changed))


@command(team, people_only="change teams", tx="write")
@click.argument("team_id", metavar="TEAM", shell_complete=completion.teams)
@members_argument
@click.option(
    "--leader",
    metavar="AGENT",
    show_default="the next agent, if the leader is removed",
    shell_complete=completion.agents,
    help="New leader.",
)
def remove_member(
    tx: Transaction, team_id: str, members: tuple[str, ...], leader: str | None
) -> Result:
    """Remove agents from a team.

    The agents themselves stay.

    \b
    Example:
      bullpen team remove-member dev coder --leader reviewer
    """
    changed = remove_members(tx, team_id, members, leader)
    return Result(changed, _describe_members(changed))


def _describe_members(team: Team) -> str:
    named = ", ".join(f"@{each}" for each in team.members)
    return f"Members of @{team.id}: {named}. Leader: @{team.leader}."


@command(team, people_only="remove teams")
@click.argument(
    "team_id", metavar="TEAM...", nargs=-1, required=True, shell_complete=completion.teams
)
@yes
def remove(settings: Settings, team_id: tuple[str, ...], yes: bool) -> Result:
    """Remove teams.

    Their agents and the history of their rooms stay. Schedules for a removed team are paused.

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
        [*(f"Removed team @{each}." for each in names), *orphan_notices(paused)],
    )


def _describe_removal(team: str, schedules: int) -> str:
    paused = f" and pause {format_count(schedules, 'schedule')}" if schedules else ""
    return f"Remove team @{team}{paused}"


@command(team, people_only="change teams", tx="write")
@click.argument("team_id", metavar="TEAM", shell_complete=completion.teams)
@click.option(
    "--leader",
    metavar="AGENT",
    shell_complete=completion.agents,
    help="Agent that gets the team's messages.",
)
@click.option(
    "--member",
    "members",
    metavar="AGENT",
    multiple=True,
    shell_complete=completion.agents,
    help="Replace the members. Repeat it for each one.",
)
@click.option("--name", help="Display name.")
@click.option(
    "--delivery", type=DELIVERIES, help="Send each answer at once, or all answers as one."
)
@click.option("--max-hops", type=Count(), help="Limit of handoffs in a row.")
@click.option("--max-messages", type=Count(), help="Limit of messages in a conversation.")
@click.option(
    "--max-cost", type=Amount(), help="Limit of dollars in a conversation. 0 means unlimited."
)
@click.option("--usual-limits", is_flag=True, help="Use the limits of the settings.")
def set_(tx: Transaction, /, team_id: str, usual_limits: bool, **options: object) -> Result:
    """Change a team.

    Only the given options change.

    \b
    Example:
      bullpen team set dev --delivery aggregate --max-hops 4
    """
    require_change({**options, "usual_limits": usual_limits})
    change = TeamChange()
    if usual_limits:
        change = TeamChange(max_hops=None, max_messages=None, max_cost=None)
    for name, value in options.items():
        if value is not None and value != ():
            change[name] = value  # type: ignore[literal-required] # options are named as fields
    if "delivery" in change:
        change["delivery"] = DeliveryMode(change["delivery"])
    return Result(change_team(tx, team_id, **change), f"Changed @{team_id}.")


@command(team, tx="read")
@click.argument("team_id", metavar="TEAM", shell_complete=completion.teams)
def show(tx: Transaction, team_id: str) -> Result:
    """Show a team, its limits and the states of its members.

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
        ("handoffs", f"at most {limits['max_hops']} in a row"),
        ("messages", f"at most {limits['max_messages']} in a conversation"),
        (
            "cost",
            f"at most ${limits['max_cost']} in a conversation"
            if limits["max_cost"]
            else "unlimited",
        ),
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


@command(team, people_only="watch agents")
@click.argument("team_id", metavar="[TEAM]", required=False, shell_complete=completion.teams)
def watch(settings: Settings, team_id: str | None) -> Result:
    """Watch the agents of a team, or all agents, at work.

    With --json the command prints their present state once.

    \b
    Keys: ↑ ↓ select an agent, Enter shows it, p pauses it, r resumes it, ? shows all keys, q quits.

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
