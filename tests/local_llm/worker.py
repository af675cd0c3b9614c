"""One process of the kill-and-resume proof: says one thing on one thread and prints how the turn ended."""

import asyncio
import sys
from pathlib import Path

from jianmu.agents import OpenAIChatModel, ReActAgent, TextDelta, TurnFinished
from jianmu.memory import FileCheckpointer


async def main(url: str, folder: str) -> None:
    model = OpenAIChatModel("smollm2", base_url=f"{url}/v1", options={"temperature": 0, "max_tokens": 200})
    agent = ReActAgent(model, checkpointer=FileCheckpointer(Path(folder)))
    async with agent.stream(
        "Tell me a long story about a tree.", thread_id="story", message_id="tree"
    ) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                print("delta", flush=True)
            elif isinstance(event, TurnFinished):
                print(f"finished {event.result.usage.output_tokens} {event.result.text!r}", flush=True)
    await model.aclose()


asyncio.run(main(sys.argv[1], sys.argv[2]))
