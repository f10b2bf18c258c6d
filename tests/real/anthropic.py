"""A loopback server that speaks as much of Anthropic's Messages API as `claude` uses."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

from tests.real.reply import Body, Refuse, Say, UseTool
from tests.real.server import ModelServer, Request, events

KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
REMINDER = "<system-reminder>"


class AnthropicServer(ModelServer):
    """What ANTHROPIC_BASE_URL names: `url` has no path."""

    @property
    def url(self) -> str:
        """The base URL."""
        return self.address

    def prompt(self, body: Body) -> str:
        """The last text in the user's role, without the reminders that `claude` puts beside it."""
        for message in reversed(body["messages"]):
            texts = [] if message["role"] != "user" else _texts(message["content"])
            if texts:
                return "\n".join(texts)
        return ""

    def told(self, body: Body) -> str:
        """The system's texts."""
        return "\n".join(_texts(body["system"]))

    def tool_result(self, body: Body) -> str | None:
        """What came of the last tool."""
        # After the user's message `claude` may put one of its own, in the role of the system.
        content = [one["content"] for one in body["messages"] if one["role"] != "system"][-1]
        blocks = [] if isinstance(content, str) else content
        results = [block for block in blocks if block["type"] == "tool_result"]
        if not results:
            return None
        return "\n".join(text for result in results for text in _texts(result.get("content", "")))

    def session(self, request: Request) -> str:
        """The id in a header of `claude`'s."""
        return request.headers["x-claude-code-session-id"]

    def wants_answer(self, path: str) -> bool:
        """Only a request for a message, not one to count its tokens."""
        return path == "/v1/messages"

    def answer(self, body: Body, reply: Say | UseTool) -> str | Body:
        """A message: streamed as `claude` asks for it, or whole."""
        message = _message(body, reply, f"msg_{uuid4().hex}")
        return events(_stream(message)) if body.get("stream") else message

    def refusal(self, reply: Refuse) -> Body:
        """An error object."""
        kind = reply.kind or KINDS.get(reply.status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": reply.message}}

    def aside(self, path: str) -> Body:
        """An empty list, and the count of tokens where that is asked for."""
        if path == "/v1/messages/count_tokens":
            return {"input_tokens": 11}
        return {"data": [], "has_more": False, "first_id": None, "last_id": None}


def _texts(content: str | list[Body]) -> list[str]:
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    texts = (str(block["text"]) for block in blocks if block["type"] == "text")
    return [text for text in texts if not text.startswith(REMINDER)]


def _message(body: Body, reply: Say | UseTool, message_id: str) -> Body:
    content: list[Body] = []
    usage = {"input_tokens": 11, "output_tokens": 7}
    if isinstance(reply, Say):
        usage = {"input_tokens": reply.input_tokens, "output_tokens": reply.output_tokens}
    text = reply.text if isinstance(reply, Say) else reply.say
    if text:
        content.append({"type": "text", "text": text})
    if isinstance(reply, UseTool):
        tool = {"id": f"toolu_{message_id}", "name": reply.name, "input": reply.input}
        content.append({"type": "tool_use", **tool})
    return {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": content,
        "stop_reason": "tool_use" if isinstance(reply, UseTool) else "end_turn",
        "stop_sequence": None,
        "usage": {**usage, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0},
    }


def _stream(message: Body) -> list[Body]:
    opening: dict[str, Any] = {"content": [], "stop_reason": None}
    opening["usage"] = {**message["usage"], "output_tokens": 1}
    found: list[Body] = [{"type": "message_start", "message": {**message, **opening}}]
    for index, block in enumerate(message["content"]):
        found += _block(index, block)
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    usage = {"output_tokens": message["usage"]["output_tokens"]}
    found.append({"type": "message_delta", "delta": delta, "usage": usage})
    return [*found, {"type": "message_stop"}]


def _block(index: int, block: Body) -> list[Body]:
    if block["type"] == "text":
        empty: Body = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": block["text"]}
    else:
        empty = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    return [
        {"type": "content_block_start", "index": index, "content_block": empty},
        {"type": "content_block_delta", "index": index, "delta": delta},
        {"type": "content_block_stop", "index": index},
    ]
