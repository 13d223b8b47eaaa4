"""``python acp_plain.py FOLDER [WORD…]``: an agent without SDK, which starts at once and can misbehave.

Its sessions are files in the folder. Words change how it starts: ``mute``, ``old``, ``no-load``, ``greet``.
"""

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

Message = dict[str, Any]


class Refused(Exception):
    """With the error of an answer."""


class Agent:
    """Every command is a method; anything else is said back."""

    def __init__(self, folder: Path, words: list[str]) -> None:
        self._folder = folder
        self._words = words
        self._prompts: dict[str, list[list[str]]] = {}
        self._loaded = False
        self._messages = self._read()
        self._calls: dict[str, Callable[[Message], Message]] = {
            "initialize": self.initialize,
            "session/new": self.begin_session,
            "session/load": self.load_session,
            "session/prompt": self.prompt,
        }

    def serve(self) -> None:
        for message in self._messages:
            call = self._calls.get(message["method"])
            if call is None:
                continue
            try:
                answer: Message = {"result": call(message["params"])}
            except Refused as refused:
                answer = {"error": {"code": -32602, "message": str(refused)}}
            self._write({"id": message["id"], **answer})

    def initialize(self, params: Message) -> Message:
        if "mute" in self._words:
            self._wait_for_the_end()
        if "greet" in self._words:
            os.write(1, b"Welcome to the agent!\n")
        version = 7 if "old" in self._words else params["protocolVersion"]
        abilities = {"loadSession": "no-load" not in self._words}
        return {"protocolVersion": version, "agentCapabilities": abilities}

    def begin_session(self, params: Message) -> Message:
        session = uuid.uuid4().hex
        self._prompts[session] = []
        return {"sessionId": session}

    def load_session(self, params: Message) -> Message:
        session = params["sessionId"]
        file = self._folder / session
        if not file.exists():
            raise Refused("unknown session")
        self._prompts[session] = json.loads(file.read_text(encoding="utf-8"))
        self._loaded = True
        self.say(session, "This was said long ago.")
        return {}

    def prompt(self, params: Message) -> Message:
        session, texts = params["sessionId"], [block["text"] for block in params["prompt"]]
        known = self._prompts[session]
        known.append(texts)
        (self._folder / session).write_text(json.dumps(known), encoding="utf-8")
        command = getattr(self, f"do_{texts[-1].replace(' ', '_')}", None)
        if command is None:
            self.say(session, texts[-1])
            return {"stopReason": "end_turn"}
        return {"stopReason": command(session) or "end_turn"}

    def say(self, session: str, text: str) -> None:
        update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
        self._write({"method": "session/update", "params": {"sessionId": session, "update": update}})

    def do_report(self, session: str) -> None:
        report = {
            "pid": os.getpid(),
            "session": session,
            "prompts": self._prompts[session],
            "loaded": self._loaded,
            "cwd": str(Path.cwd()),
            "environment": sorted(os.environ),
        }
        self.say(session, json.dumps(report))

    def do_wait(self, session: str) -> str:
        self.say(session, "waiting")
        for message in self._messages:
            if message["method"] == "session/cancel":
                break
        self.say(session, " no more")
        return "cancelled"

    def do_be_stubborn(self, session: str) -> None:
        self.say(session, "waiting")
        self._wait_for_the_end()

    def do_hang(self, session: str) -> None:
        self._wait_for_the_end()

    def do_die_once(self, session: str) -> None:
        mark = self._folder / "died"
        if not mark.exists():
            mark.touch()
            os._exit(3)
        self.do_report(session)

    def do_write_garbage(self, session: str) -> None:
        os.write(1, b"this is not JSON\n" * 50)
        self._wait_for_the_end()

    def do_write_a_long_line(self, session: str) -> None:
        self.say(session, "x" * 200_000)

    def do_flood(self, session: str) -> None:
        while True:
            self.say(session, "x" * 1_000)

    def do_have_children(self, session: str) -> None:
        """A child that outlives us and has the pipe `life` open, as we have."""
        self._life = open(self._folder / "life", "w")  # noqa: SIM115
        subprocess.Popen(["sleep", "600"], stdout=self._life, stderr=subprocess.DEVNULL)
        self.say(session, "I have a child.")

    def do_complain(self, session: str) -> None:
        for number in range(300):
            print(f"complaint {number} " + "!" * 5_000, file=sys.stderr)
        sys.stderr.flush()
        self.say(session, "I complained.")

    def _wait_for_the_end(self) -> NoReturn:
        """Whatever else is said."""
        for _ in self._messages:
            pass
        sys.exit()

    def _read(self) -> Iterator[Message]:
        for line in sys.stdin:
            yield json.loads(line)

    def _write(self, message: Message) -> None:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


if __name__ == "__main__":
    Agent(Path(sys.argv[1]), sys.argv[2:]).serve()
