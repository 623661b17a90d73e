"""What the price of several settings means: findings, and the sentence for a stakeholder."""

from __future__ import annotations

from collections.abc import Sequence

from nemolab.core.finding import Finding, Severity
from nemolab.core.intervals import percent
from nemolab.longctx import arms_agree
from nemolab.longctx.arms import Measured, failures
from nemolab.longctx.arms_agree import Compared, Course
from nemolab.longctx.arms_plan import Planned
from nemolab.longctx.arms_rows import Point

_OFFSETS = 3  # named at most
_WHAT = {"settings": "other settings", "cache": "from the cache", "batch": "beside another request"}
_SUSPECT = {
    "settings": "the kernels of the settings that differ",
    "cache": "the prefix cache and the states that it keeps",
    "batch": "the kernels of mixed batches, and states that get mixed up",
}


def findings(plans: Sequence[Planned], arms: Sequence[Measured], rows: Sequence[Compared]) -> list[Finding]:
    """Failures, suspicious answers, and notes; where nothing was measured, what plan and lint refuse. All else that
    they say of the arms stands apart."""
    found = [finding for arm in arms for finding in failures(arm)]
    if not any(arm.state != "planned" for arm in arms):
        found += [finding for plan in plans for finding in plan.findings if _refused(plan, finding)]
    by_name = {plan.arm: plan for plan in plans}
    for arm in arms:
        found += _numbers(arm, by_name[arm.arm])
    for course in arms_agree.courses(rows):
        found += _of_course(course, by_name[course.arm])
    ties = [row for row in rows if row.verdict == "near tie"]
    if ties:
        text = f"{len(ties)} of {len(rows)} comparisons part at tokens that are nearly as likely: {ties[0].note}."
        found.append(Finding("X-ROUNDING", Severity.INFO, text, where=f"{ties[0].tokens:,} tokens, {ties[0].arm}"))
    found += _needles(arms)
    notes: dict[str, list[str]] = {}
    for arm in arms:
        for note in arm.asked.notes:
            notes.setdefault(note, []).append(arm.arm)
    return found + [Finding("X-NOTE", Severity.INFO, note, where=", ".join(who)) for note, who in notes.items()]


def _refused(plan: Planned, finding: Finding) -> bool:
    return finding.severity is Severity.ERROR and bool(plan.open_errors or plan.fits is False)


def broken_from(arm: Measured) -> int | None:
    """The shortest prompt that got an answer without numbers."""
    return min((point.tokens for point in arm.asked.points if point.broken), default=None)


def _numbers(arm: Measured, plan: Planned) -> list[Finding]:
    """Whether logits are numbers: NaN needs nothing to be compared with. Dummy weights cause it by themselves.

    vLLM 0.22.0 draws every parameter from +-0.001 (model_loader/weight_utils.py), also A of the Mamba heads, which its
    loader would have made negative (mamba_mixer2.py). With A = 0.001 and a step of softplus(0) = 0.693 a state grows by
    exp(0.000693) a token, and passes float32 after 127,908 tokens.
    """
    bad = broken_from(arm)
    if bad is None:
        return []
    lengths = [point.tokens for point in arm.asked.points if point.broken]
    if plan.without_weights:
        text = (
            f"{arm.arm}: no numbers at {' and '.join(f'{n:,}' for n in lengths)} tokens, as dummy weights make it: the "
            "state of a Mamba head whose A was drawn positive grows past float32 within some 128,000 tokens; trained "
            "heads forget. Times and memory are real."
        )
        return [Finding("X-NAN", Severity.INFO, text, "", "vLLM 0.22.0 source, mamba_mixer2.py", where=arm.arm)]
    good = max((p.tokens for p in arm.asked.points if p.said and not p.broken and p.tokens < bad), default=None)
    text = f"{arm.arm}: no numbers at {' and '.join(f'{n:,}' for n in lengths)} tokens: the engine computed NaN."
    if good is not None:
        near = arms_agree.offsets(plan.pitches, good, bad)[:_OFFSETS]
        text += f" At {good:,} they were numbers, with the same weights: length, or cache blocks further on, broke it."
        text += f" Between the two lie {'; '.join(near)}." if near else ""
    fix = (
        "do not serve prompts of that length so; ask lengths in between, another chunk size, no prefix cache, another "
        "release; report length and settings to the engine"
    )
    source = "state-spaces/mamba#1015, #1038; vllm-project/vllm#34865"
    return [Finding("X-NAN", Severity.ERROR, text, fix, source, where=arm.arm)]


