"""The process that holds the model: a script of its own, which loads the model's library and nothing of ours.

It takes one line of JSON (``model_path``, ``context_tokens``, ``threads``, ``token``), answers with one
(``address``, or ``error``), and serves chat completions on loopback, to those who have the token, until its
standard input closes: it never outlives the process that started it.
"""

import json
import os
import sys
import threading
from typing import Any, TextIO

import xllamacpp


def main() -> None:
    order = sys.stdin.readline()
    answers = _keep_output()
    threading.Thread(target=_end_with_input, daemon=True).start()
    try:
        server = _serve(json.loads(order))
    except (OSError, RuntimeError, ValueError) as error:
        _say(answers, error=str(error))
        return
    _say(answers, address=server.listening_address)
    threading.Event().wait()


def _keep_output() -> TextIO:
    """The standard output for our answers alone; whatever else is printed goes to the standard error."""
    kept = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return kept


def _end_with_input() -> None:
    while sys.stdin.read(1024):
        pass
    os._exit(0)


def _serve(order: dict[str, Any]) -> Any:
    params = xllamacpp.CommonParams()
    params.model.path = order["model_path"]
    params.n_ctx = order["context_tokens"]
    params.cpuparams.n_threads = order["threads"]
    params.cpuparams_batch.n_threads = order["threads"]
    params.n_parallel = 1
    params.n_gpu_layers = 0
    params.cache_ram_mib = 0
    params.verbosity = 0
    params.hostnames = ["127.0.0.1"]
    params.api_keys = [order["token"]]
    params.cors_origins = ""
    params.ui = False
    params.endpoint_slots = False
    params.offline = True
    return xllamacpp.Server(params)


def _say(answers: TextIO, **fields: str) -> None:
    print(json.dumps(fields), file=answers, flush=True)


if __name__ == "__main__":
    main()
