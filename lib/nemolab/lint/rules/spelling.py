"""F-...: does the engine version's parser accept what is written, and does it read it as it was meant?

When the version is not known exactly, a launch is held against every schema it could be: what all refuse is an error,
what only some refuse is said to depend on the version.
"""

from __future__ import annotations

from collections.abc import Iterator

from nemolab.core.finding import Finding, Severity
from nemolab.lint import argv, history
from nemolab.lint.case import Case, Findings
from nemolab.lint.near import nearest
from nemolab.lint.registry import rule
from nemolab.lint.rules.doubt import with_doubt
from nemolab.lint.rules.values import value_findings
from nemolab.lint.schema import Schema

# Prefixes that name one thing and switch on another.
_MISLEADING = {"--enable-flashinfer"}


@rule("F", "flags: known, spelled out, with a value that the engine accepts", "vllm", "sglang", "trtllm")
def spelling(case: Case) -> Findings:
    if (
        case.schema is None
        or case.schemas is None
        or case.launch.entry in ("options file", "trtllm-build", "trtllm-server")
    ):
        return []
    if case.launch.entry == "vllm.entrypoints.api_server":
        return []  # another parser; R-ENTRY says so
    found = [*against(case.schema, case, case.reading)]
    if case.schemas.exact:
        return found
    return with_doubt(case, found, against)


def against(schema: Schema, case: Case, reading: argv.Reading) -> Iterator[Finding]:
    """Findings of one schema."""
    for problem in reading.problems:
        yield from _problem(schema, case, reading, problem)
    for option in reading.options:
        yield from _option(schema, case, option)
        yield from value_findings(schema, case, reading, option)
    yield from _duplicates(schema, case, reading)
    yield from _required(schema, case, reading)


def _at(case: Case, at: int) -> str | None:
    if 0 <= at < len(case.launch.words) and case.launch.words[at].line:
        return f"line {case.launch.words[at].line}"
    return f"line {case.launch.line}" if case.launch.line else None


def _problem(schema: Schema, case: Case, reading: argv.Reading, problem: argv.Problem) -> Iterator[Finding]:
    where = _at(case, problem.at)

    def finding(
        code: str, message: str, fix: str, source: str = schema.source, severity: Severity = Severity.ERROR
    ) -> Finding:
        return Finding(code, severity, message, fix, source, problem.word, where)

    match problem.kind:
        case "unknown" if case.launch.engine == "dynamo" and problem.word.startswith("--dyn-"):
            return  # Dynamo's own; R-PARSER looks at the parsers among them
        case "unknown":
            yield _unknown(schema, case, problem, where)
        case "ambiguous":
            past = history.FLAGS.get((schema.engine, problem.word))
            meant = " or ".join(problem.detail[:4]) + (
                f" and {len(problem.detail) - 4} more" if len(problem.detail) > 4 else ""
            )
            why = f"; {past.what}" if past else ""
            yield finding(
                "F-AMBIGUOUS",
                f"{problem.word} could be {meant} in {schema.label}: refused{why}",
                past.fix if past else f"write {problem.detail[0]} in full",
            )
        case "value":
            flag = problem.word
            off = (
                next((n for n in schema.spellings[flag][0].negations if n.startswith("--no-")), None)
                if flag in schema.spellings
                else None
            )
            fix = (
                f"write {off} to switch it off, {flag} alone to switch it on"
                if off
                else f"write {flag} alone, or leave it out"
            )
            yield finding(
                "F-BOOLVALUE", f"{flag} takes no value in {schema.label}, but {problem.detail[0]!r} follows", fix
            )
        case "missing":
            yield finding(
                "F-NARGS",
                f"{problem.word} needs a value in {schema.label} and has none",
                f"give {problem.word} its value",
            )
        case "model-first":
            yield finding(
                "F-NARGS",
                f"without the model as the first argument, `vllm serve` refuses --served-model-name ({schema.label})",
                "put the model before all options",
                "vLLM argparse_utils.py, parse_args",
            )
        case "extra":
            swallowed = next(
                (o for o in reading.options if o.flag.nargs in ("+", "*") and 0 <= o.at < problem.at), None
            )
            hint = f"; is it a value that {swallowed.spelled} should have had?" if swallowed else ""
            taken = (
                f": {schema.command} takes one model"
                if reading.positionals
                else f": {schema.command} takes options only"
            )
            fix = (
                "remove it, or write the option it belongs to"
                if reading.positionals
                else "name the model with --model-path"
            )
            yield finding("F-EXTRA", f"{problem.word!r} belongs to no option{taken}{hint}", fix)


