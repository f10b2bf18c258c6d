"""A received mail: who wrote it, whether a program sent it, and its text."""

import re
from email.message import EmailMessage

from bullpen.channels import text_of_html, without_quote

PROOFS = {"dmarc": r"header\.from", "dkim": r"header\.[di]", "spf": r"smtp\.mailfrom"}


def verified_author(mail: EmailMessage, authserv_id: str) -> tuple[str, str]:
    """The address and name of the author; empty unless the bot's own server has verified them."""
    addresses = [each for header in mail.get_all("From", []) for each in header.addresses]
    # Raw, because decoded words could add results. The own server's header is the first one.
    raw = [str(v)[:9999] for k, v in mail.raw_items() if k.lower() == "authentication-results"]
    results = re.sub(r'"[\w+/.@ -]*"|\([^()"\\]*\)', "", (*raw, "")[0])
    server, *verdicts = results.split(";")
    own = server.split()[:1] == [authserv_id] and not re.search(r'["\\()]', results)
    if len(addresses) != 1 or not addresses[0].addr_spec.isascii() or not own:
        return "", ""
    domain = rf"=(\S*@)?{re.escape(addresses[0].domain)}(\s|$)"
    proofs = [rf"(?is)\s*{method}=pass\s(.*\s)?{where}{domain}" for method, where in PROOFS.items()]
    proven = any(re.match(proof, each) for proof in proofs for each in verdicts)
    return (addresses[0].addr_spec.lower(), addresses[0].display_name) if proven else ("", "")


def is_automatic(mail: EmailMessage) -> bool:
    """Whether it is an auto-reply, a bounce, or from a mailing list."""
    found = {name.lower(): str(value).strip().lower() for name, value in mail.items()}
    quiet = found.get("auto-submitted", "no") == "no" and found.get("return-path") not in ("", "<>")
    bulk = found.get("precedence") in ("bulk", "junk", "list", "auto_reply") or "list-id" in found
    return bulk or not quiet


def text_of(mail: EmailMessage) -> str:
    """What the author wrote: the subject of a first mail, and no quoted mail at the end."""
    body = mail.get_body(("plain", "html"))
    text = str(body.get_content()) if body else ""
    html = body is not None and body.get_content_subtype() == "html"
    text = without_quote(text_of_html(text) if html else text).strip()
    if "In-Reply-To" not in mail and not text.startswith(("/", "@")):
        text = f"{mail.get('Subject', '')}\n\n{text}".strip()
    names = (each.get_filename("a file") for each in mail.iter_attachments())
    return "\n\n".join([text, *(f"[{each} was not accepted]" for each in names)])
