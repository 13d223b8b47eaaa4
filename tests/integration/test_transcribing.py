"""Programs that write down what is said in recordings."""

import json
import os
import sys
from pathlib import Path

import pytest

from frontdesk import errors
from frontdesk.files import CommandTranscriber

SECONDS = 20.0


def transcriber(program: str, seconds: float = SECONDS) -> CommandTranscriber:
    return CommandTranscriber((sys.executable, "-c", program), seconds)


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    (tmp_path / "voice.ogg").write_bytes(b"OggS hum")
    return tmp_path / "voice.ogg"


async def test_program_gets_the_path_and_its_output_is_the_text(recording: Path) -> None:
    program = """
import json, sys
told = json.load(sys.stdin)
print("some noise", file=sys.stderr)
print(json.dumps([told, sys.argv[1], open(sys.argv[1]).read(), "grüß\\0dich"]))
"""
    told, path, content, words = json.loads(await transcriber(program).transcribe(recording, "audio/ogg"))
    assert told == {"event": "transcribe", "path": str(recording), "kind": "audio/ogg"}
    assert (path, content) == (str(recording), "OggS hum")
    assert words.startswith("grüß")


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("import sys; sys.exit(3)", "what transcribes failed"),
        ("", "nothing was heard"),
        ("import os; os.kill(os.getpid(), 9)", "what transcribes failed"),
    ],
)
async def test_program_that_fails_is_told_without_its_words(recording: Path, program: str, why: str) -> None:
    with pytest.raises(errors.FileUnavailable) as refused:
        await transcriber(program).transcribe(recording, "audio/ogg")
    assert vars(refused.value)["why"] == why


async def test_program_that_takes_too_long_is_killed_with_all_that_it_started(recording: Path) -> None:
    program = """
import os, sys, time
if os.fork():
    open(sys.argv[1] + ".pid", "w").write(str(os.getpid()))
time.sleep(1000)
"""
    with pytest.raises(errors.FileUnavailable, match="it took more than 2 seconds"):
        await transcriber(program, seconds=2.0).transcribe(recording, "audio/ogg")
    pid = int(recording.with_suffix(".ogg.pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_endless_output_is_cut(recording: Path) -> None:
    program = "import sys\nfor _ in range(1000): sys.stdout.write('x' * 1000)"
    assert len(await transcriber(program).transcribe(recording, "audio/ogg")) == 64 * 1024


async def test_program_that_is_not_there_is_told(recording: Path) -> None:
    missing = CommandTranscriber(("/no/such/program",), SECONDS)
    with pytest.raises(errors.FileUnavailable, match="cannot be started"):
        await missing.transcribe(recording, "audio/ogg")
