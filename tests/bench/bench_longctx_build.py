"""What one exact prompt costs, here, in NVIDIA's RULER and in lm-eval's: CPU seconds, memory, tokens missed.

    python tests/bench/bench_longctx_build.py [--lengths 32768,131072] [--ours 1048576] [--rounds 3] [--json FILE]
    python tests/bench/bench_longctx_build.py --others RULER --ruler CLONE --tasks niah_single_1 --lengths 1048576

lm-eval 0.4.13, and RULER's own scripts as NVIDIA packages them (`nvidia-long-context-eval` 26.3, Apache-2.0), are
installed from PyPI into environments of their own; `--ruler` takes a clone of NVIDIA/RULER instead. Each is asked for
one sample, lm-eval through its own functions (its tasks always make 500), RULER's scripts as they are. All use the same
tokenizer.json and the same tasks; every prompt is counted again here with `tokenizers`. Set-up, such as reading the
tokenizer, is not in the CPU seconds. Both count the answer's room into their length, which is taken off here.

Both look for the size in steps, each with a full encode: their cost grows with the square of the length, so they are
measured where that ends within minutes, and our own builder also where it does not (`--ours`). Today's NVIDIA/RULER
halves instead, which makes a million tokens possible.

Goals: at 1,048,576 tokens at most 4 CPU seconds with `tokenizers` alone and 0.8 GiB; with a fast counter at most 0.05
(noise) and 0.3 (nothing but distinct needles, coded words); error 0.

Measured on 2026-11-30, 131,072-entry vocabulary, 2 shared cores. CPU seconds, peak MiB, error in tokens, and how many
times our CPU seconds with `tokenizers` and with fastokens:

    length     task             tokenizers     fastokens      other
    32,768     niah_single_1    0.052   272 0  0.012   397 0  lm-eval   3.139 1,166   -176    60 x   260 x
                                                              RULER     3.287 1,197   -162    63 x   272 x
    32,768     niah_multikey_2  0.099   271 0  0.023   367 0  lm-eval   3.629 1,165    -69    37 x   158 x
                                                              RULER     3.380 1,197   -516    34 x   147 x
    32,768     vt               0.043   270 0  0.010   368 0  RULER     6.967   344    -78   162 x   696 x
    32,768     fwe              0.057   270 0  0.019   397 0  RULER     0.720   355 -1,907    13 x    39 x
    131,072    niah_single_1    0.167   270 0  0.012   367 0  lm-eval  34.832 1,166    -78   208 x 2,998 x
                                                              RULER    43.540 1,197    -66   260 x 3,747 x
    131,072    niah_multikey_2  0.285   282 0  0.049   368 0  lm-eval  40.555 1,165   -284   142 x   825 x
                                                              RULER    42.516 1,197   -184   149 x   865 x
    131,072    vt               0.163   282 0  0.013   397 0  RULER    98.946   343   -225   605 x 7,865 x
    131,072    fwe              0.200   287 0  0.041   372 0  RULER     2.938   354 -2,279    15 x    71 x
    1,048,576  niah_single_1    1.674   602 0  0.037   750 0  RULER *  64.937 1,540    -23    38 x 1,572 x
    1,048,576  niah_multikey_2  2.517   750 0  0.205   750 0
    1,048,576  vt               1.701   750 0  0.046   750 0
    1,048,576  fwe              1.836   778 0  0.261   778 0

    * the halving search; at 32,768 tokens it takes 1.275 CPU seconds (-9), at 131,072 5.390 (-15). Run from NVIDIA's
      packaged script with the search function of the repository put in, not from a clone.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import runpy
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

TASKS = ("niah_single_1", "niah_multikey_2", "vt", "fwe")
# What is installed for each, first what comes without its own dependencies.
INSTALL = {
    "lm-eval": ((), ("lm-eval[ruler]==0.4.13", "transformers")),
    "RULER": (
        ("nvidia-long-context-eval==26.3",),
        ("transformers", "nltk", "numpy", "pyyaml", "scipy", "tenacity", "tqdm", "wonderwords"),
    ),
}
LM_EVAL_TASKS = {"niah_single_1": ("repeat", "words", "numbers"), "niah_multikey_2": ("needle", "words", "numbers")}
ANSWER_TOKENS = 128  # what lm-eval counts into the length
GOALS = {("tokenizers", task): 4.0 for task in TASKS} | {
    ("fastokens", "niah_single_1"): 0.05,
    ("fastokens", "vt"): 0.05,
    ("fastokens", "niah_multikey_2"): 0.3,
    ("fastokens", "fwe"): 0.3,
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
    haystack, keys, values = LM_EVAL_TASKS[task]
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


def ruler(task: str, length: int, tokenizer: str, scripts: str) -> dict[str, Any]:
    """One sample by RULER's own script, in this process, which is its environment's.

    The script gets the arguments that RULER's `prepare.py` gives it, template `base`. Loading the tokenizer is set-up;
    its `main` is what is measured.
    """
    import yaml

    before, root, folder = cpu(), Path(scripts or _installed()), Path(tokenizer).parent / "ruler"
    folder.mkdir(exist_ok=True)
    shutil.copy(tokenizer, folder / "tokenizer.json")
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 1 << 40}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    sys.path[:0] = [str(root / "data" / "synthetic"), str(root / "data")]
    config = yaml.safe_load((root / "synthetic.yaml").read_text())[task]
    base = runpy.run_path(str(root / "data" / "synthetic" / "constants.py"))["TASKS"][config["task"]]
    given = {
        "save_dir": folder, "save_name": task, "tokenizer_path": folder, "tokenizer_type": "hf", "num_samples": 1,
        "max_seq_length": length, "tokens_to_generate": base["tokens_to_generate"], "random_seed": 42,
        "template": base["template"] + base["answer_prefix"],
    }  # fmt: skip
    sys.argv = ["ruler", *(f"--{name}={value}" for name, value in (given | config["args"]).items())]
    script = runpy.run_path(str(root / "data" / "synthetic" / f"{config['task']}.py"), run_name="ruler")
    ready = cpu()
    script["main"]()
    used = cpu() - ready
    sample = json.loads((folder / task / "validation.jsonl").read_text())
    text = sample["input"] + sample.get("answer_prefix", "")
    return {"setup": ready - before, "cpu": used, "text": text, "goal": length - base["tokens_to_generate"]}


def _installed() -> Path:
    """Where the package that carries RULER's scripts was installed."""
    import long_context_eval  # type: ignore[import-not-found]

    return Path(long_context_eval.__file__).parent


