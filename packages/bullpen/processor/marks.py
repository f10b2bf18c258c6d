"""Marks: lines that Bullpen adds to a prompt, and that people's text cannot forge."""

from __future__ import annotations

import re

from bullpen.core.message import ROOM, Message
from bullpen.core.text import visible, visible_line

QUOTE = "> "
"""Prefix of a line of people's or agents' text that looks like a mark; marks never have it."""

# Characters that readers see as the end of a line, and invisible blanks.
_LINE_ENDS = r"\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029"
_LINE_START = rf"(?:^|(?<=[{_LINE_ENDS}]))"
_BLANK = rf"[^\S\n{_LINE_ENDS}]|[\xad\u200b-\u200f\u2060-\u2064\ufeff]"
_MARK = re.compile(
    rf"{_LINE_START}(?=(?:{_BLANK})*+"
    r"(?:\[\s*(?:chat room|message from|bullpen|file\s*:|\d+ of \d+)|\d+ messages wait))",
    re.IGNORECASE | re.MULTILINE,
)
# Tokens that separate the turns of a chat in the templates of models.
_TEMPLATE_TOKEN = re.compile(
    r"<(?=[|\uff5c]\w{1,40}[|\uff5c]>|/?(?:start|end)_of_turn>|</?SYS>>)|\[(?=/?INST\])"
)


def mark_message(message: Message, files: list[str]) -> str:
    """The text with its author, unless a person wrote it directly, and with its files."""
    text = quote_marks(message.message)
    if message.channel == ROOM:
        author = message.from_agent or visible_line(message.sender)
        text = f"[Chat room #{message.team_id} — @{author or 'a person'}]:\n{text}"
    elif message.from_agent is not None:
        text = f"[Message from teammate @{message.from_agent}]:\n{text}"
    return "\n".join([text, *(f"[file: {visible(file).replace(chr(10), ' ')}]" for file in files)])


def mark_number(number: int, count: int, text: str) -> str:
    """One of several messages of a run."""
    return f"[{number} of {count}]\n{text}"


def mark_notes(notes: list[str]) -> str:
    """The parts of the agent's last answer that failed."""
    listed = "\n".join(f"- {visible_line(note)}" for note in notes)
    return f"[Bullpen, about your last answer]:\n{listed}"


def quote_marks(text: str) -> str:
    """The text with `> ` before each line that looks like a mark.

    The tokens of chat templates, such as `<|im_start|>`, get a blank after their first character.
    """
    return _TEMPLATE_TOKEN.sub(r"\g<0> ", _MARK.sub(QUOTE, text))
