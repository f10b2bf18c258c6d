"""The contents of an agent's directory: instructions, skills and memory."""

from __future__ import annotations

from pathlib import PurePosixPath

from pydantic import Field

from bullpen.api.context import api, read, require_reach, write
from bullpen.api.route import ADMIN, READ, Routes
from bullpen.api.routes.agents import AgentPath
from bullpen.api.schemas import Answer, CamelAnswer, Done, Rows, StrictBody
from bullpen.core.errors import InTheWay, NotFound
from bullpen.core.roster.agents import get_agent
from bullpen.core.text import sanitise_text
from bullpen.core.workspace.contents import MEMORY_DIRECTORY, list_memory, list_skills, read_memory
from bullpen.core.workspace.templates import (
    prepare_directory,
    read_user_instructions,
    write_user_instructions,
)

routes = Routes("workspaces", "Contents of the agents' directories.")


class Instructions(StrictBody):
    """The user's part of the agent's AGENTS.md."""

    content: str


class InstructionsAnswer(Answer):
    """The user's part of the agent's AGENTS.md, as in its prompt."""

    content: str
    path: str
    truncated: bool = Field(description="Whether the text was shortened.")


class SkillAnswer(Answer):
    """A skill and its description."""

    id: str
    name: str
    description: str


class SkillList(Rows[SkillAnswer]):
    """Skills."""


class MemoryFile(Answer):
    """A file of an agent's memory."""

    name: str
    path: str = Field(description="Path below the memory directory.")


class MemoryAnswer(CamelAnswer):
    """An agent's memory."""

    index: str
    files: list[MemoryFile]
    memory_dir: str


class MemoryPath(AgentPath):
    """Selects a file of an agent's memory."""

    file: str = Field(description="Path below the memory directory.")


class MemoryText(MemoryFile):
    """A file of an agent's memory with its text."""

    content: str
    truncated: bool = Field(description="Whether the text was shortened.")


@routes.get("/api/agents/<agent_id>/system-prompt", READ, NotFound)
def system_prompt(path: AgentPath) -> InstructionsAnswer:
    """Get the user's part of an agent's AGENTS.md."""
    _exists(path.agent_id)
    instructions = read_user_instructions(api().settings, path.agent_id)
    return InstructionsAnswer(
        content=instructions.text,
        path=sanitise_text(str(instructions.path)),
        truncated=instructions.truncated,
    )


@routes.put("/api/agents/<agent_id>/system-prompt", ADMIN, NotFound, InTheWay)
def put_system_prompt(path: AgentPath, body: Instructions) -> Done:
    """Replace the user's part of an agent's AGENTS.md.

    Bullpen's part is unchanged.
    """
    require_reach(path.agent_id)
    with write() as tx:
        get_agent(tx, path.agent_id)
    prepare_directory(api().settings, path.agent_id)
    write_user_instructions(api().settings, path.agent_id, body.content)
    return Done()


@routes.get("/api/agents/<agent_id>/skills", READ, NotFound)
def skills(path: AgentPath) -> SkillList:
    """List an agent's skills."""
    _exists(path.agent_id)
    return SkillList.of(list_skills(api().settings, path.agent_id))


@routes.get("/api/agents/<agent_id>/memory", READ, NotFound)
def memory(path: AgentPath) -> MemoryAnswer:
    """List the files of an agent's memory."""
    _exists(path.agent_id)
    settings = api().settings
    contents = list_memory(settings, path.agent_id)
    return MemoryAnswer(
        index=contents.index,
        files=[MemoryFile(name=PurePosixPath(each).name, path=each) for each in contents.files],
        memory_dir=sanitise_text(str(settings.workspace / path.agent_id / MEMORY_DIRECTORY)),
    )


@routes.get("/api/agents/<agent_id>/memory/<path:file>", READ, NotFound)
def memory_file(path: MemoryPath) -> MemoryText:
    """Get a file of an agent's memory."""
    _exists(path.agent_id)
    contents = read_memory(api().settings, path.agent_id, path.file)
    name = PurePosixPath(path.file).name
    return MemoryText(
        name=name, path=path.file, content=contents.text, truncated=contents.truncated
    )


def _exists(agent_id: str) -> None:
    require_reach(agent_id)
    with read() as tx:
        get_agent(tx, agent_id)
