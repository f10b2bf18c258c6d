"""The line in which a person writes: any text, of several lines as well."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import TextArea


class Composer(TextArea):
    """Enter posts what is written; what is pasted stays whole, with its lines."""

    DEFAULT_CSS = """
    Composer {
        height: auto; max-height: 7; padding: 0 1; background: ansi_default;
        border: none; border-top: solid ansi_cyan;
    }
    Composer:focus { border: none; border-top: solid ansi_cyan; }
    Composer .text-area--cursor { text-style: reverse; }
    Composer .text-area--cursor-line { background: ansi_default; }
    Composer .text-area--placeholder { text-style: dim; color: ansi_default; }
    Composer .text-area--selection { text-style: reverse; background: ansi_default; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "post", "Post", key_display="⏎"),
        Binding("ctrl+j,shift+enter,alt+enter", "new_line", "New line", key_display="^J"),
    ]

    class Posted(Message):
        """Somebody wants to say this."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self, placeholder: str) -> None:
        super().__init__(
            soft_wrap=True,
            show_line_numbers=False,
            tab_behavior="focus",
            highlight_cursor_line=False,
            placeholder=placeholder,
        )
        self.cursor_blink = False

    def action_post(self) -> None:
        """Post what is written, if it says something."""
        if self.text.strip():
            self.post_message(self.Posted(self.text))
            self.clear()

    def action_new_line(self) -> None:
        """Begin a new line."""
        self.insert("\n")

    def give_back(self, text: str) -> None:
        """It could not be posted: nobody has to write it again."""
        written = self.text
        self.text = f"{text}\n{written}" if written else text
        self.move_cursor(self.document.end)

    async def _on_key(self, event: events.Key) -> None:
        # Here and not by a binding that comes first: that would overtake the letters before it.
        if event.key == "enter":
            event.stop()
            event.prevent_default()
            self.action_post()

    async def _on_paste(self, event: events.Paste) -> None:
        # Some terminals send a carriage return for each line's end. Textual calls the handler of
        # TextArea by itself, after this one.
        event.text = event.text.replace("\r\n", "\n").replace("\r", "\n")
