"""bullpen queue cancel, retry, drop and let-go; pause, resume and drain of lanes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

import click

from bullpen.cli import completion
from bullpen.cli.bulk import BulkJob, BulkText, print_plan, run_bulk, run_each
from bullpen.cli.command import read_transaction, require_person, write_transaction
from bullpen.cli.options import (
    BulkSelection,
    bulk_options,
    message_filters,
    message_selection,
    parse_selection,
    selection_until_now,
)
from bullpen.cli.output import as_json, confirm, dry_run, print_result
from bullpen.cli.queue import dead_rows, message_rows
from bullpen.core.bulk import apply_to_messages
from bullpen.core.inspect.conversations import count_messages
from bullpen.core.inspect.messages import get_message, list_messages_by_number, message_scans
from bullpen.core.inspect.queue import get_lane
from bullpen.core.queue.lanes import drain_lane, pause_lane, resume_lane
from bullpen.core.queue.manage import cancel as cancel_message
from bullpen.core.queue.manage import cancel_conversation, resume_conversation
from bullpen.core.queue.manage import drop as drop_message
from bullpen.core.queue.manage import resume as let_go_message
from bullpen.core.queue.manage import retry as retry_message
from bullpen.core.roster.agents import get_agent, list_agents
from bullpen.core.settings import Settings
from bullpen.core.states import LaneState, MessageState
from bullpen.core.store.scan import BatchCursor, RowRef
from bullpen.core.store.transaction import Transaction


def run_filtered(
    settings: Settings,
    words: BulkText,
    states: Sequence[MessageState],
    verb: Callable[[Transaction, str], None],
    chosen: BulkSelection,
) -> None:
    """Do it to all that the filters choose, of those that are in these states now."""

    def pieces(tx: Transaction) -> BatchCursor:
        wanted = selection_until_now(tx.now, message_selection(tx.now, chosen.filters))
        return BatchCursor(message_scans(tx, states, wanted), wanted)

    job = BulkJob(
        words=words,
        pieces=pieces,
        do=lambda tx, found: apply_to_messages(tx, verb, found),
        rows=_table,
        limit=chosen.limit,
    )
    run_bulk(settings, job, sure=chosen.sure, dry_run=chosen.dry_run, as_json=chosen.as_json)


def print_named(
    settings: Settings, words: BulkText, allowed: Collection[MessageState], chosen: BulkSelection
) -> None:
    """Show the named ones, and to how many of them it could be done."""
    with read_transaction(settings) as tx:
        found = [get_message(tx, each) for each in chosen.named]
        listed = message_rows(found, tx.now)
    could = sum(each.status in allowed for each in found)
    print_plan(words, could, listed, chosen.as_json)


def _table(tx: Transaction, found: Sequence[RowRef]) -> Sequence[Sequence[str]]:
    seen = list_messages_by_number(tx, [each.id for each in found])
    if all(each.status == MessageState.DEAD for each in seen):
        return dead_rows(seen, tx.now)
    return message_rows(seen, tx.now)


FINISHED_STATES = (MessageState.DEAD, MessageState.CANCELLED, MessageState.EXPIRED)
FINISHED_CHOICE = click.Choice([each.value for each in FINISHED_STATES])
STATE_HELP = "Filters choose of those in this state; of the dead, if not said."
FILTERS = ("agent", "error", "kind", "conversation", "channel", "sender", "since", "before")

RETRY_TEXT = BulkText(
    noun="message",
    verb="Retry",
    done="wait again",
    done_one="waits again",
    none="There is no message like that. Next: bullpen queue dead",
)
DROP_TEXT = BulkText(
    noun="message",
    verb="Delete for good",
    done="are deleted",
    done_one="is deleted",
    none="There is no message like that. Next: bullpen queue dead",
)

message_ids_argument = click.argument(
    "named", nargs=-1, metavar="[MESSAGE_ID]...", shell_complete=completion.dead_messages
)


@click.command()
@message_ids_argument
@message_filters(*FILTERS)
@bulk_options(FINISHED_CHOICE, STATE_HELP)
@click.pass_obj
def retry(settings: Settings, /, **given: Any) -> None:  # noqa: ANN401 - ids and filters
    """Try messages again that are dead, cancelled or expired.

    Each takes its old place, its failures forgotten and its deadline lifted. Name them, or choose
    them by filters: then the dead are meant, and the times are those of their deaths.

    \b
    Examples:
      bullpen queue retry cli_a1b2c3d4
      bullpen queue retry --agent coder --error timeout --since 2h --dry-run
      bullpen queue retry --all --yes
    """
    require_person("try messages again")
    _do(settings, RETRY_TEXT, retry_message, given)


@click.command()
@message_ids_argument
@message_filters(*FILTERS)
@bulk_options(FINISHED_CHOICE, STATE_HELP)
@click.pass_obj
def drop(settings: Settings, /, **given: Any) -> None:  # noqa: ANN401 - ids and filters
    """Delete messages for good that are dead, cancelled or expired.

    Name them, or choose them by filters: then the dead are meant, and the times are those of their
    deaths. What the record has of them stays: runs, events, history.

    \b
    Examples:
      bullpen queue drop cli_a1b2c3d4
      bullpen queue drop --agent coder --before 7d --dry-run
    """
    require_person("delete messages")
    _do(settings, DROP_TEXT, drop_message, given)


def _do(
    settings: Settings,
    words: BulkText,
    verb: Callable[[Transaction, str], None],
    given: dict[str, Any],
) -> None:
    chosen = parse_selection(given, words.noun)
    if not chosen.named:
        states = [MessageState(each) for each in chosen.states or (MessageState.DEAD,)]
        run_filtered(settings, words, states, verb, chosen)
    elif chosen.dry_run:
        print_named(settings, words, FINISHED_STATES, chosen)
    else:
        if words is DROP_TEXT:
            confirm(f"{words.verb} {words.of(len(chosen.named))}", chosen.sure)
        run_each(settings, words, chosen.named, verb, as_json=chosen.as_json)


# What waits before what runs: nothing begins in the place of what was ended.
OPEN_STATES = (MessageState.HELD, MessageState.PENDING, MessageState.PROCESSING)
OPEN_CHOICE = click.Choice([each.value for each in OPEN_STATES])

CANCEL_TEXT = BulkText(
    noun="message",
    verb="Cancel",
    done="are cancelled",
    done_one="is cancelled",
    none="There is no message like that which waits, runs or is held. Next: bullpen queue status",
)


@click.command()
@click.argument(
    "named", nargs=-1, metavar="[MESSAGE_ID]...", shell_complete=completion.open_messages
)
@message_filters("agent", "conversation", "channel", "sender", "since", "before")
@click.option("--reason", default="cancelled", show_default=True, help="Why, for people.")
@bulk_options(OPEN_CHOICE, "Filters choose of those in this state; of all three, if not said.")
@click.pass_obj
def cancel(settings: Settings, /, reason: str, **given: Any) -> None:  # noqa: ANN401 - filters
    """End messages that wait, run or are held; a run of one is ended with it.

    Name them, or choose them by filters, of which a whole conversation is one. They can be tried
    again.

    \b
    Examples:
      bullpen queue cancel cli_a1b2c3d4
      bullpen queue cancel --conversation cli_a1b2c3d4
      bullpen queue cancel --agent coder --before 1d --dry-run
    """
    require_person("cancel messages")
    chosen = parse_selection(given, CANCEL_TEXT.noun)
    verb = partial(cancel_message, reason=reason)
    if chosen.named and chosen.dry_run:
        print_named(settings, CANCEL_TEXT, OPEN_STATES, chosen)
    elif chosen.named:
        run_each(settings, CANCEL_TEXT, chosen.named, verb, as_json=chosen.as_json)
    elif (whole := _whole_conversation(chosen)) is not None and not chosen.dry_run:
        _cancel_conversation(settings, whole, reason, chosen)
    else:
        states = [each for each in OPEN_STATES if not chosen.states or each in chosen.states]
        run_filtered(settings, CANCEL_TEXT, states, verb, chosen)


def _whole_conversation(chosen: BulkSelection) -> str | None:
    """The conversation, if nothing else narrows what is meant."""
    given = [name for name, value in chosen.filters.items() if value is not None]
    if given != ["conversation"] or chosen.states or chosen.limit:
        return None
    return str(chosen.filters["conversation"])


def _cancel_conversation(
    settings: Settings, conversation: str, reason: str, chosen: BulkSelection
) -> None:
    """All of it in one transaction: nothing of it can hand on meanwhile."""
    with read_transaction(settings) as tx:
        by_state = count_messages(tx, conversation).by_state
    matched = sum(by_state.get(state.value, 0) for state in OPEN_STATES)
    if matched:
        confirm(
            f"{CANCEL_TEXT.verb} {CANCEL_TEXT.of(matched)} of {conversation}",
            chosen.sure,
            many=True,
        )
    with write_transaction(settings) as tx:
        done = cancel_conversation(tx, conversation, reason)
    print_result(
        chosen.as_json,
        {"dry_run": False, "matched": matched, "done": done, "conversation": conversation},
        f"{CANCEL_TEXT.done_text(done)}, all of {conversation}" if done else CANCEL_TEXT.none,
    )


agents_argument = click.argument("agent_id", nargs=-1, shell_complete=completion.agents)
all_option = click.option("--all", "everybody", is_flag=True, help="All agents.")


@click.command()
@agents_argument
@all_option
@click.option("--reason", default="paused by hand", show_default=True, help="Why, for people.")
@dry_run
@as_json
@click.pass_obj
def pause(
    settings: Settings,
    agent_id: tuple[str, ...],
    everybody: bool,
    reason: str,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Begin no more runs of these agents; messages still come in, and what runs goes on.

    \b
    Examples:
      bullpen queue pause coder --reason "on holiday"
      bullpen queue pause --all --reason "the provider is down"
    """
    require_person("pause agents")
    named = _named(agent_id, everybody)
    _move_lanes(
        settings,
        (agent_id, dry_run, as_json),
        LaneState.PAUSED,
        lambda tx, agent: pause_lane(tx, agent, reason),
        f"paused ({reason}): nothing more begins. Next: bullpen queue resume {named}",
    )