def _needles(arms: Sequence[Measured]) -> list[Finding]:
    """Whether the answers hold what was hidden: one question a length, no proof, but a hint."""
    points = [(arm.arm, point) for arm in arms for point in arm.asked.points if point.decode_ms is not None]
    missed = [f"{name} at {point.tokens:,} tokens" for name, point in points if not point.found]
    if not missed:
        return []
    if len(missed) == len(points):
        text = "No answer holds its needle. Random weights find none, and agreement of theirs says little."
        return [Finding("X-NEEDLE", Severity.INFO, text)]
    text = f"{len(missed)} of {len(points)} answers lack their needle: {', '.join(missed)}."
    fix = "51_validate_long_context asks enough to say how often"
    return [Finding("X-NEEDLE", Severity.WARNING, text, fix)]


def _of_course(course: Course, plan: Planned) -> list[Finding]:
    if course.shape == "agrees":
        return []
    who = f"{course.arm}, {_WHAT[course.relation]}, against {course.against}"
    suspect = _SUSPECT[course.relation]
    if course.shape == "cliff":
        assert course.good is not None
        assert course.bad is not None
        near = arms_agree.offsets(plan.pitches, course.good, course.bad)[:_OFFSETS]
        text = (
            f"{who}: the same answers up to {course.good:,} tokens, other ones from {course.bad:,} on, without notice: "
            f"as an offset that overflows makes it, not a model. Suspect: {suspect}."
            + (f" Between the two lie {'; '.join(near)}." if near else "")
        )
        fix = "ask lengths in between to find the offset; serve with the settings that agree; report it to the engine"
        return [Finding("X-KERNEL", Severity.ERROR, text, fix, "state-spaces/mamba#1038, vllm#49041", where=course.arm)]
    if course.shape == "slope":
        text = (
            f"{who}: the answers drift apart with length, and differ from {course.bad:,} tokens on: rounding, or types."
        )
        fix = "52_compare_long_context says whether right answers are lost by it"
        return [Finding("X-SLOPE", Severity.WARNING, text, fix, where=course.arm)]
    where = "at every length" if course.shape == "everywhere" else f"at some lengths, first at {course.bad:,} tokens"
    if course.relation == "settings" and plan.other_types:
        text = f"{who}: other answers {where}; the arm computes in other types, so its numbers are others."
        fix = "52_compare_long_context says whether right answers are lost by it"
        return [Finding("X-TYPES", Severity.WARNING, text, fix, where=course.arm)]
    text = f"{who}: other answers {where}, beyond rounding. Suspect: {suspect}."
    fix = "change one setting at a time until the answers are the same; report it to the engine"
    return [Finding("X-OTHER", Severity.ERROR, text, fix, where=course.arm)]


def longest(arms: Sequence[Measured]) -> int | None:
    """The longest prompt that any arm gave a first token for."""
    return max((p.tokens for arm in arms for p in arm.asked.points if p.cold_s), default=None)


def fastest(arms: Sequence[Measured]) -> tuple[Measured, Point] | None:
    """The arm with the earliest first token at the longest length."""
    tokens = longest(arms)
    here = [(arm, p) for arm in arms for p in arm.asked.points if p.tokens == tokens and p.cold_s]
    return min(here, key=lambda pair: pair[1].cold_s or 0.0) if here else None


