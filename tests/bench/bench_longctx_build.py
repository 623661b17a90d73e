"""What one exact prompt costs, here and in lm-eval's RULER generator: CPU seconds, memory, tokens missed.

    python tests/bench/bench_longctx_build.py [--lengths 32768,131072] [--ours 1048576] [--rounds 3] [--json FILE]

lm-eval 0.4.13 is installed from PyPI into an environment of its own and asked, through its own functions, for one
sample (its tasks always make 500). Both use the same tokenizer.json and the same task; every prompt is counted again
here with `tokenizers`. lm-eval counts 128 tokens of answer into its length and looks for the size in steps of 25 units,
each with a full encode: its cost grows with the square of the length, so it is measured where that ends within minutes,
and our own builder also where it does not (`--ours`).

Goals: at 1,048,576 tokens at most 4 CPU seconds with `tokenizers` alone and 0.8 GiB; with a fast counter at most 0.05
(noise) and 0.3 (nothing but distinct needles); error 0.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import Any

LM_EVAL = ("lm-eval[ruler]==0.4.13", "transformers")
TASKS = {"niah_single_1": ("repeat", "words", "numbers"), "niah_multikey_2": ("needle", "words", "numbers")}
ANSWER_TOKENS = 128  # what lm-eval counts into the length
GOALS = {("tokenizers", task): 4.0 for task in TASKS} | {
    ("fastokens", "niah_single_1"): 0.05,
    ("fastokens", "niah_multikey_2"): 0.3,
}


def cpu() -> float:
    """CPU seconds of this process so far, all threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def ours(task: str, length: int, tokenizer: str, fast: str) -> dict[str, Any]:
    """One prompt by our builder, in this process."""
    from nemolab.longctx import Builder, Counter, tasks

    before = cpu()
    builder = Builder(Counter(Path(tokenizer), fast))  # type: ignore[arg-type]
    ready = cpu()
    prompt = builder.build(tasks.make(task, 1, (0.5,), 1), length)[0]
    return {"setup": ready - before, "cpu": cpu() - ready, "text": prompt.text, "goal": length}


def lm_eval(task: str, length: int, tokenizer: str) -> dict[str, Any]:
    """One sample by lm-eval's generator, in this process, which is its environment's."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    before = cpu()
    from lm_eval.tasks.ruler import niah_utils, prepare_niah  # type: ignore[import-not-found]
    from transformers import PreTrainedTokenizerFast

    counted = PreTrainedTokenizerFast(tokenizer_file=tokenizer, model_max_length=1 << 40)
    haystack, keys, values = TASKS[task]
    ready = cpu()
    (sample,) = prepare_niah.generate_samples(
        prepare_niah.get_haystack(type_haystack=haystack),
        max_seq_length=length,
        template=niah_utils.TEMPLATE,
        type_haystack=haystack,
        type_needle_k=keys,
        type_needle_v=values,
        num_samples=1,
        tokens_to_generate=ANSWER_TOKENS,
        TOKENIZER=counted,
    )
    return {"setup": ready - before, "cpu": cpu() - ready, "text": sample["input"], "goal": length - ANSWER_TOKENS}


def worker(arguments: list[str]) -> None:
    """Measure one builder in a process of its own; prints one line of JSON."""
    who, task, length, tokenizer, out = arguments
    made = lm_eval(task, int(length), tokenizer) if who == "lm-eval" else ours(task, int(length), tokenizer, who)
    Path(out).write_text(made.pop("text"), encoding="utf-8")
    made["memory_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(made))


def measure(python: str, who: str, task: str, length: int, tokenizer: Path, folder: Path) -> dict[str, Any]:
    """One measurement in a fresh process, and its length error by `tokenizers`."""
    from tokenizers import Tokenizer

    out = folder / "prompt.txt"
    command = [python, __file__, "--worker", who, task, str(length), str(tokenizer), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    if done.returncode:
        raise SystemExit(f"{who} failed on {task} at {length}:\n{done.stderr[-2000:]}")
    made: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    text = out.read_text(encoding="utf-8")
    counted = len(Tokenizer.from_file(str(tokenizer)).encode(text, add_special_tokens=False).ids)
    return made | {"who": who, "task": task, "length": length, "error": counted - made["goal"]}


def install(folder: Path) -> str:
    """lm-eval's environment, made if it is not there; its Python."""
    python = str(folder / "bin" / "python")
    if not Path(python).exists():
        print("installing lm-eval into an environment of its own ...", file=sys.stderr)
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *LM_EVAL], check=True, stderr=subprocess.DEVNULL)
    return python


def main() -> int:
    """Measure and print a table; 1 when a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", default="32768,131072")
    parser.add_argument("--ours", default="1048576")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokenizer", type=Path)
    parser.add_argument("--environment", type=Path, help="folder of lm-eval's environment, kept for the next time")
    parser.add_argument("--without-lm-eval", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tokenizer = (options.tokenizer or vocabulary(folder)).resolve()
        theirs = "" if options.without_lm_eval else install((options.environment or folder / "lm-eval").resolve())
        paired = [int(part) for part in options.lengths.split(",") if part]
        for length in [*paired, *(int(part) for part in options.ours.split(",") if part)]:
            for task in TASKS:
                ways = [(sys.executable, "tokenizers", "off"), (sys.executable, "fastokens", "fastokens")]
                ways += [(theirs, "lm-eval", "lm-eval")] if theirs and length in paired else []
                for python, label, who in ways:
                    rounds = 1 if who == "lm-eval" and length > 40_000 else options.rounds
                    runs = [measure(python, who, task, length, tokenizer, folder) for _ in range(rounds)]
                    row = runs[0] | {"who": label, "cpu": statistics.median(run["cpu"] for run in runs), "n": rounds}
                    rows.append(row)
                    print(
                        f"{length:>9,}  {task:<16} {label:<11} {row['cpu']:9.3f} CPU-s  set-up {row['setup']:5.2f}  "
                        f"{row['memory_mib']:7.0f} MiB  error {row['error']:+d} tokens  n = {rounds}",
                        flush=True,
                    )
    if options.json:
        options.json.write_text(json.dumps({"date": time.strftime("%Y-%m-%d"), "rows": rows}, indent=1) + "\n")
    return judge(rows)


def judge(rows: list[dict[str, Any]]) -> int:
    """Hold our rows at the full length against the goals."""
    missed = []
    for row in rows:
        if row["who"] == "lm-eval":
            continue
        if row["error"]:
            missed.append(f"{row['who']} misses the length of {row['task']} by {row['error']}")
        if row["length"] == 1 << 20 and row["cpu"] > GOALS[row["who"], row["task"]]:
            missed.append(f"{row['who']} takes {row['cpu']:.2f} CPU-s for {row['task']}")
        if row["memory_mib"] > 0.8 * 1024:
            missed.append(f"{row['who']} takes {row['memory_mib']:.0f} MiB for {row['task']}")
    print("\n".join(missed) if missed else "all goals met")
    return 1 if missed else 0


def vocabulary(folder: Path) -> Path:
    """The 131,072-entry tokenizer of mistral-common."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
    from vocabularies import tekken

    path = folder / "tekken.json"
    tekken().save(str(path))
    return path


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        worker(sys.argv[2:])
    else:
        sys.exit(main())
