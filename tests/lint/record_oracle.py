# ruff: noqa: E501  tables, one entry a line
"""Records what an engine's real parser makes of many command lines: the oracle of `test_argv.py`.

`python tests/lint/record_oracle.py vllm 0.22.0 FOLDER PYTHON` where FOLDER holds the unpacked wheel and PYTHON is an
interpreter with the light packages of `nemolab.lint.extract.build`. Run once a version; the result is committed.
"""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
from pathlib import Path

from nemolab.lint.extract import build
from nemolab.lint.schema import Flag, Schema, load

# Samples that documents and people use; every one is recorded for every version.
FIXED: dict[str, list[str]] = {
    "vllm": [
        "m --kv-cache-dtype fp16", "m --kv-cache-dtype fp8", "m --mamba-ssm-cache-dtype fp16", "m --dtype fp16",
        "m --dtype half", "m --disable-prefix-caching", "m --disable-log-requests", "m --mamba-cache-mode all",
        "m --mamba-cache-mode align", "m --device cuda", "m --task generate", "m --model-loader-extra-config nonjson",
        "m --speculative-config {bad", "m --moe-backend flashinfer-trtllm", "m --moe-backend FLASHINFER_CUTLASS",
        "m --enable-reasoning", "m --num-scheduler-steps 8", "m --swap-space 16", "m --awq-ckpt-path /x",
        "m --tensor-par 2", "m --tp 2", "m -tp 2", "m -pp=2", "m -O3", "m -O=2", "m -O 1", "m -O0", "m --max-model-len 1M",
        "m --max-model-len 1m", "m --max-model-len 32k", "m --max-model-len 32K", "m --max-model-len auto",
        "m --max-model-len -1", "m --max-model-len 1.5K", "m --max-model-len 25.6k", "m --max-model-len 1Mi",
        "m --max-num-batched-tokens 16k", "m --max-num-seqs 1k", "m --enable-chunked-prefill False",
        "m --no-enable-chunked-prefill", "m --enable_prefix_caching", "m --gpu_memory_utilization 0,9",
        "m --gpu-memory-utilization=0.9", "--model m --port 8001", "--model=m -tp 2", "--port 8001 m",
        "--served-model-name x m", "m --served-model-name x y", "--served-model-name x", "m extra", "m --port",
        "m --compilation-config {\"cudagraph_mode\":\"FULL\"}", "m -cc.mode 0", "m -cc.cudagraph_mode FULL_DECODE_ONLY",
        "m --compilation-config {\"nope\":1}", "m --speculative-config.method mtp "
        "--speculative-config.num_speculative_tokens 3",
        "m --kernel_config.enable_flashinfer_autotune false", "m --kv-transfer-config {\"kv_role\":\"bad\"}",
        "m --limit-mm-per-prompt.image 2", "m --port 80a", "m --api-server-count 2 --headless", "m --middleware a --middleware b",
        "m --enable-auto", "m --trust", "m --max-num-seq 4", "m --max-num 4", "m -- x", "m -q awq", "m --quantization fp4",
        "m --optimization-level 3", "m --config-format hf", "m --load-format instanttensor", "m -sc {\"method\":\"mtp\"}",
        "m --hf-overrides {\"a\":1}", "m --hf-overrides text", "m --root-path --port 1", "m --seed -1", "m --seed -x",
    ],
    "sglang": [
        "--model-path m --enable-flashinfer", "--model-path m --disable-flashinfer", "--model-path m --kv-cache-dtype fp8",
        "--model-path m --kv-cache-dtype fp8_e4m3", "--model-path m --mamba-scheduler-strategy extra_buffer",
        "--model-path m --mamba-radix-cache-strategy extra_buffer", "--model-path m --cuda-graph-max-bs 32",
        "--model-path m --disable-cuda-graph", "--model-path m --disable-piecewise-cuda-graph",
        "--model-path m --enable-mamba-cache-stochastic-rounding", "--model-path m --speculative-algorithm NOPE",
        "--model-path m --json-model-override-args notjson", "--model-path m --enable-ep-moe", "--model m --tp 8",
        "--model m --tp_size 8", "--model m --tp-size 8", "--model m --mem-frac 0.9", "--model m --ep 4", "--model m --pp 2",
        "--model m --context-length 1M", "--model m --context-length 1Mi", "--model m --context-length 32k",
        "--model m --context-length 1m", "--model m --reasoning-parser nano_v3", "--model m --reasoning-parser nemotron_3",
        "--tp-size 8", "m --tp-size 8", "--model m extra", "--model m --trust-remote-code false", "--model m --dp 2",
        "--model m --served-model-name a b", "--model m --port=1", "--model m --port x", "--model m --chunked-prefill-size -1",
        "--model m --attention-backend trtllm_mha", "--model m --log-level-http", "--model m --enable-metrics --enable-metrics",
    ],
}  # fmt: skip


