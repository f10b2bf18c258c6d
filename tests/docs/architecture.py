"""Draws docs/pictures/architecture.svg: a message's way through the processes and the database.

`make docs` draws it. The picture has a background of its own, in a light and a dark theme, so it is
readable wherever it is shown.
"""

from __future__ import annotations

from html import escape

WIDTH, HEIGHT = 800, 594

STYLE = """
  text { font: 14px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328 }
  .name { font-weight: 600; font-size: 15px }
  .note { font-size: 13px; fill: #59636e }
  .step { font-weight: 600; font-size: 13px; fill: #0550ae }
  .page { fill: #ffffff }
  .process { fill: #f6f8fa; stroke: #818b98; stroke-width: 1.5 }
  .planned { fill: none; stroke: #818b98; stroke-width: 1.5; stroke-dasharray: 5 4 }
  .database { fill: #ddf4ff; stroke: #0969da; stroke-width: 1.5 }
  .table { fill: #ffffff; stroke: #0969da }
  .message { fill: #bf8700; stroke: none }
  .running { fill: #1a7f37; stroke: none }
  .response { fill: #8250df; stroke: none }
  .arrow { fill: none; stroke: #0550ae; stroke-width: 2; marker-end: url(#head) }
  .watch { fill: none; stroke: #818b98; stroke-width: 1.5; stroke-dasharray: 2 4 }
  #head path { fill: #0550ae }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .note { fill: #9da7b3 }
    .step { fill: #79c0ff }
    .page { fill: #0d1117 }
    .process { fill: #161b22; stroke: #7d8590 }
    .planned, .watch { stroke: #7d8590 }
    .database { fill: #0c2d4a; stroke: #4493f8 }
    .table { fill: #0d1117; stroke: #4493f8 }
    .message { fill: #d29922 }
    .running { fill: #3fb950 }
    .response { fill: #ab7df8 }
    .arrow { stroke: #79c0ff }
    #head path { fill: #79c0ff }
  }
"""

CLIENTS = (
    ("process", "bullpen", "command line"),
    ("process", "api", "HTTP, live events"),
    ("process", "scheduler", "schedules, upkeep"),
    ("process", "channels", "Slack, Telegram, …"),
)
LANES = (("coder", 3, True), ("reviewer", 1, False), ("writer", 2, True))


def draw() -> str:
    """Return the picture as SVG."""
    parts = [
        *_clients(),
        *_database(),
        *_processor(),
        *_arrows(),
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
            f' width="{WIDTH}" height="{HEIGHT}" role="img" aria-labelledby="title">',
            '<title id="title">How a message moves through Bullpen: a client enqueues it in the'
            " lane of an agent, a processor claims it, runs the agent and finishes it, and the"
            " client delivers the response.</title>",
            f"<style>{STYLE}</style>",
            '<defs><marker id="head" viewBox="0 0 10 10" refX="8" refY="5" markerWidth="7"'
            ' markerHeight="7" orient="auto"><path d="M0 0L10 5L0 10z"/></marker></defs>',
            f'<rect class="page" width="{WIDTH}" height="{HEIGHT}" rx="10"/>',
            *parts,
            "</svg>",
            "",
        ]
    )


def _clients() -> list[str]:
    """The processes that put messages into the queue and take responses out of it."""
    parts = [_text(400, 30, "you, your programs, chat platforms", "note", "middle")]
    for column, (kind, name, note) in enumerate(CLIENTS):
        left = 20 + column * 195
        parts += [
            _box(left, 44, 175, 62, kind),
            _text(left + 87, 70, name, "name", "middle"),
            _text(left + 87, 91, note, "note", "middle"),
        ]
    return parts


def _database() -> list[str]:
    """The one database: a lane for each agent, the outbox, and what is recorded."""
    parts = [
        _box(20, 164, 760, 196, "database"),
        _text(36, 188, "one database: SQLite or PostgreSQL", "name"),
        _text(764, 188, "history, events, runs, schedules, agents", "note", "end"),
    ]
    for row, (agent, pending, running) in enumerate(LANES):
        top = 202 + row * 50
        parts += [_box(36, top, 360, 40, "table"), _text(48, top + 25, f"lane @{agent}")]
        marks = [*["message"] * pending, *(["running"] if running else [])]
        for place, mark in enumerate(marks):
            parts.append(_box(368 - (len(marks) - place) * 34 + 14, top + 12, 24, 16, mark, 3))
    parts += [
        _box(560, 202, 204, 140, "table"),
        _text(572, 227, "responses (outbox)"),
        *(_box(572 + place * 34, 246, 24, 16, "response", 3) for place in range(4)),
        _text(572, 294, "delivered once, or marked", "note"),
        _text(572, 313, "as a possible duplicate", "note"),
    ]
    return parts


def _processor() -> list[str]:
    """The processor with its three steps, workers outside, and what keeps them running."""
    parts = [
        _box(20, 420, 590, 92, "process"),
        _text(36, 443, "processor", "name"),
        _text(196, 443, "any number of processes and hosts", "note"),
    ]
    steps = (
        (36, 150, "2 claim", "lease and token"),
        (216, 196, "3 run", "claude, codex, echo, …"),
        (442, 152, "4 finish", "one transaction"),
    )
    for left, width, name, note in steps:
        parts += [
            _box(left, 454, width, 48, "table"),
            _text(left + width // 2, 474, name, "name", "middle"),
            _text(left + width // 2, 492, note, "note", "middle"),
        ]
    legend = (
        (60, "message", "pending message"),
        (228, "running", "processing: one run per agent at a time"),
        (556, "response", "response to a person"),
    )
    for left, kind, note in legend:
        parts += [_box(left, 531, 24, 16, kind, 3), _text(left + 32, 544, note, "note")]
    return [
        *parts,
        _box(630, 420, 150, 92, "process"),
        _text(705, 443, "your worker", "name", "middle"),
        _text(705, 466, "provider http:", "note", "middle"),
        _text(705, 483, "claims and finishes", "note", "middle"),
        _text(705, 500, "through the API", "note", "middle"),
        _text(
            400,
            576,
            "A supervisor keeps api, scheduler and processor running; a guard stops crash loops.",
            "note",
            "middle",
        ),
    ]


def _arrows() -> list[str]:
    """The way of a message, in five steps."""
    return [
        _arrow("M107 106V162"),
        _arrow("M302 106V162"),
        _arrow("M497 106V162"),
        _text(117, 141, "1 enqueue", "step"),
        _arrow("M662 164V108"),
        _text(652, 141, "5 deliver", "step", "end"),
        _arrow("M150 342V452"),
        _text(160, 398, "lease, batch", "step"),
        _arrow("M186 478H214"),
        _arrow("M412 478H440"),
        _arrow("M560 454V384H640V344"),
        _text(650, 384, "answer", "step"),
        _arrow("M480 454V272H398"),
        _text(472, 264, "handoff", "step", "middle"),
    ]


def _box(x: int, y: int, width: int, height: int, kind: str, radius: int = 8) -> str:
    return f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="{radius}"/>'


def _text(x: int, y: int, text: str, kind: str = "", anchor: str = "start") -> str:
    style = f' class="{kind}"' if kind else ""
    place = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text{style} x="{x}" y="{y}"{place}>{escape(text)}</text>'


def _arrow(path: str) -> str:
    return f'<path class="arrow" d="{path}"/>'
