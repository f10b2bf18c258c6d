"""What each platform gets for the hostile answers, as one file a platform that people review.

    .venv/bin/python -m tests.channels.text.golden

writes the files again. `offsets` has the length of each answer: it may not change between
releases, because receipts of parts that are already delivered count in it.
"""

from __future__ import annotations

from pathlib import Path

from bullpen.channels.text.tree import Document
from tests.channels.text.corpus import CASES
from tests.channels.text.platforms import PLATFORMS, Platform, readable, split

FILES = Path(__file__).with_name("golden")
MOST_PARTS = 4


def shown(platform: Platform) -> str:
    """All answers in the form of a platform; of those with many parts, the first and the last."""
    return "\n".join(_case(platform, name, text) for name, text in CASES.items())


def offsets() -> str:
    """The number of characters and of blocks of each answer."""
    lines = []
    for name, text in CASES.items():
        document = Document.parse(text)
        lines.append(f"{name}: {document.length} characters, {len(document.blocks)} blocks\n")
    return "".join(lines)


def _case(platform: Platform, name: str, text: str) -> str:
    document = Document.parse(text)
    ends = list(split(document, platform.fits))
    lines = [f"########## {name}: {len(ends)} parts"]
    for number, (start, end) in enumerate(zip([0, *ends], ends, strict=False), start=1):
        if number < MOST_PARTS or number == len(ends):
            lines.append(f"===== part {number}, up to {end}")
            lines.append(readable(platform.show(document.slice(start, end))))
        elif number == MOST_PARTS:
            lines.append(f"===== parts {number} to {len(ends) - 1} left out")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the files again."""
    FILES.mkdir(exist_ok=True)
    for platform in PLATFORMS:
        (FILES / f"{platform.name}.txt").write_text(shown(platform), encoding="utf-8")
    (FILES / "offsets.txt").write_text(offsets(), encoding="utf-8")


if __name__ == "__main__":
    main()