@click.command()
@agents_argument
@all_option
@dry_run
@as_json
@click.pass_obj
def resume(
    settings: Settings, agent_id: tuple[str, ...], everybody: bool, dry_run: bool, as_json: bool
) -> None:
    """Let agents that are paused or draining take in and work again.

    \b
    Examples:
      bullpen queue resume coder
      bullpen queue resume --all
    """
    require_person("let agents work again")
    _named(agent_id, everybody)
    _move_lanes(
        settings,
        (agent_id, dry_run, as_json),
        LaneState.ACTIVE,
        resume_lane,
        "active: what waits is taken up.",
    )


@click.command()
@agents_argument
@all_option
@click.option("--reason", default="drained by hand", show_default=True, help="Why, for people.")
@dry_run
@as_json
@click.pass_obj
def drain(
    settings: Settings,
    agent_id: tuple[str, ...],
    everybody: bool,
    reason: str,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Refuse new messages for these agents, and work off what is there.

    \b
    Examples:
      bullpen queue drain coder --reason "to be replaced"
      bullpen queue drain --all
    """
    require_person("drain the queues of agents")
    named = _named(agent_id, everybody)
    _move_lanes(
        settings,
        (agent_id, dry_run, as_json),
        LaneState.DRAINING,
        lambda tx, agent: drain_lane(tx, agent, reason),
        f"draining ({reason}): nothing more comes in. "
        f"Next: bullpen queue agents, bullpen queue resume {named}",
    )


def _named(agents: tuple[str, ...], everybody: bool) -> str:
    """How the same agents are named once more."""
    if bool(agents) == everybody:
        raise click.UsageError(
            "Say whose: agents' ids, or --all.\nThe agents are: bullpen queue agents"
        )
    return "--all" if everybody else " ".join(agents)


def _move_lanes(
    settings: Settings,
    given: tuple[tuple[str, ...], bool, bool],
    target: LaneState,
    verb: Callable[[Transaction, str], None],
    said: str,
) -> None:
    """Move the lanes, by name: those that are not there already."""
    named, dry, as_json = given
    with (read_transaction if dry else write_transaction)(settings) as tx:
        agents = sorted({*named} or {each.id for each in list_agents(tx)})
        for each in named:
            get_agent(tx, each)  # the lane of one that was removed stays closed
        states = {each: get_lane(tx, each).state for each in agents}
        moved = [each for each, state in states.items() if state != target]
        for each in [] if dry else moved:
            verb(tx, each)
    there = [each for each in agents if each not in moved]
    _tell(target, moved, there, said, dry, as_json)


def _tell(
    target: LaneState, moved: list[str], there: list[str], said: str, dry: bool, as_json: bool
) -> None:
    lines = []
    if moved:
        become = "would be" if dry else "is" if len(moved) == 1 else "are"
        lines.append(f"{_names(moved)} {become} {said}")
    if there:
        lines.append(f"{_names(there)} {'was' if len(there) == 1 else 'were'} {target} already.")
    if not lines:
        lines.append("There are no agents. Next: bullpen agent add coder")
    document = {"dry_run": dry, "state": target.value, "moved": moved, "already": there}
    print_result(as_json, document, *lines)


def _names(agents: list[str]) -> str:
    return ", ".join(f"@{each}" for each in agents)


RESUME_TEXT = BulkText(
    noun="message",
    verb="Let go",
    done="go on",
    done_one="goes on",
    none="Nothing of it is held. Next: bullpen queue held",
)


@click.command(name="let-go")
@click.argument("message_id", nargs=-1, shell_complete=completion.held_messages)
@click.option(
    "--conversation",
    shell_complete=completion.conversation_ids,
    help="All that is held of this conversation.",
)
@as_json
@click.pass_obj
def let_go(
    settings: Settings, message_id: tuple[str, ...], conversation: str | None, as_json: bool
) -> None:
    """Let held messages go on, or all held ones of a conversation.

    \b
    Examples:
      bullpen queue let-go internal_a1b2c3d4
      bullpen queue let-go --conversation cli_a1b2c3d4
    """
    require_person("let held messages go on")
    if bool(message_id) == (conversation is not None):
        raise click.UsageError("Give messages' ids, or --conversation. See: bullpen queue held")
    if conversation is None:
        run_each(settings, RESUME_TEXT, message_id, let_go_message, as_json=as_json)
        return
    with write_transaction(settings) as tx:
        done = resume_conversation(tx, conversation)
    said = f"{RESUME_TEXT.done_text(done)}, all of {conversation}" if done else RESUME_TEXT.none
    print_result(as_json, {"done": done, "conversation": conversation}, said)
