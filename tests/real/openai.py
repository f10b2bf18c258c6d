"""A loopback server that speaks as much of OpenAI's Responses API as `codex` uses."""

from __future__ import annotations

import json
from uuid import uuid4

from tests.real.reply import Body, Refuse, Say, UseTool
from tests.real.server import ModelServer, Request, events

KINDS = {
    400: "invalid_request_error",
    401: "invalid_api_key",
    403: "permission_denied",
    404: "model_not_found",
    429: "rate_limit_exceeded",
}
# What `codex` itself says in the user's role.
ASIDES = ("<environment_context>", "<user_instructions>", "<skill>", "# AGENTS.md instructions")


class OpenAIServer(ModelServer):
    """What `model_providers.<id>.base_url` names: `url` ends in `/v1`."""

    @property
    def url(self) -> str:
        """The base URL."""
        return f"{self.address}/v1"

    def prompt(self, body: Body) -> str:
        """The last text in the user's role, without what `codex` says in the same role."""
        said = [text for text in _said(body, "user") if not text.startswith(ASIDES)]
        return said[-1] if said else ""

    def told(self, body: Body) -> str:
        """The developer's texts."""
        return "\n".join(_said(body, "developer"))

    def tool_result(self, body: Body) -> str | None:
        """What came of the last tool."""
        item = body["input"][-1]
        if item.get("type") != "function_call_output":
            return None
        output = item["output"]
        return output if isinstance(output, str) else json.dumps(output)

    def session(self, request: Request) -> str:
        """The id in a header of `codex`'s."""
        return request.headers["thread-id"]

    def wants_answer(self, path: str) -> bool:
        """Only a request for a response."""
        return path == "/v1/responses"

    def answer(self, body: Body, reply: Say | UseTool) -> str | Body:
        """A response: streamed as `codex` asks for it, or whole."""
        response = _response(body, reply, f"resp_{uuid4().hex}")
        return events(_stream(response)) if body.get("stream") else response

    def refusal(self, reply: Refuse) -> Body:
        """An error object."""
        kind = reply.kind or KINDS.get(reply.status, "server_error")
        return {"error": {"message": reply.message, "type": kind, "code": kind, "param": None}}

    def aside(self, path: str) -> Body:
        """An empty list, as `codex` and others read it."""
        return {"object": "list", "data": [], "models": []}


def _said(body: Body, role: str) -> list[str]:
    messages = (item for item in body["input"] if item.get("type") == "message")
    return [
        "\n".join(part["text"] for part in message["content"])
        for message in messages
        if message["role"] == role
    ]


def _response(body: Body, reply: Say | UseTool, response_id: str) -> Body:
    output: list[Body] = []
    tokens = (reply.input_tokens, reply.output_tokens) if isinstance(reply, Say) else (11, 7)
    text = reply.text if isinstance(reply, Say) else reply.say
    if text:
        part = {"type": "output_text", "text": text, "annotations": []}
        message = {"id": f"msg_{response_id}", "role": "assistant", "content": [part]}
        output.append({"type": "message", "status": "completed", **message})
    if isinstance(reply, UseTool):
        call = {"call_id": f"call_{response_id}", "arguments": json.dumps(reply.input)}
        output.append({"type": "function_call", "name": reply.name, **call})
    return {
        "id": response_id,
        "object": "response",
        "status": "completed",
        "model": body["model"],
        "output": output,
        "usage": {
            "input_tokens": tokens[0],
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": tokens[1],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": sum(tokens),
        },
    }


def _stream(response: Body) -> list[Body]:
    opening = {**response, "status": "in_progress", "output": [], "usage": None}
    found: list[Body] = [{"type": "response.created", "response": opening}]
    for index, item in enumerate(response["output"]):
        found += _item(index, item)
    return [*found, {"type": "response.completed", "response": response}]


def _item(index: int, item: Body) -> list[Body]:
    done = {"type": "response.output_item.done", "output_index": index, "item": item}
    if item["type"] == "function_call":
        empty = {**item, "arguments": ""}
        return [{"type": "response.output_item.added", "output_index": index, "item": empty}, done]
    at = {"item_id": item["id"], "output_index": index, "content_index": 0}
    text = item["content"][0]["text"]
    empty = {**item, "status": "in_progress", "content": []}
    return [
        {"type": "response.output_item.added", "output_index": index, "item": empty},
        {"type": "response.output_text.delta", **at, "delta": text},
        {"type": "response.output_text.done", **at, "text": text},
        done,
    ]
