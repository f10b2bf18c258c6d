"""With which arguments each command succeeds in the prepared home."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.cli.schemas import channels, conversations, home, queue, reports, roster, times

DEGRADED = 3
TELEGRAM = {"BULLPEN_TELEGRAM_BOT_TOKEN": "1:x"}


@dataclass(frozen=True, slots=True)
class Entry:
    """What a command prints with --json, and how it is called: `{key}` is the id of a key."""

    schema: Any
    arguments: str = ""
    status: int = 0
    """0, or what it says of a home in which nothing runs."""
    stdin: str = ""
    storeless: bool = False
    """True if it does not need the database."""
    screen: bool = False
    """True if without --json it needs a terminal."""
    environ: Mapping[str, str] = field(default_factory=dict)


ENTRIES: Mapping[str, Entry] = {
    "agent add": Entry(roster.Agent, "newcomer --name 'A newcomer' --provider echo"),
    "agent lane": Entry(roster.LanePolicy, "coder --batching one --max-depth 9"),
    "agent list": Entry(list[roster.Agent]),
    "agent pause": Entry(queue.LanesMoved, "coder tester --reason holiday"),
    "agent provider": Entry(roster.AgentProvider, "coder codex --model gpt-5.2"),
    "agent remove": Entry(list[roster.AgentRemoved], "coder --force --yes"),
    "agent reset": Entry(roster.AgentReset, "coder tester"),
    "agent resume": Entry(queue.LanesMoved, "coder"),
    "agent set": Entry(roster.Agent, "coder --permission read"),
    "agent show": Entry(roster.AgentShown, "coder"),
    "channel list": Entry(list[channels.Channel]),
    "channel pause": Entry(channels.Channel, "telegram", environ=TELEGRAM),
    "channel resume": Entry(channels.Channel, "telegram", environ=TELEGRAM),
    "channel status": Entry(channels.Channel, "telegram", status=DEGRADED),
    "config check": Entry(home.SettingsChecked, storeless=True),
    "config get": Entry(home.Setting, "max_hops", storeless=True),
    "config list": Entry(list[home.Setting], storeless=True),
    "config path": Entry(home.SettingsPath, storeless=True),
    "config restore": Entry(home.SettingsChanged, "--yes", storeless=True),
    "config set": Entry(home.SettingsChanged, "max_hops 7", storeless=True),
    "config unset": Entry(home.SettingsChanged, "max_hops", storeless=True),
    "db backup": Entry(home.BackedUp),
    "db release": Entry(home.LetGo | home.NothingHeld, "--yes"),
    "db restore": Entry(home.Restored, "{backup} --to {home}/restored", storeless=True),
    "db verify": Entry(home.Verified, "{backup}", storeless=True),
    "db check": Entry(home.DatabaseChecked),
    "db upgrade": Entry(home.DatabaseUpgraded),
    "doctor": Entry(home.Examination, "--only settings", storeless=True),
    "events": Entry(list[conversations.Event]),
    "heartbeat history": Entry(list[times.Beat], "coder"),
    "heartbeat list": Entry(list[times.Heartbeat]),
    "heartbeat now": Entry(times.HeartbeatSent, "stranger"),
    "heartbeat off": Entry(times.Heartbeat, "coder"),
    "heartbeat on": Entry(times.Heartbeat, "tester --every 30m --hours 08:00-18:00"),
    "heartbeat set": Entry(times.Heartbeat, "coder --to nowhere"),
    "heartbeat show": Entry(times.HeartbeatShown, "coder"),
    "history list": Entry(list[conversations.Said]),
    "history people": Entry(list[conversations.Person]),
    "history search": Entry(list[conversations.Said], "login"),
    "key add": Entry(home.NewKey, "worker --scope claim --agent coder --days 9"),
    "key list": Entry(list[home.Key]),
    "key revoke": Entry(home.KeysRevoked, "{key} --yes"),
    "logs": Entry(list[home.LogLine], storeless=True),
    "model list": Entry(list[roster.Model]),
    "model set": Entry(roster.Switched, "small --provider custom:local --yes"),
    "pairing approve": Entry(channels.Pairing, "{code} --tier guest"),
    "pairing block": Entry(channels.Pairing, "telegram 4711"),
    "pairing list": Entry(list[channels.Pairing]),
    "pairing revoke": Entry(channels.Unpaired, "telegram 4711 --yes"),
    "pairing tier": Entry(channels.Pairing, "telegram 4711 guest"),
    "provider add": Entry(
        roster.Provider, "mine --harness codex --base-url http://127.0.0.1:7", stdin="a-key\n"
    ),
    "provider list": Entry(list[roster.Provider]),
    "provider remove": Entry(roster.ProviderRemoved, "local --yes"),
    "provider set": Entry(roster.Provider, "local --model small --key", stdin="a-key\n"),
    "provider show": Entry(roster.Provider, "local"),
    "provider test": Entry(roster.ProviderTested, "echo"),
    "provider use": Entry(roster.Switched, "claude --from echo --yes"),
    "queue agents": Entry(list[queue.Lane], "--all"),
    "queue cancel": Entry(queue.Bulk, "cli_waiting --yes"),
    "queue causes": Entry(list[queue.DeathCause]),
    "queue dead": Entry(list[queue.Waiting]),
    "queue drain": Entry(queue.LanesMoved, "tester"),
    "queue drop": Entry(queue.Bulk, "--agent tester --state dead --yes"),
    "queue held": Entry(list[queue.Waiting]),
    "queue list": Entry(list[queue.Waiting | queue.Message]),
    "queue pause": Entry(queue.LanesMoved, "coder"),
    "queue resume": Entry(queue.Bulk, "cli_held"),
    "queue retry": Entry(queue.Bulk, "cli_dead"),
    "queue show": Entry(queue.MessageShown, "cli_dead"),
    "queue status": Entry(queue.QueueStatus),
    "report export": Entry(reports.Exported, "people -o {home}/people.csv", storeless=True),
    "report list": Entry(list[reports.ReportEntry], storeless=True),
    "report show": Entry(reports.ReportRows, "people --since 2026-10-01", storeless=True),
    "report sql": Entry(reports.SqlResult, "'SELECT * FROM people'", storeless=True),
    "response ack": Entry(queue.Bulk, "{response}"),
    "response drop": Entry(queue.Bulk, "{response} --yes"),
    "response list": Entry(list[queue.Response]),
    "response read": Entry(list[queue.Response]),
    "response retry": Entry(queue.Bulk, "{dead_response} --yes"),
    "response send": Entry(
        queue.SentResponse, "--channel telegram --to 4711 'the report is ready'"
    ),
    "response show": Entry(queue.ResponseShown, "{response}"),
    "room post": Entry(conversations.Posted, "dev 'stand-up!'"),
    "room read": Entry(list[conversations.Post], "dev"),
    "schedule add": Entry(times.Schedule, "'Is it up?' --agent coder --every 30m --to nowhere"),
    "schedule history": Entry(list[times.ScheduleRun], "stand-up"),
    "schedule list": Entry(list[times.Schedule]),
    "schedule next": Entry(list[int], "stand-up --count 3"),
    "schedule now": Entry(times.ScheduleAsked, "stand-up"),
    "schedule pause": Entry(list[times.Schedule], "stand-up paused"),
    "schedule remove": Entry(times.SchedulesRemoved, "stand-up {schedule} --yes"),
    "schedule resume": Entry(list[times.Schedule], "paused"),
    "schedule set": Entry(times.Schedule, "stand-up --every 2h --label daily"),
    "schedule show": Entry(times.Schedule, "stand-up"),
    "send": Entry(queue.Sent, "'@stranger hello' --no-wait"),
    "setup": Entry(home.SetUp, "--provider echo --no-probe --no-start --no-input"),
    "status": Entry(home.Status, status=DEGRADED, storeless=True),
    "team add": Entry(roster.Team, "ops stranger outsider --leader stranger"),
    "team add-member": Entry(roster.Team, "dev stranger"),
    "team list": Entry(list[roster.Team]),
    "team remove": Entry(roster.TeamRemoved, "dev --yes"),
    "team remove-member": Entry(roster.Team, "dev coder --leader tester"),
    "team set": Entry(roster.Team, "dev --delivery aggregate --max-hops 3"),
    "team show": Entry(roster.TeamShown, "dev"),
    "team watch": Entry(conversations.Watched, "dev", screen=True),
    "room open": Entry(list[conversations.Post], "dev", screen=True),
    "token": Entry(home.Token, storeless=True),
    "token path": Entry(home.TokenPath, storeless=True),
    "token rotate": Entry(home.TokenRotated, "--yes", storeless=True),
    "token show": Entry(home.Token, storeless=True),
    "version": Entry(home.Version, storeless=True),
    "trace": Entry(conversations.Trace, "telegram_done"),
}

WITHOUT_JSON: Mapping[str, str] = {
    "attach": "it gives the terminal to tmux",
    "completion": "it prints a script for a shell",
    "config edit": "it gives the terminal to an editor",
    "help": "it prints a text",
    **dict.fromkeys(
        (
            "run api",
            "run channel",
            "run guard",
            "run processor",
            "run recovery",
            "run reports",
            "run scheduler",
        ),
        "it is a service, and logs",
    ),
}
"""The commands that print no document, and why."""

WITH_SERVICES: Mapping[str, Entry] = {
    "up": Entry(home.Up),
    "status": Entry(home.Status),
    "logs": Entry(list[home.LogLine]),
    "open": Entry(home.Link, "--print"),
    "restart": Entry(home.Restarted, "scheduler"),
    "down": Entry(home.Down),
}
"""What is said by those that need services, in the order in which they are run."""

SHOWN_ELSEWHERE: Mapping[str, Any] = {
    "channel manifest": dict,
    "channel setup": channels.SetUp,
    "channel test": channels.Tested,
    "demo history": home.WrittenHistory,
    "demo team": conversations.Demonstration,
    "report run": reports.Computed,
}
"""What is said by those that take long, and have a test of their own."""

OPEN_TO_AGENTS = frozenset(
    {
        *("history list", "history people", "history search", "response send"),
        *("schedule add", "schedule history", "schedule list", "schedule next", "schedule pause"),
        *("schedule remove", "schedule resume", "schedule set", "schedule show", "version"),
    }
)
"""What an agent may do in its run; the rest is for people only."""
