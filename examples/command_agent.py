#!/usr/bin/env python3
"""An agent for frontdesk's `command` driver, in plain Python: one JSON object per line, in and out.

It repeats what it is told. `remove FILE` asks a person first, as an agent should before it does harm;
`count N` counts slowly and heeds a stop in between. It ends when its input ends.
"""

import json
import queue
import sys
import threading

lines: queue.Queue = queue.Queue()


def read_lines():
    """Read in a thread of its own, so that a stop is heard in the middle of the work."""
    try:
        for line in sys.stdin:
            lines.put(json.loads(line))
    except ValueError:
        pass  # whoever wrote it was killed in the middle of a line
    lines.put(None)


def hear(seconds=None):
    """The next line; None from the end of the input on, however often it is asked for."""
    line = lines.get(timeout=seconds)
    if line is None:
        lines.put(None)
    return line


def say(kind, **fields):
    print(json.dumps({"type": kind, **fields}), flush=True)


def answer(text):
    match text.split():
        case ["remove", name]:
            say("approval", id="1", action="remove", description=f"Remove {name}?", details={"file": name})
            decision = hear() or {}
            say("text", text=f"removed {name}" if decision.get("approved") else f"left {name} alone")
        case ["count", number]:
            for each in range(1, int(number) + 1):
                say("text", text=f"{each} ")
                try:
                    if (hear(0.1) or {"type": "stop"})["type"] == "stop":
                        return
                except queue.Empty:
                    pass
        case _:
            say("text", text=f"You said: {text}")


threading.Thread(target=read_lines, daemon=True).start()
while (line := hear()) is not None:
    if line["type"] == "turn":
        content = line["input"]["content"]
        answer(content if isinstance(content, str) else "something that is not only text")
        say("usage", input_tokens=len(str(line["messages"])) // 4, output_tokens=0)
        say("done")