def _unknown(schema: Schema, case: Case, problem: argv.Problem, where: str | None) -> Finding:
    word = problem.word
    past = history.FLAGS.get((schema.engine, word)) or history.FLAGS.get((schema.engine, word.replace("_", "-")))
    if past:
        code = "F-NEVER" if past.never else "R-DEPRECATED"
        return Finding(
            code,
            Severity.ERROR,
            f"{word} is unknown to {schema.label} ({past.what})",
            past.fix,
            f"{schema.source}; {past.source}",
            word,
            where,
        )
    if (turned := _respelled(schema, word)) and turned in schema.spellings:
        return Finding(
            "F-UNDERSCORE",
            Severity.ERROR,
            f"{schema.label} does not take {word}: it is spelled {turned}",
            f"write {turned}",
            schema.source,
            word,
            where,
        )
    if case.launch.engine == "dynamo" or not schema.complete:
        what = (
            "a Dynamo worker has options of its own" if case.launch.engine == "dynamo" else "this schema is incomplete"
        )
        return Finding(
            "F-UNKNOWN",
            Severity.UNKNOWN,
            f"{word} is not an option of {schema.label}; {what}: not checked",
            "check it against the tool's --help",
            schema.source,
            word,
            where,
        )
    if seen := history.seen_in(schema.engine, word):
        span = f"in {seen[0]}" if seen[0] == seen[1] else f"from {seen[0]} to {seen[1]}"
        fix = f"use a version that has it ({span}), or remove it"
        return Finding(
            "R-DEPRECATED",
            Severity.ERROR,
            f"{word} is unknown to {schema.label}; it is known {span}",
            fix,
            schema.source,
            word,
            where,
        )
    near = nearest(word, schema.spellings, 0.72)
    other = _other_engine(schema, word)
    fix = f"did you mean {near}?" if near else (f"it is a flag of {other}" if other else "remove it")
    if other and not near:
        fix += "; use this engine's own"
    return Finding("F-UNKNOWN", Severity.ERROR, f"{word} is unknown to {schema.label}", fix, schema.source, word, where)


def _respelled(schema: Schema, word: str) -> str | None:
    body = word.lstrip("-")
    return (
        f"--{body.replace('-', '_')}"
        if schema.engine == "trtllm"
        else f"--{body.replace('_', '-')}"
        if "_" in body
        else None
    )


def _other_engine(schema: Schema, word: str) -> str | None:
    from nemolab.lint.schema import ENGINES, LABELS, load, versions

    for engine in ENGINES:
        if engine != schema.engine and versions(engine):
            other = load(engine, versions(engine)[-1])
            if {word, word.replace("_", "-"), word.replace("-", "_").replace("__", "--", 1)} & set(other.spellings):
                return LABELS[engine]
    return None


def _option(schema: Schema, case: Case, option: argv.Option) -> Iterator[Finding]:
    where = _at(case, option.at)
    if option.prefix:
        past = history.FLAGS.get((schema.engine, option.spelled))
        if option.spelled in _MISLEADING:
            yield Finding(
                "F-PREFIX-WRONG",
                Severity.ERROR,
                f"{option.spelled} is no option of {schema.label}: its parser takes it "
                f"for {option.resolved} and switches that on silently",
                past.fix if past else f"write {option.resolved} if you mean it",
                schema.source,
                option.spelled,
                where,
            )
        else:
            yield Finding(
                "F-PREFIX",
                Severity.WARNING,
                f"{option.spelled} works only as a prefix of {option.resolved} in "
                f"{schema.label}: the next option with that start breaks it",
                f"write {option.resolved}",
                schema.source,
                option.spelled,
                where,
            )
    if option.flag.refused is not None:
        yield Finding(
            "R-DEPRECATED",
            Severity.ERROR,
            f"{option.spelled} is refused by {schema.label}: {option.flag.refused}",
            "follow what the engine says",
            schema.source,
            option.spelled,
            where,
        )
    elif option.flag.deprecated is not None and option.spelled not in _MISLEADING:
        said = option.flag.deprecated
        yield Finding(
            "R-DEPRECATED",
            Severity.WARNING,
            f"{option.spelled} is deprecated in {schema.label}" + (f": {said}" if said else ""),
            f"use {said}" if said.startswith("--") else "remove it or follow the notice",
            schema.source,
            option.spelled,
            where,
        )


def _duplicates(schema: Schema, case: Case, reading: argv.Reading) -> Iterator[Finding]:
    seen: dict[str, argv.Option] = {}
    for option in reading.options:
        first = seen.setdefault(option.flag.dest, option)
        if first is not option and (first.values, first.negative) != (option.values, option.negative):
            if first.dotted != option.dotted:
                message = f"{option.flag.name} is given both whole and by dotted keys: "
                f"one replaces the other in {schema.label}"
                fix = "put everything into one JSON value"
            else:
                message = f"{option.spelled} is given twice with different values: the last one wins in {schema.label}"
                fix = "keep one"
            yield Finding("F-DUP", Severity.WARNING, message, fix, schema.source, option.spelled, _at(case, option.at))


def _required(schema: Schema, case: Case, reading: argv.Reading) -> Iterator[Finding]:
    if reading.model_moved and case.launch.entry == "vllm serve" and not case.launch.image:
        yield Finding(
            "R-DEPRECATED",
            Severity.WARNING,
            "`vllm serve` wants the model as its first argument; --model is moved "
            f"there with a deprecation warning ({schema.label})",
            "write vllm serve MODEL ...",
            "vLLM argparse_utils.py, parse_args",
            "--model",
            _at(case, 0),
        )
    if case.launch.entry in ("nim", "image"):
        return
    if (
        schema.engine == "sglang"
        and not any(o.flag.dest in ("model_path", "config") for o in reading.options)
        and not any(p.kind == "missing" for p in reading.problems)
    ):
        yield Finding(
            "F-REQUIRED",
            Severity.ERROR,
            f"--model-path is required by {schema.label}",
            "add --model-path MODEL",
            schema.source,
            "--model-path",
            _at(case, 0),
        )
    if schema.engine == "trtllm" and not reading.positionals and case.launch.entry == "trtllm-serve":
        yield Finding(
            "F-REQUIRED",
            Severity.ERROR,
            "trtllm-serve needs the model as an argument",
            "write trtllm-serve MODEL ...",
            schema.source,
            "model",
            _at(case, 0),
        )