def main() -> None:
    engine, version, folder, python = sys.argv[1:5]
    schema = load(engine, version)
    rng = random.Random(f"{engine} {version}")
    lines = [text.split(" ") for text in FIXED[engine]]
    lines += [sample(schema, rng) for _ in range(500)]
    done = subprocess.run(
        [python, "-B", str(Path(build.__file__).with_name("probe.py")), engine, folder, "--parse"],
        input=json.dumps(lines), capture_output=True, text=True, check=True,
    )  # fmt: skip
    answers = json.loads(done.stdout)
    rows = [{"argv": argv, **answer} for argv, answer in zip(lines, answers, strict=True)]
    raw = json.dumps({"engine": engine, "version": version, "rows": rows}, separators=(",", ":")).encode()
    path = Path(__file__).with_name("oracle") / f"{engine}-{version}.json.gz"
    path.write_bytes(gzip.compress(raw, 9, mtime=0))
    wrong = sum("error" in row for row in rows)
    print(f"{path.name}: {len(rows)} lines, {wrong} refused, {len(path.read_bytes())} bytes")


def sample(schema: Schema, rng: random.Random) -> list[str]:
    """A command line of one to four options, spelled rightly or in the ways that people get wrong."""
    flags = [f for f in schema.flags.values() if not f.positional and f.name != "--help"]
    words: list[str] = []
    for flag in rng.sample(flags, rng.randint(1, 4)):
        words += option(flag, rng)
    model = ["m"] if schema.engine == "vllm" else ["--model-path", "m"]
    roll = rng.random()
    return [*model, *words] if roll < 0.85 else [*words, *model] if roll < 0.95 else words


def option(flag: Flag, rng: random.Random) -> list[str]:
    name = rng.choice([flag.name, flag.name, *flag.aliases, *flag.negations])
    roll = rng.random()
    if roll < 0.12:
        name = name.replace("-", "_").replace("__", "--", 1)
    elif roll < 0.27 and len(name) > 6:
        name = name[: rng.randint(5, len(name) - 1)]
    elif roll < 0.31:
        name += rng.choice(["s", "-x", "_size"])
    if flag.nargs == 0:
        return [name, *rng.choice([[]] * 8 + [["true"], ["False"]])]
    value = some_value(flag, rng)
    if rng.random() < 0.25:
        return [f"{name}={value}"]
    if rng.random() < 0.05:
        return [name]
    many = rng.randint(1, 3) if flag.nargs in ("+", "*") else 1
    return [name, *([value] * many)]


def some_value(flag: Flag, rng: random.Random) -> str:
    kind = flag.type or "str"
    if rng.random() < 0.15:
        return rng.choice(["x", "", "None", "1M", "1k", "-3", "0.5", "{}", "fp8", "true"])
    if flag.choices:
        return rng.choice(flag.choices)
    if "human_int" in kind:
        return rng.choice(["1024", "1k", "1K", "2M", "2m", "1.5k", "1Mi", "4Ki"])
    if "int" in kind:
        return rng.choice(["0", "1", "8", "4096", "-1"])
    if "float" in kind:
        return rng.choice(["0.5", "1", "2e-3", "-0.25"])
    if "object" in kind or "json" in kind or "dict" in kind:
        return rng.choice(["{}", '{"a":1}', "[1]", "{bad", '{"enabled":true}'])
    return rng.choice(["auto", "a", "a/b", "text"])


if __name__ == "__main__":
    main()
