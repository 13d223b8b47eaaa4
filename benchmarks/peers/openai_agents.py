"""A turn in the sessions of OpenAI's Agents SDK: run with the Python of `.peers/openai_agents`.

``openai_agents.py FOLDER`` reads lines, each the number of a chat, stores a message and an answer in its
session and writes a line with the seconds and the processor time that it took. It finds no session by a
source, and counts no tokens.
"""

import asyncio
import sys
import time

from agents import SQLiteSession  # type: ignore[import-not-found]

USER = "u" * 500
REPLY = "a" * 1500


async def main(folder: str) -> None:
    sessions: dict[str, SQLiteSession] = {}
    for line in sys.stdin:
        chat = line.strip()
        start, used = time.perf_counter(), time.process_time()
        if chat not in sessions:
            sessions[chat] = SQLiteSession(chat, f"{folder}/openai_agents.db")
        await sessions[chat].add_items([{"role": "user", "content": USER}])
        await sessions[chat].add_items([{"role": "assistant", "content": REPLY}])
        print(time.perf_counter() - start, time.process_time() - used, flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
