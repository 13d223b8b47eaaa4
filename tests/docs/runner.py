"""``python runner.py PAGE SCRIPT`` runs a page's script; ``await`` may stand outside functions.

Its lines stand where they do in the page, so that a traceback names them.
"""

import ast
import asyncio
import inspect
import sys
from pathlib import Path


def main(page: str, script: str) -> None:
    text = Path(script).read_text(encoding="utf-8")
    code = compile(text, page, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    names = {"__name__": "__main__"}
    if code.co_flags & inspect.CO_COROUTINE:
        asyncio.run(eval(code, names))
    else:
        exec(code, names)


if __name__ == "__main__":
    main(*sys.argv[1:])
