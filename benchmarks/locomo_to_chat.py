"""Turn LoCoMo's conversations into the demo's form, and play the demo on them.

    python benchmarks/locomo_to_chat.py --data locomo.json --out FOLDER          # one JSONL a conversation
    python benchmarks/locomo_to_chat.py --data locomo.json --out FOLDER --play --kills 10

LoCoMo (Maharana et al., ACL 2024, CC BY-NC 4.0) is not part of this project: give its JSON by path.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from jianmu.demo.parent import Demo
from jianmu.demo.story import Story
from jianmu.demo.view import Silence


def chat_lines(conversation: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the turns of one conversation, in order: role, name, content, time."""
    sessions = sorted(
        (int(match[1]) for key in conversation if (match := re.fullmatch(r"session_(\d+)", key))),
    )
    lines = []
    for session in sessions:
        start = datetime.strptime(conversation[f"session_{session}_date_time"], "%I:%M %p on %d %B, %Y")
        for number, turn in enumerate(conversation[f"session_{session}"]):
            caption = turn.get("blip_caption")
            lines.append(
                {
                    "role": "user" if turn["speaker"] == conversation["speaker_a"] else "assistant",
                    "name": turn["speaker"],
                    "content": turn["text"] + (f" (shows {caption})" if caption else ""),
                    "time": (start.replace(tzinfo=UTC) + timedelta(seconds=30 * number)).isoformat(),
                }
            )
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="LoCoMo's JSON; without it nothing is done")
    parser.add_argument("--out", type=Path, default=Path(".outputs/locomo-chat"), help="a folder")
    parser.add_argument("--play", action="store_true", help="play the demo on each")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pace", type=float, default=0.0, help="seconds to read a turn")
    args = parser.parse_args()
    if args.data is None:
        print("skipped: no --data PATH given")
        return 0
    args.out.mkdir(parents=True, exist_ok=True)
    stories: dict[str, Story] = {}
    for sample in json.loads(args.data.read_text(encoding="utf-8")):
        path = args.out / f"{sample['sample_id']}.jsonl"
        lines = chat_lines(sample["conversation"])
        path.write_text(
            "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8"
        )
        print(f"{path}: {len(lines)} turns")
        if args.play:
            folder = args.out / f"{sample['sample_id']}-demo-{datetime.now(UTC):%H%M%S}"
            demo = Demo(
                folder, Silence(), conversation=path, kills=args.kills, seed=args.seed, pace=args.pace
            )
            stories[sample["sample_id"]] = demo.run()
            show(sample["sample_id"], stories[sample["sample_id"]])
    if stories:
        (args.out / "stories.json").write_text(
            json.dumps(
                {name: story.as_dict() for name, story in stories.items()}, ensure_ascii=False, indent=1
            ),
            encoding="utf-8",
        )
    return 0 if all(story.is_exactly_once for story in stories.values()) else 1


def show(name: str, story: Story) -> None:
    effects = story.effects
    next_step = sum(death.went_on_exactly for death in story.deaths)
    print(
        f"{name}: {story.turns} turns, {story.facts} facts, {len(story.deaths)} kills, "
        f"{next_step} went on at the next step, {story.last_step} steps, {effects.lines} lines, "
        f"{effects.distinct_keys} keys, {effects.refused} refused, {story.memories} memories, "
        f"{sum(a.is_expected for a in story.answers)}/{len(story.answers)} answers, {story.seconds:.0f} s, "
        f"exactly once: {story.is_exactly_once}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
