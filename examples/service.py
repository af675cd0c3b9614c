"""An agent behind HTTP: threads that survive a restart, answers as a stream, approvals by another request.

    pip install 'jianmu[openai]' fastapi uvicorn
    uvicorn --factory examples.service:create_app

    curl -X POST localhost:8000/threads/ada/messages -H 'Content-Type: application/json' \
         -d '{"id": "m1", "text": "I like green tea."}'

A client that gets no answer sends the same message again, under the same id: it is taken once.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fastapi import FastAPI, HTTPException
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from jianmu.agents import AgentResult, EchoChatModel, ReActAgent, TextDelta, ToolStarted, TurnFinished
from jianmu.errors import ApprovalPendingError, ChatModelError, ThreadBusyError, UnknownQuestionError
from jianmu.memory import FileCheckpointer, MemoryService, SimpleStore


class Said(BaseModel):
    """What a user says; `id` is the client's own, the same when it sends the message again."""

    id: str
    text: str


class Answers(BaseModel):
    """Decisions by the id of the pending call."""

    answers: dict[str, bool]


def create_app(agent: ReActAgent | None = None) -> FastAPI:
    """Make the service; without an agent it uses the built-in echo rule."""
    chosen = agent if agent is not None else default_agent()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await chosen.aclose()

    app = FastAPI(title="jianmu agent", lifespan=lifespan)

    @app.post("/threads/{thread_id}/messages")
    async def say(thread_id: str, said: Said) -> dict[str, Any]:
        with_id = {"thread_id": thread_id, "message_id": said.id}
        return shown(await refusing(chosen.run(said.text, **with_id)))

    @app.post("/threads/{thread_id}/answers")
    async def decide(thread_id: str, decisions: Answers) -> dict[str, Any]:
        return shown(await refusing(chosen.run(thread_id=thread_id, answers=decisions.answers)))

    @app.post("/threads/{thread_id}/stream")
    async def stream(thread_id: str, said: Said) -> StreamingResponse:
        async def lines() -> AsyncIterator[str]:
            async with chosen.stream(said.text, thread_id=thread_id, message_id=said.id) as events:
                async for event in events:
                    if isinstance(event, TextDelta):
                        yield line({"text": event.text})
                    elif isinstance(event, ToolStarted):
                        yield line({"tool": event.call.name})
                    elif isinstance(event, TurnFinished):
                        yield line({"finished": shown(event.result)})

        return StreamingResponse(lines(), media_type="text/event-stream")

    @app.get("/threads/{thread_id}")
    async def read(thread_id: str) -> list[dict[str, Any]]:
        messages = await chosen.history(thread_id)
        if not messages:
            raise HTTPException(404, f"no thread {thread_id!r}")
        return [{"role": message.role, "text": message.text} for message in messages]

    @app.post("/threads/{thread_id}/cancel")
    async def cancel(thread_id: str) -> dict[str, bool]:
        return {"cancelled": chosen.cancel(thread_id)}

    return app


def default_agent() -> ReActAgent:
    """Return an agent that needs no key."""
    memory = MemoryService(SimpleStore(Path(".outputs/service/memory.json")), ("service",))
    checkpointer = FileCheckpointer(Path(".outputs/service/threads"))
    return ReActAgent(EchoChatModel(), memory=memory, checkpointer=checkpointer)


def shown(result: AgentResult) -> dict[str, Any]:
    """Return a result as JSON data."""
    pending = [{**asdict(p), "arguments": dict(p.arguments)} for p in result.pending]
    about = {"outcome": result.outcome, "explanation": result.explanation}
    return {"text": result.text, **about, "pending": pending}


async def refusing(run: Any) -> AgentResult:
    """Await a run; its errors become HTTP answers."""
    try:
        result: AgentResult = await run
    except ThreadBusyError as error:
        raise HTTPException(409, str(error)) from error
    except ApprovalPendingError as error:
        raise HTTPException(409, str(error)) from error
    except UnknownQuestionError as error:
        raise HTTPException(404, str(error)) from error
    except ChatModelError as error:
        raise HTTPException(502, str(error)) from error
    return result


def line(data: dict[str, Any]) -> str:
    """Return one server-sent event."""
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n"