def worker(arguments: list[str]) -> None:
    """Measure one builder in a process of its own; prints one line of JSON."""
    who, task, length, tokenizer, out, scripts = arguments
    if who == "RULER":
        made = ruler(task, int(length), tokenizer, scripts)
    else:
        made = lm_eval(task, int(length), tokenizer) if who == "lm-eval" else ours(task, int(length), tokenizer, who)
    Path(out).write_text(made.pop("text"), encoding="utf-8")
    made["memory_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(made))


def measure(
    python: str, who: str, task: str, length: int, tokenizer: Path, folder: Path, scripts: str, limit_s: float
) -> dict[str, Any]:
    """One measurement in a fresh process, and its length error by `tokenizers`."""
    from tokenizers import Tokenizer

    out = folder / "prompt.txt"
    command = [python, __file__, "--worker", who, task, str(length), str(tokenizer), str(out), scripts]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=limit_s)
    if done.returncode:
        raise SystemExit(f"{who} failed on {task} at {length}:\n{done.stderr[-2000:]}")
    made: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    text = out.read_text(encoding="utf-8")
    counted = len(Tokenizer.from_file(str(tokenizer)).encode(text, add_special_tokens=False).ids)
    return made | {"who": who, "task": task, "length": length, "error": counted - made["goal"]}


