"""The texts of a history: what people ask, what agents answer, and the errors of a normal day."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from bullpen.core.message import ErrorKind

QUESTIONS: Mapping[str, tuple[str, ...]] = {
    "architect": (
        "Users with an umlaut in their name cannot log in. Please find the cause and fix it.",
        "Plan the migration of the invoices table to partitions.",
        "The nightly export takes four hours. Make it faster.",
        "Add rate limits to the public API, with a test.",
        "We need a feature flag for the new checkout. What do you suggest?",
    ),
    "coder": (
        "Rename the column customer_ref to customer_id everywhere.",
        "The date picker shows Sunday first. Make that a setting.",
        "Upgrade the HTTP client and run the tests.",
        "Write a script that finds orphaned uploads.",
    ),
    "reviewer": (
        "Please review the branch feature/checkout.",
        "Is this migration safe on a table with 40 million rows?",
        "Look at the last three commits of the export job.",
    ),
    "concierge": (
        "Where can I find my invoices?",
        "My parcel has not moved for five days. What can I do?",
        "I was charged twice in October. Please check.",
        "How do I change the email address of my account?",
        "Can I add a second user to my plan?",
        "Thank you! One more question: does this work on a tablet?",
    ),
    "billing": (
        "Send the reminder for invoice 10482.",
        "Which customers have open invoices older than 60 days?",
        "Refund order 55120, the item arrived broken.",
    ),
    "writer": (
        "Write the release notes for version 4.2.",
        "Shorten this announcement to three sentences.",
        "Translate the welcome mail into Dutch and Polish.",
    ),
    "analyst": (
        "Why did the sign-ups drop last week?",
        "Compare the churn of yearly and monthly plans.",
        "Which support topics grew most in the last quarter?",
    ),
    "assistant": (
        "Is the staging cluster healthy?",
        "Disk usage on db-2 is at 91 %. What takes the space?",
        "Restart the import worker, please.",
    ),
}
"""Messages of people, by agent."""

TASKS: Mapping[str, tuple[str, ...]] = {
    "coder": (
        "Implement the change as described, with a test that fails before it.",
        "Reproduce the error and send a patch.",
        "Please fix the two findings of the review.",
    ),
    "reviewer": ("Review this patch: correctness first, then names.", "Check the migration twice."),
    "tester": ("Run the test suite and report failures.", "Write an end-to-end test for this."),
    "billing": ("Check the payments of this customer.", "Look up the invoice and its reminders."),
    "writer": ("Write the answer to the customer, friendly and short.", "Summarise the findings."),
    "researcher": ("Collect the numbers for the last four quarters.", "Find three sources."),
}
"""Messages of agents, by the agent that receives them."""

ANSWERS: Mapping[str, tuple[str, ...]] = {
    "architect": ("I split this into two steps. The first is done; the second is in review.",),
    "coder": (
        "Done. The change is on a branch with a test; the suite passes.",
        "The cause was a comparison of bytes with text. Fixed, with a test.",
    ),
    "reviewer": (
        "Two findings: a missing index, and a name that says the opposite.",
        "Looks good.",
    ),
    "tester": ("418 tests passed, none failed.", "One failure: the export skips the last page."),
    "concierge": (
        "You find your invoices under Account, Invoices. I also sent you the last one.",
        "I am sorry about that. I asked the carrier, and will write to you tomorrow.",
    ),
    "billing": ("The second charge was a reservation; it expires in two days.", "Refunded."),
    "writer": ("Here is the text. I kept it under 120 words.",),
    "analyst": ("Sign-ups fell by 8 %, nearly all of it on mobile after the update.",),
    "researcher": ("Here are the numbers, with their sources.",),
    "assistant": ("All services are healthy. Old snapshots took 210 GB; I removed them.",),
}
"""Responses to people, by agent."""

POSTS = (
    "Stand-up: the export is done, the review of the migration is next.",
    "The staging cluster will be restarted at noon.",
    "Please mention the ticket in commit messages.",
    "Three customers asked for the same thing today; I wrote it down.",
    "Release 4.2 is out. Thank you all.",
)
"""Posts in rooms."""

DAILY_ERRORS: Mapping[ErrorKind, tuple[str, ...]] = {
    ErrorKind.RETRYABLE: (
        "API Error: 500 internal server error (request {hex})",
        "connection reset by peer after {n} ms",
        "the answer was empty",
        "tool run_tests timed out after {n} s",
    ),
    ErrorKind.RATE_LIMIT: ("429 Too Many Requests: retry after {n} s",),
    ErrorKind.PERMANENT: (
        "prompt is too long: {n} tokens > 200000 maximum",
        "the response was refused by the content filter",
    ),
    ErrorKind.NEEDS_PERSON: ("approval needed: run `git push --force` in release/{n}",),
}
"""The errors of runs on a day without an incident."""

DELIVERY_ERRORS: Mapping[str, str] = {
    "slack": "channel_not_found",
    "telegram": "403 Forbidden: bot was blocked by the user",
    "discord": "50007: cannot send messages to this user",
    "whatsapp": "63016: outside of the allowed window for free text",
}
"""Why a platform refuses a response, by channel."""


def fill_error(random: Random, template: str) -> str:
    """The error of one run, with its own numbers and ids."""
    if "{" not in template:
        return template
    return template.format(n=random.randrange(10, 60_000), hex=f"{random.getrandbits(40):010x}")


def pick(texts: tuple[str, ...], number: int) -> str:
    """One of these texts, by a number."""
    return texts[number % len(texts)]
