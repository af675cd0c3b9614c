"""Three agents on one memory: two with a namespace of their own, and a lead who sees both.

    python examples/shared_memory.py

Each agent's tools are bound to its namespace: they search it and what lies below, and cannot leave it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from jianmu.agents import EchoChatModel, ReActAgent
from jianmu.memory import MemoryService, SimpleStore


async def main(path: Path) -> dict[str, str]:
    """Let two agents learn something, and ask all three about it."""
    store = SimpleStore(path)
    agents = {
        name: ReActAgent(EchoChatModel(), memory=MemoryService(store, namespace))
        for name, namespace in {
            "research": ("team", "research"),
            "kitchen": ("team", "kitchen"),
            "lead": ("team",),
        }.items()
    }
    await agents["research"].run("The vault of the lab opens at nine.", thread_id="research")
    await agents["kitchen"].run("The vault of the bakery opens at six.", thread_id="kitchen")
    return {
        name: (await agent.run("When does the vault open?", thread_id=name)).text
        for name, agent in agents.items()
    }


if __name__ == "__main__":
    for agent_name, answer in asyncio.run(main(Path(".outputs/team.json"))).items():
        print(f"{agent_name}:\n{answer}\n")
