"""Parameters and results of the notebook `13_lint_launch`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from nemolab.core.contract import Params, Results, Unit
from nemolab.core.finding import Finding, Severity
from nemolab.lint import Context
from nemolab.lint.evaluate import Score

# A launch that circulates and cannot start: rounding without a float16 state.
_COMMAND = (
    "docker run --gpus all --ipc=host -p 8000:8000 vllm/vllm-openai:v0.22.0 "
    "nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-NVFP4 --tensor-parallel-size 4 --kv-cache-dtype fp8 "
    "--max-model-len 1M --swap-space 16 --enable-mamba-cache-stochastic-rounding --mamba-cache-philox-rounds 5 "
    "--enable-prefix-caching --reasoning-parser nemotron_v3 --tool-call-parser qwen3_coder"
)


class LintParams(Params):
    """The launch to check, what is known beside it, and the corpus to measure lint on."""

    command: str = Field(_COMMAND, description="pasted command, script, compose file, manifest or profile")
    engine: Literal["", "vllm", "sglang", "trtllm"] = Field("", description="engine, when the text does not tell")
    engine_version: str = Field("", description="engine version, when the text does not tell")
    model: str = Field("", description="model, when the text does not tell")
    gpu: str = Field("b200", description="kind of GPU; empty when it is not known")
    gpus: int = Field(4, ge=0, description="GPUs in all; 0 when it is not known")
    corpus: str = Field("tests/lint/corpus", description="folder with published.yaml and broken.yaml")

    def context(self) -> Context:
        """What is known beside the text."""
        return Context(
            self.engine or None, self.engine_version or None, self.model or None, self.gpu or None, self.gpus or None
        )


class LintResults(Results):
    """What lint says of the launch, and how good lint is on the corpus."""

    errors: Annotated[int, Unit("", "lower")] = Field(description="errors of the launch")
    warnings: Annotated[int, Unit("", "lower")] = Field(description="warnings of the launch")
    disputed: int = Field(description="findings on which sources disagree")
    not_checked: Annotated[int, Unit("", "lower")] = Field(description="checks that abstained: a fact is missing")
    published: int = Field(description="published commands in the corpus")
    broken: int = Field(description="broken commands in the corpus")
    wrong_errors: Annotated[int, Unit("", "equal")] = Field(description="errors that a command does not have")
    missed: Annotated[int, Unit("", "equal")] = Field(description="findings that should be there and are not")
    precision: Annotated[float, Unit("", "higher")] = Field(description="share of reported errors that are right")
    recall: Annotated[float, Unit("", "higher")] = Field(description="share of the expected findings that are there")
    rules: int = Field(description="codes that fired on the corpus")

    @classmethod
    def of(cls, findings: Sequence[Finding], score: Score) -> LintResults:
        """Totals of the launch's findings and of the corpus."""
        counts = {severity: sum(f.severity is severity for f in findings) for severity in Severity}
        return cls(
            errors=counts[Severity.ERROR],
            warnings=counts[Severity.WARNING],
            disputed=counts[Severity.DISAGREE],
            not_checked=counts[Severity.UNKNOWN],
            published=sum(v.kind == "published" for v in score.verdicts),
            broken=sum(v.kind == "broken" for v in score.verdicts),
            wrong_errors=score.wrong,
            missed=score.missed,
            precision=score.precision,
            recall=score.recall,
            rules=len({f.code for v in score.verdicts for f in v.findings}),
        )