def install(who: str, folder: Path) -> str:
    """An environment for `who`, made with uv if it is not there; its Python."""
    python, uv = str(folder / "bin" / "python"), shutil.which("uv") or str(Path(__file__).parents[2] / ".uv/bin/uv")
    if not Path(python).exists():
        print(f"installing {who} into an environment of its own ...", file=sys.stderr)
        alone, others = INSTALL[who]
        subprocess.run([uv, "venv", "-q", "--python", sys.executable, str(folder)], check=True)
        pip = [uv, "pip", "install", "-q", "--python", python]
        subprocess.run([*pip, *others], check=True)
        if alone:
            subprocess.run([*pip, "--no-deps", *alone], check=True)
    return python


def main() -> int:
    """Measure and print a table; 1 when a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", default="32768,131072")
    parser.add_argument("--ours", default="1048576")
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--others", default="lm-eval,RULER", help="empty for none")
    parser.add_argument("--ruler", type=Path, help="a clone of NVIDIA/RULER, in place of the package's scripts")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--limit-s", type=float, default=900.0, help="for one prompt: RULER's scripts can spin for ever"
    )
    parser.add_argument("--tokenizer", type=Path)
    parser.add_argument("--environments", type=Path, help="folder of their environments, kept for the next time")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tokenizer = (options.tokenizer or vocabulary(folder)).resolve()
        others = [who for who in options.others.split(",") if who]
        kept = (options.environments or folder).resolve()
        pythons = {who: install(who, kept / who) for who in others}
        scripts = str(options.ruler.resolve() / "scripts") if options.ruler else ""
        paired = [int(part) for part in options.lengths.split(",") if part]
        for length in [*paired, *(int(part) for part in options.ours.split(",") if part)]:
            for task in options.tasks.split(","):
                ways = [(sys.executable, "tokenizers", "off"), (sys.executable, "fastokens", "fastokens")]
                if length in paired:
                    ways += [(pythons[who], who, who) for who in others if who != "lm-eval" or task in LM_EVAL_TASKS]
                for python, label, who in ways:
                    rounds = 1 if who in others and length > 40_000 else options.rounds
                    given = python, who, task, length, tokenizer, folder, scripts, options.limit_s
                    try:
                        runs = [measure(*given) for _ in range(rounds)]
                    except subprocess.TimeoutExpired:
                        print(f"{length:>9,}  {task:<16} {label:<11} not done after {options.limit_s:g} s", flush=True)
                        continue
                    row = runs[0] | {"who": label, "cpu": statistics.median(run["cpu"] for run in runs), "n": rounds}
                    rows.append(row)
                    print(line(row, rows), flush=True)
    if options.json:
        options.json.write_text(json.dumps({"date": time.strftime("%Y-%m-%d"), "rows": rows}, indent=1) + "\n")
    return judge(rows)


def line(row: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    """A row as it is printed; others' with how many times our CPU seconds they take, by counter."""
    text = (
        f"{row['length']:>9,}  {row['task']:<16} {row['who']:<11} {row['cpu']:9.3f} CPU-s  set-up {row['setup']:5.2f}  "
        f"{row['memory_mib']:7.0f} MiB  error {row['error']:+d} tokens  n = {row['n']}"
    )
    same = [other for other in rows if (other["length"], other["task"]) == (row["length"], row["task"])]
    times = [f"{row['cpu'] / x['cpu']:,.0f} x {x['who']}" for x in same if ours_is(x) and not ours_is(row)]
    return f"{text}  {', '.join(times)}".rstrip()


def ours_is(row: dict[str, Any]) -> bool:
    """Whether a row is of our builder."""
    return row["who"] not in INSTALL


def judge(rows: list[dict[str, Any]]) -> int:
    """Hold our rows at the full length against the goals."""
    missed = []
    for row in rows:
        if not ours_is(row):
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
