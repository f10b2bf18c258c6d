"""Completion in bash, which takes `custom:local` for three words, and `--agent=coder` as well."""

from __future__ import annotations

from click.shell_completion import BashComplete, CompletionItem, add_completion_class


class BashCompletion(BashComplete):
    """Puts together what a colon divides, and gives back only what comes after it."""

    _before = ""
    """What of the word bash keeps by itself."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before, and the one that is incomplete."""
        args, incomplete = super().get_completion_args()
        words: list[str] = []
        together = False
        for each in (*(each for each in args if each != "="), incomplete):
            colons = each != "" and set(each) == {":"}
            if words and (colons or together):
                words[-1] += each
            else:
                words.append(each)
            together = colons
        if not incomplete or words[-1] != incomplete:
            self._before = words[-1][: words[-1].rfind(":") + 1]
        return words[:-1], words[-1]

    def format_completion(self, item: CompletionItem[str]) -> str:
        """The line that the script reads."""
        return f"{item.type},{item.value.removeprefix(self._before)}"


def install_bash_completion() -> None:
    """From now on, in this process."""
    add_completion_class(BashCompletion)
