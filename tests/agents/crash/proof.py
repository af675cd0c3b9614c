"""Kills the worker at random moments and reads the server's own log."""

from __future__ import annotations

import json
import multiprocessing
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

from jianmu.agents import AgentState
from jianmu.state import StateManager
from jianmu.testing.provider_server import LoggedCall, ProviderServer
from jianmu.testing.provider_wire import ProviderAnswer, ProviderRequest

from . import worker

CALLS = (1, 2, 3, 1, 2, 1, 3, 2, 1, 2, 2)
"""Tool calls of each completion; a twelfth completion answers."""
STEPS, TOOL_CALLS = len(CALLS) + 1, sum(CALLS)


def brain(request: ProviderRequest) -> ProviderAnswer:
    """Answer by what came before, so that a repeated request is answered alike."""
    step = request.assistant_turns
    if step == len(CALLS):
        return ProviderAnswer("All accounts are charged.")
    calls = tuple(("charge", {"effect": f"{step}.{n}"}) for n in range(CALLS[step]))
    return ProviderAnswer(f"Step {step}.", tool_calls=calls)


@dataclass
class Tally:
    """What was counted.

    Attributes:
        kills: SIGKILLs that hit a worker at work.
        turns: Turns brought to their end.
        requests: Requests that the server logged, by ``"completion"`` and ``"tool"``.
        repeats: Of these, those asked for again after a kill; their answer was not saved.
        most: Of one effect in one life of the worker: the most requests.
        per_kill: For each life of a worker, how many effects it asked for again.
        wrong: What should not be.
    """

    kills: int = 0
    turns: int = 0
    requests: Counter[str] = field(default_factory=Counter)
    repeats: Counter[str] = field(default_factory=Counter)
    most: int = 0
    per_kill: list[int] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def lines(self) -> Iterable[str]:
        """Return the report."""
        spread = dict(sorted(Counter(self.per_kill).items()))
        yield f"{self.turns} turns of {STEPS} completions and {TOOL_CALLS} tool calls, {self.kills} SIGKILLs"
        yield f"requests in the server's log: {dict(self.requests)}"
        yield f"asked for again after a kill, unsaved, same key: {dict(self.repeats)}; per kill: {spread}"
        yield f"requests for one effect in one life of the worker, at most: {self.most}"
        yield f"violations: {len(self.wrong)}"
        yield from self.wrong[:20]


def effect_of(call: LoggedCall) -> str:
    """Return the effect that a request stands for: ``c3`` = the fourth completion, ``3.1`` = a tool call."""
    if call.path.startswith("/tools/"):
        return str(call.body["effect"])
    return f"c{sum(message['role'] == 'assistant' for message in call.body['messages'])}"


def saved_effects(store: str, folder: Path, thread_id: str) -> set[str]:
    """Return the effects whose answer is in the checkpoint or in the journal."""
    checkpointer: Any = worker.open_store(store, str(folder))
    try:
        envelope = checkpointer.get_checkpoint(thread_id)
        if envelope is None:
            return set()
        manager = StateManager(AgentState)
        manager.initialize(envelope["state"])
        messages = manager.get().messages
        saved = {f"c{n}" for n in range(sum(m.role == "assistant" for m in messages))}
        saved |= {m.text.removeprefix("charged ") for m in messages if m.role == "tool"}
        for record in checkpointer.read_journal(thread_id):
            if record["key"] == "once:completion":
                saved.add(f"c{record['activation'] - 1}")
            elif record["key"].startswith("once:tool/"):
                text = json.dumps(record["value"])
                saved.add(text.split("charged ")[1].split('"')[0])
        return saved
    finally:
        checkpointer.close()


def settle(server: ProviderServer) -> None:
    """Wait until the server has read and answered all that the dead worker sent."""
    quiet = 0
    while quiet < 3:
        before = len(server.log)
        time.sleep(0.01)
        busy = len(server.log) != before or any(call.outcome == "started" for call in server.log)
        quiet = 0 if busy else quiet + 1


def wait_for_the_moment(server: ProviderServer, process: Any, draw: random.Random, longest: float) -> None:
    """Wait for a random time or, four times of five, for a random number of requests and a moment more."""
    if draw.random() < 0.2:
        process.join(draw.uniform(0, longest))
        return
    until = len(server.log) + draw.randint(1, 8)
    while len(server.log) < until and process.is_alive():
        time.sleep(0.001)
    process.join(draw.uniform(0, 0.03))