def soonest(plans: Sequence[Planned]) -> Planned | None:
    """The arm with the earliest planned first token at the longest length of all; None without a roofline."""
    longest_asked = max((plan.bounds[-1].tokens for plan in plans if plan.bounds), default=0)
    there = [plan for plan in plans if plan.bounds and plan.bounds[-1].tokens == longest_asked]
    return min(there, key=lambda plan: plan.bounds[-1].assumed_s, default=None)


def sentence(plans: Sequence[Planned], arms: Sequence[Measured], rows: Sequence[Compared]) -> str:
    """The page in one sentence."""
    best = fastest(arms)
    parts = [_time(plans, arms, *best)] if best else _planned(plans)
    if saving := _saving(arms):
        parts.append(saving)
    broken = [arm.arm for arm in arms if arm.failed]
    if broken:
        parts.append(f"{len(broken)} of {len(arms)} arms failed: {', '.join(broken)}")
    trained = {plan.arm for plan in plans if not plan.without_weights}
    if nan := [(bad, arm.arm) for arm in arms if arm.arm in trained and (bad := broken_from(arm)) is not None]:
        parts.append(f"no numbers (NaN) from {min(nan)[0]:,} tokens on with {' and '.join(name for _, name in nan)}")
    if rows:
        parts.append(_agreement(rows))
    return "; ".join(parts) + "."


def _time(plans: Sequence[Planned], arms: Sequence[Measured], arm: Measured, point: Point) -> str:
    plan = next(plan for plan in plans if plan.arm == arm.arm)
    seconds = point.cold_s or 0.0
    bound = plan.bound(point.tokens)
    share = f" ({percent(round(bound.share(seconds), 2))} of the peak)" if bound else ""
    step = f", then {point.decode_ms:.1f} ms a token" if point.decode_ms is not None else ""
    text = f"{point.tokens:,} tokens: first token after {seconds:,.{1 if seconds >= 10 else 2}f} s{share}{step}"
    others = [(a.arm, p.cold_s) for a in arms if a is not arm and (p := a.asked.at(point.tokens)) and p.cold_s]
    if not others:
        return text + (f", with {arm.arm}, the only arm that got there" if len(arms) > 1 else "")
    longer = ", ".join(f"{percent(round(took / seconds - 1, 2))} with {name}" for name, took in others)
    return f"{text}, fastest with {arm.arm}; longer by {longer}"


def _planned(plans: Sequence[Planned]) -> list[str]:
    last = soonest(plans)
    parts = ["Nothing was measured"]
    if last:
        bound = last.bounds[-1]
        parts.append(
            f"planned for {bound.tokens:,} tokens: first token after {bound.assumed_s:,.1f} s, "
            f"{bound.bound_s:,.1f} s at the full peak"
        )
    full = [plan.arm for plan in plans if plan.fits is False]
    parts.append(f"does not fit: {', '.join(full)}" if full else "every arm fits" if last else "no plan")
    if refused := [plan.arm for plan in plans if plan.open_errors and plan.fits is not False]:
        parts.append(f"errors in the launch of {', '.join(refused)}")
    return parts


def _saving(arms: Sequence[Measured]) -> str:
    """What the cache gives a second question, at the longest length where it gives anything."""
    warm = [(p.tokens, 1 - (p.again_s or 0.0) / p.cold_s, a.arm, p) for a in arms for p in a.asked.points
            if p.warm and p.cold_s and p.again_s]  # fmt: skip
    if not warm:
        return ""
    _, saved, arm, point = max(warm, key=lambda row: row[:2])
    return f"a second question saves {percent(round(saved, 3))} of the wait with {arm} (at {point.tokens:,} tokens)"


def _agreement(rows: Sequence[Compared]) -> str:
    held, longest_compared = arms_agree.agreed_to(rows), max(row.tokens for row in rows)
    if held == longest_compared:
        return f"all answers agree up to {held:,} tokens"
    first = next(row for row in sorted(rows, key=lambda row: row.tokens) if row.serious)
    start = f"answers agree up to {held:,} tokens and differ" if held else "answers differ"
    return f"{start} at {first.tokens:,} with {first.arm} ({_WHAT[first.relation]})"
