"""bullpen demo: a team of agents at work in a temporary home."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import click

from bullpen.cli.command import Result, command, json_requested, write_transaction
from bullpen.cli.down import stop_all
from bullpen.cli.interrupts import END_SIGNALS, Interrupts
from bullpen.cli.lazy import LazyGroup
from bullpen.cli.output import echo, format_count
from bullpen.cli.response import CLI
from bullpen.cli.screen import Screen
from bullpen.cli.send import SENDER, enqueue_message, open_waiting_store, wait_for_answers
from bullpen.cli.up import STATE_POLL_SECONDS, migrate_database, start_services
from bullpen.cli.wait import WaitEnd, WaitResult, wait_fields
from bullpen.core.clock import poll_until
from bullpen.core.company import add_agent
from bullpen.core.errors import InTheWay, ServiceFailed
from bullpen.core.events.company import RoomPosted
from bullpen.core.events.conversation import ChainHandoff
from bullpen.core.events.log import EventFilter, list_events
from bullpen.core.events.message import MessageDead, MessageFailed, MessageRetried
from bullpen.core.events.tail import EventTail
from bullpen.core.inspect.follow import ConversationFollower
from bullpen.core.message import NewMessage
from bullpen.core.network import api_url
from bullpen.core.queue.manage import retry
from bullpen.core.roster.agents import Agent
from bullpen.core.roster.teams import Team, add_team
from bullpen.core.settings import ENVIRONMENT_PREFIX, Settings
from bullpen.core.settings.file import SettingsFile
from bullpen.core.settings.parse import load_lenient
from bullpen.core.store.base import Store
from bullpen.ops.services.programs import make_directories
from bullpen.ops.services.supervisor import Supervisor

TEAM = "dev"
AGENTS = ("coder", "reviewer", "writer")
PLUGIN_FILE = Path(__file__).with_name("demo_plugin.py")
BEGUN_SECONDS = 5.0
REQUIRED_SERVICES = ("processor", "scheduler")
WAIT_SECONDS = 120.0
LAST_EVENT_ID = 1 << 31
MAX_EVENTS = 1000
WIDTH = 79
COUNTED_EVENTS = {
    "handoffs": ChainHandoff.type,
    "room_posts": RoomPosted.type,
    "failed_and_tried_again": MessageFailed.type,
    "dead": MessageDead.type,
    "tried_again_by_hand": MessageRetried.type,
}
COUNT_NOUNS = {
    "handoffs": ("handoff", "handoffs"),
    "room_posts": ("room post", "room posts"),
    "failed_and_tried_again": ("failed attempt with a retry", "failed attempts with a retry"),
    "dead": ("dead message", "dead messages"),
    "tried_again_by_hand": ("retry by a person", "retries by a person"),
}


@click.group(cls=LazyGroup, modules={"history": "bullpen.cli.demo_history:history"})
def demo() -> None:
    """Show agents at work, or write a simulated month.

    \b
    Examples:
      bullpen demo team
      BULLPEN_HOME=~/bullpen-history bullpen demo history
    """


def create_home(directory: Path | None) -> Path:
    """Create the home: a temporary directory, or the given empty one."""
    if directory is None:
        return Path(tempfile.mkdtemp(prefix="bullpen-demo-"))
    home = directory.expanduser().absolute()
    if home.exists() and (not home.is_dir() or any(home.iterdir())):
        raise InTheWay(
            f"{home} is not empty",
            hint="Give a directory that does not exist yet, or leave --home out.",
        )
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    return home


def populate_home(home: Path) -> Settings:
    """Write settings, agents and their plugin there; the caller's settings do not apply."""
    for name in [each for each in os.environ if each.startswith(ENVIRONMENT_PREFIX)]:
        del os.environ[name]
    os.environ[f"{ENVIRONMENT_PREFIX}HOME"] = str(home)
    file = SettingsFile(home, {}, here=True)
    with file.locked():
        file.write(
            file.check(
                {
                    "workspace": str(home / "workspace"),
                    "api_port": _free_port(),
                    "api_processes": 1,
                    "default_agent": AGENTS[0],
                    "retry_base_seconds": 1,
                    "grace_seconds": 1,
                }
            )
        )
    settings, _ = load_lenient(os.environ)
    make_directories(settings)
    plugins = home / "plugins"
    plugins.mkdir(mode=0o700)
    (plugins / PLUGIN_FILE.name).write_text(
        PLUGIN_FILE.read_text(encoding="utf-8"), encoding="utf-8"
    )
    migrate_database(settings, lambda _: None)
    with write_transaction(settings) as tx:
        for each in AGENTS:
            add_agent(tx, Agent(id=each))
        add_team(tx, Team(id=TEAM, leader=AGENTS[0], members=AGENTS))
    return settings