class ProvenTurn:
    """One turn of the conversation, brought to its end through any number of kills.

    Args:
        server: The provider.
        start: Makes a worker process from a pipe's end.
        read: Returns the effects that are saved by now.
        name: For messages.
        tally: Where all is counted.
        in_doubt: How many effects a kill may leave in doubt: the calls that run at the same time.
    """

    def __init__(
        self,
        server: ProviderServer,
        start: Callable[[Any], Any],
        read: Callable[[], set[str]],
        name: str,
        tally: Tally,
        in_doubt: int,
    ) -> None:
        self._server = server
        self._start = start
        self._read = read
        self._name = name
        self._tally = tally
        self._in_doubt = in_doubt
        self._first = len(server.log)
        self._keys: dict[str, set[str | None]] = defaultdict(set)
        self._saved: set[str] = set()

    def live(self, kill: Callable[[Any], None] | None) -> bool:
        """Run the worker once; return whether it came to its end."""
        begin = len(self._server.log)
        here, there = multiprocessing.Pipe(duplex=False)
        process = self._start(there)
        there.close()
        here.recv()
        if kill is not None:
            kill(process)
            process.kill()
        process.join(60)
        settle(self._server)
        killed = process.exitcode == -9
        self._tally.kills += killed
        if process.exitcode not in (0, -9):
            self._wrong(f"the worker ended with {process.exitcode}")
        self._count(self._server.log[begin:])
        self._saved = self._read()
        return not killed

    def _count(self, calls: list[LoggedCall]) -> None:
        tally = self._tally
        asked = Counter(effect_of(call) for call in calls)
        again = asked.keys() & self._keys.keys()
        tally.most = max([tally.most, *asked.values()])
        tally.per_kill.append(len(again))
        tally.requests.update("completion" if call.path.startswith("/v1/") else "tool" for call in calls)
        tally.repeats.update("completion" if effect.startswith("c") else "tool" for effect in again)
        if len(again) > self._in_doubt:
            self._wrong(f"asked for {sorted(again)} again after one kill")
        for effect in again & self._saved:
            self._wrong(f"{effect} was saved and asked for again")
        for effect in (effect for effect, count in asked.items() if count > 1):
            self._wrong(f"{effect} was asked for {asked[effect]} times in one life")
        for call in calls:
            self._keys[effect_of(call)].add(call.key)

    def end(self) -> None:
        """Check the turn as a whole."""
        self._tally.turns += 1
        effects = {f"c{n}" for n in range(STEPS)}
        effects |= {f"{step}.{n}" for step, many in enumerate(CALLS) for n in range(many)}
        if self._keys.keys() != effects:
            self._wrong(f"asked for too much or never: {sorted(self._keys.keys() ^ effects)}")
        for effect, keys in self._keys.items():
            if len(keys) != 1:
                self._wrong(f"{effect} had {len(keys)} keys")
        if any(call.outcome == "refused" for call in self._server.log[self._first :]):
            self._wrong("the server refused a request")

    def _wrong(self, what: str) -> None:
        self._tally.wrong.append(f"{self._name}: {what}")


def prove(
    kills: int,
    folder: Path,
    *,
    seed: int,
    store: str = "file",
    parallel: int | None = None,
    longest: float = 0.6,
) -> Tally:
    """Run turns, killing their worker, until `kills` kills have hit.

    Args:
        kills: How many.
        folder: For the stores.
        seed: Of the kills' moments.
        store: Which checkpointer.
        parallel: `ReActAgent`'s `parallel_tools`; by default one call at a time, for it has an effect.
        longest: Seconds within which a worker is killed that no request decides on.
    """
    draw, tally = random.Random(seed), Tally()
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([worker.__name__, "openai", "anthropic"])
    with ProviderServer(brain, delay=0.001, before_answer=lambda call: time.sleep(0.004)) as server:

        def kill(process: Any) -> None:
            wait_for_the_moment(server, process, draw, longest)

        for wire in cycle(("openai", "anthropic")):
            if tally.kills >= kills or tally.wrong:
                return tally
            thread_id = f"turn-{tally.turns}"
            rest = (thread_id, wire, store, str(folder), server.url, server.api_key, parallel)

            def start(there: Any, rest: tuple[Any, ...] = rest) -> Any:
                process = context.Process(target=worker.main, args=(there, *rest))
                process.start()
                return process

            read = partial(saved_effects, store, folder, thread_id)
            turn = ProvenTurn(server, start, read, f"{thread_id} ({wire}, {store})", tally, parallel or 1)
            while not turn.live(kill if tally.kills < kills else None):
                pass
            turn.end()
    return tally
