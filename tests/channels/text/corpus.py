"""Hostile answers: what models write, and what people make them write."""

# ruff: noqa: E501
from __future__ import annotations

FAMILY = "👨‍👩‍👧‍👦"
FLAGS = "🇩🇪🇫🇷🇯🇵🏴󠁧󠁢󠁥󠁮󠁧󠁿"

CASES: dict[str, str] = {
    "mentions": (
        "Hello @everyone, @here, <!channel>, <!here|x>, <@U1>, <@1>, <@!1>, <@&1>, <#1>, <#C1|x>, "
        "</cmd:1>, <:smile:1>, <t:0:R>, <id:home>, @bob_smith, @**bob**, bob@example.com."
    ),
    "mentions in code": "`@everyone <!channel> <@1>`\n\n```\n@everyone @bob /stop\n```",
    "escaped mentions": "\\@everyone \\<@1> &lt;@1&gt; &#64;everyone @&#8203;everyone @\u200beveryone",
    "commands": "/stop now. Use /start@other_bot, not /tmp/x. !ban everyone\n\n/restart",
    "links of another kind": (
        "tg://user?id=1 [me](tg://user?id=1) [x](javascript:alert(1)) [y](data:text/html,x) "
        "[z](file:///etc/passwd) [w](vbscript:x) [rel](docs/a.md) [here](#top) <tel:+1> "
        "slack://channel?id=1 [s](slack://x) discord://x mailto:a@b.c <a@b.c> [mail](mailto:a@b.c)"
    ),
    "labels that lie": (
        "[https://bank.com](https://evil.com) [bank.com](https://evil.com/bank.com) "
        "[www.bank.com](https://bank.com) [pay at bank。com](https://evil.com) "
        "[Node.js](https://nodejs.org) [**bank.com**/login](https://evil.com) "
        "![bank.com](https://evil.com/a.png) [b\u200bank.com](https://evil.com)"
    ),
    "credentials": (
        "https://user:secret@host.example/x [x](https://user:secret@host.example) "
        "<https://user:secret@host.example/> https://bank.com@evil.com/ ![i](http://u:p@h/i.png)"
    ),
    "invitations": "https://discord.gg/abc discord.gg/abc [join](https://discord.com/invite/abc)",
    "links": (
        "[a)b](https://x.com/a_(b)) [a|b](https://x.com/a|b) [a](<https://x.com/a b>) "
        "https://x.com/a_b_c, (https://x.com/(y)). **https://x.com/z** https://x.com/ü "
        "[two\nlines](https://x.com) [**bold** and `code`](https://x.com) [ref] [^1]\n\n"
        "[ref]: https://x.com/ref\n[^1]: footnote\n[^2]: https://x.com/only\n"
    ),
    "a link of 3 000 characters": f"[label](https://x.com/{'a' * 3_000}) https://x.com/{'b' * 3_000}",
    "images": "![alt *text*](https://x.com/i.png) ![](https://x.com/j.png) [![b](https://x.com/k)](https://x.com/l) ![c](local.png)",
    "html": "<b>bold</b> <script>alert(1)</script> a<br>b<br/>c &amp; &lt;i&gt; <!-- note --> <a href='x'>y</a>",
    "unclosed fence": "Before\n\n```python\nprint(1)\n\n  indented\n",
    "fences in fences": "````md\n```py\nx = 1\n```\n````\n\n~~~\n```\n~~~\n\n> ```sh\n> ls\n> ```\n",
    "fence of 9 000 characters": "Text.\n\n```python\n"
    + "".join(f"print({n:04})\n" for n in range(750))
    + "```\n\nAfter.",
    "one line of code of 5 000 characters": f"```json\n{'[1, 2, ' * 715}\n```",
    "backticks": "`` a`b `` ``` a``b ``` ` `` ` text with ` and ``` alone\n\n    indented ``` code",
    "emphasis": "a*b*c __init__ snake_case_name 2*3*4 x**2 + y**2 **un**believable *a **b** c* ***d*** ~~e~~ ~5 _f_ **g**_h_",
    "CJK emphasis": "日*本*語 **重要。**次 **「強調」**です 这是**「重要」**的。한국어**강조**는",
    "literal markup": "\\*not bold\\* \\_not italic\\_ \\~\\~no\\~\\~ \\|\\|no spoiler\\|\\| \\`no code\\` \\[a\\](https://x.com)\n\n\\# no heading\n\n\\> no quote\n\n\\- no list\n\n1\\. no list\n\n-\\# small",
    "headings": "# One\nText\n## Two *it*\n### Three\n#### Four\nSetext\n======\n#hash #tag",
    "quotes": "> one\n>\n> two\n> > three\n\nplain\n\n> - item\n> - item\n>\n> ```\n> code\n> ```",
    "lists 8 deep": "".join(f"{'  ' * depth}- level {depth}\n" for depth in range(8)),
    "lists": "7. seven\n8. eight\n\n   more of eight\n\n   ```py\n   code\n   ```\n9. nine\n   - a\n   - b\n\n- [ ] open\n- [x] done\n-\n- - nested at once\n\n1) one\n1) two",
    "a table": "| Name | Count | Note |\n|:-----|------:|:----:|\n| a | 1 | **x** |\n| bb | 22 | `y|z` |\n",
    "tables": (
        "| one |\n|---|\n| 1 |\n| 2 |\n\n| ragged | b |\n|---|---|\n| 1 |\n| 1 | 2 | 3 |\n| | |\n\n"
        "- in a list\n\n  | c | d |\n  |---|---|\n  | 日本 | [l](https://x.com) |\n\n"
        f"| {' | '.join(f'h{n}' for n in range(30))} |\n|{'---|' * 30}\n| {' | '.join(str(n) for n in range(30))} |\n"
    ),
    "a long table": "| Name | Value |\n|---|---|\n"
    + "".join(f"| name {n} | value {n} |\n" for n in range(150)),
    "a table with wide cells": f"| Name | Text |\n|---|---|\n| a | {'word ' * 500}|\n| b | {'x' * 700} |\n",
    "direction": "שלום \u202eevil\u202c \u2066isolated\u2069 \u202dover \u200fmark مرحبا &#x202e;x",
    "controls": "a\x00b\x07c\x1b[31mred\x1b[0m\x7f\x9d\ufffe \ud83d alone \udc4d\u2028line\u2029para\x0bv\x0cf\ttab\r\nend\rcr",
    "invisible": "a\u200bb\u2060c\ufeffd\u00ade\u3164",
    "only whitespace": " \n\t\n\u00a0\u3000\n",
    "only invisible": "\u200b\u2060\u2800\u3164",
    "only an emoji": "👍",
    "only a rule": "---",
    "empty blocks": "-\n\n```\n```\n\n>\n\n#\n\n| |\n|-|\n| |",
    "clusters at the limit": "\n\n".join(
        [FAMILY * 250, FLAGS * 120, "e\u0301\u0323" * 1_500, "❤️" * 900]
    ),
    "a line of 50 000 characters": "x" * 50_000,
    "words": "The quick brown fox jumps over the lazy dog. " * 120,
    "paragraphs": "".join(f"Paragraph {n}. {'It has two sentences. ' * 20}\n\n" for n in range(12)),
    "sections": "".join(
        f"## Section {n}\n\nThese are the steps:\n\n"
        + "".join(f"{step}. Step {step} of it\n" for step in range(1, 9))
        + "\n"
        for n in range(14)
    ),
    "150 bold words": "**a** b " * 150,
    "deep": ">" * 100 + " a\n\n" + "- " * 60 + "b",
    "separators": "one\n\n---\n\ntwo\n***\nthree\n",
    "smart": "“Quotes” – dashes — and… it’s • fine → ok ≤ 5",
}