@contextmanager
def running_services(settings: Settings) -> Iterator[list[str]]:
    """Run the services in this block; Ctrl-C and SIGTERM stop them as well."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    started = False
    try:
        _, failed = start_services(settings, stays=False)
        started = True
        if any(each in failed for each in REQUIRED_SERVICES):
            raise ServiceFailed(
                f"services of the demonstration did not start: {', '.join(failed)}",
                hint=f"Read the logs in {settings.logs}.",
            )
        yield failed
    finally:
        with Interrupts(END_SIGNALS, second_raises=False).active():  # it is stopping already
            if not started:
                poll_until(Supervisor(settings).alive, BEGUN_SECONDS, STATE_POLL_SECONDS)
            stop_all(settings)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


@dataclass(slots=True)
class TeamDemo:
    """The demonstration, step by step."""

    settings: Settings
    store: Store
    as_json: bool
    steps: list[dict[str, object]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def tell(self, *lines: str) -> None:
        """Print lines, unless --json was given."""
        if not self.as_json:
            for each in lines:
                echo(each)

    def say(self, what: str, to: str, text: str) -> ConversationFollower:
        """Send a message as a person, and wait for the end of its conversation."""
        self.tell("", what, f"  you → {to}: {text.removeprefix(f'[{to}: ').removesuffix(']')}")
        new = NewMessage(agent=to.lstrip("@#"), message=text, channel=CLI, sender=SENDER)
        position, conversation = enqueue_message(self.store, new, "", (), None)
        follower = ConversationFollower(
            self.store, conversation, CLI, EventTail(self.store, position)
        )
        self.follow(follower, what)
        return follower

    def follow(self, follower: ConversationFollower, what: str) -> WaitResult:
        """Wait for the end of a conversation, and record it as a step."""
        screen = Screen(quiet=self.as_json, silent=self.as_json)
        result = wait_for_answers(follower, screen, WAIT_SECONDS, asks=False)
        if result.end is WaitEnd.LEFT:
            raise KeyboardInterrupt
        if result.end is not WaitEnd.AT_REST:
            raise ServiceFailed(
                f"the demonstration's message {follower.conversation_id} was not answered",
                hint=f"Read the logs in {self.settings.logs}.",
            )
        found = wait_fields(follower.conversation_id, result, 0.0)
        names = ("message_id", "state", "answers", "messages")
        self.steps.append({"what": what, **{name: found[name] for name in names}})
        return result

    def count_events(self) -> None:
        """Count the events of each type that the summary names."""
        with self.store.read() as tx:
            self.counts = {
                name: len(
                    list_events(
                        tx, EventFilter(types=frozenset({kind})), None, LAST_EVENT_ID, MAX_EVENTS
                    )
                )
                for name, kind in COUNTED_EVENTS.items()
            }


@command(demo, people_only="start a demonstration")
@click.option(
    "--home",
    type=click.Path(path_type=Path),
    show_default="a temporary directory",
    help="An empty directory for its home.",
)
@click.option("--keep/--remove", default=True, show_default=True, help="Keep its home.")
def team(_: Settings, home: Path | None, keep: bool) -> None:
    """Show three agents that work as a team.

    They hand work to each other, post in a room, fail and are retried. The demonstration takes
    about ten seconds and needs no account. It has its own home, database and port, and changes
    nothing in your installation. Its services stop at the end; its home is kept.

    \b
    Examples:
      bullpen demo team
      bullpen demo team --remove --json
    """
    as_json = json_requested()
    began = time.monotonic()
    place = create_home(home)
    try:
        settings = populate_home(place)
        show = _play(settings, as_json)
    except KeyboardInterrupt:
        echo("\nStopped.", err=True)
        _clean_up(place, keep, as_json)
        sys.exit(1)
    except BaseException:
        _clean_up(place, keep, as_json)
        raise
    counts = show.counts
    text = textwrap.fill(f"Summary: {', '.join(_format_counts(counts))}.", WIDTH)
    result = Result(
        {
            "home": str(place),
            "kept": keep,
            "seconds": round(time.monotonic() - began, 1),
            "steps": show.steps,
            "counts": counts,
        },
        [f"\n{text}", *(_next_steps(place, str(show.steps[0]["message_id"])) if keep else ())],
    )
    result.print(as_json)
    _clean_up(place, keep, as_json)


def _play(settings: Settings, as_json: bool) -> TeamDemo:
    _greet(settings, as_json)
    with running_services(settings), open_waiting_store(settings) as store:
        show = TeamDemo(settings, store, as_json)
        show.tell("Started the services.")
        show.say(
            "1. Handoffs: each agent passes work on. @writer fails once and is retried.",
            f"@{TEAM}",
            "Fix the login: it fails for names with an umlaut.",
        )
        show.say(
            "2. A room: every member of the team reads each post.",
            f"#{TEAM}",
            f"[#{TEAM}: Stand-up: what did you finish?]",
        )
        what = "3. A dead message: it is kept until a person retries or drops it."
        dead = show.say(what, "@writer", "Write the release notes.")
        show.tell(f"  $ bullpen queue retry {dead.conversation_id}")
        with store.write() as tx:
            retry(tx, dead.conversation_id)
        show.follow(dead, what)
        show.count_events()
        if not as_json:
            echo("\nStopping the services ...")
    return show


def _greet(settings: Settings, as_json: bool) -> None:
    if as_json:
        return
    echo("The agents @coder, @reviewer and @writer are the team @dev. The provider")
    echo("echo plays their answers: no account is needed, and no data leaves this machine.")
    echo(f"  Home  {settings.home}")
    echo(f"  API   {api_url(settings)}")
    echo("Starting the services ...")


def _format_counts(counts: dict[str, int]) -> list[str]:
    return [format_count(counts[name], *nouns) for name, nouns in COUNT_NOUNS.items()]


def _next_steps(home: Path, conversation: str) -> Iterator[str]:
    yield f"Kept the home {home}. Examine it with:"
    yield f"  export BULLPEN_HOME={shlex.quote(str(home))}"
    yield f"  bullpen trace {conversation}"
    yield f"  bullpen room read {TEAM}"
    yield f"  bullpen up && bullpen team watch {TEAM}"
    yield f"Remove it with: bullpen down && rm -r {shlex.quote(str(home))}"


def _clean_up(home: Path, keep: bool, as_json: bool) -> None:
    if not keep:
        shutil.rmtree(home, ignore_errors=True)
        if not as_json:
            echo(f"Removed {home}.")
