"""The lines at the top: what is watched, which processes run, how the queue stands."""

from __future__ import annotations

from rich.text import Text

from bullpen.cli.views.company_looks import CompanyUpdate
from bullpen.cli.views.shown import format_count, format_money, single_line
from bullpen.core.company.spent import add_totals

NARROW, WIDE = 60, 100
PROCESS_KINDS = ("processor", "scheduler", "api")
GAP = "   "


def format_heading(news: CompanyUpdate, width: int) -> Text:
    """Two lines; a third one when nothing can be answered."""
    first = _title(news)
    if width < NARROW:
        if not news.company.processes.get("processor"):
            first.append("  no processor", "red")
        return Text("\n").join([first, _queue(news)])
    processes = _processes(news)
    room = width - 2 - first.cell_len - processes.cell_len
    first.append(" " * max(room, len(GAP)))
    first.append_text(processes)
    if not news.company.processes.get("processor"):
        warning = "No processor runs: nothing is answered. Next: bullpen up"
        return Text("\n").join([first, Text(warning, style="yellow"), _numbers(news, width)])
    return Text("\n").join([first, _numbers(news, width)])


def _title(news: CompanyUpdate) -> Text:
    company = news.company
    count = len(company.agents)
    agents = "1 agent" if count == 1 else f"{count} agents"
    if company.team is None:
        return Text(agents, style="bold")
    name = f" {single_line(company.team.name)}" if company.team.name else ""
    return Text.assemble((f"#{company.team.id}{name}", "bold"), (f"  {agents}", "dim"))


def _processes(news: CompanyUpdate) -> Text:
    found = Text()
    for kind in PROCESS_KINDS:
        count = news.company.processes.get(kind, 0)
        if found:
            found.append("  ")
        found.append(f"{kind} ", "dim")
        found.append(str(count) if count else "off", "green" if count else "red")
    return found


def _numbers(news: CompanyUpdate, width: int) -> Text:
    found = Text.assemble("queue  ", _queue(news))
    ours = {each.agent.id for each in news.company.agents}
    spent = add_totals(each for agent, each in news.spent.items() if agent in ours)
    found.append(f"{GAP if width >= WIDE else '  '}today ")
    if width >= WIDE:
        runs = "1 run" if spent.runs == 1 else f"{format_count(spent.runs)} runs"
        found.append(f"{runs}, ")
    found.append(f"{format_count(spent.tokens)} tokens, {format_money(spent.cost)}")
    return found


def _queue(news: CompanyUpdate) -> Text:
    queue = news.company.queue
    found = Text()
    for name, count, style in (
        ("pending", queue.pending, "yellow"),
        ("processing", queue.processing, "green"),
        ("held", queue.held, "bold yellow"),
        ("dead", queue.dead, "bold red"),
    ):
        if found:
            found.append(" ")
        found.append(format_count(count), style if count else "dim")
        found.append(f" {name}", "dim")
    return found
