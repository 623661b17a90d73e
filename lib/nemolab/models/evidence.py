"""How a fact is known. Every number of the catalogue carries it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Evidence(StrEnum):
    """Kinds of evidence, best first."""

    MEASURED = "measured"
    CODE = "code"  # read in a repository at a commit
    DOCUMENT = "document"  # a vendor's page
    ISSUE = "issue"  # excerpt of an issue or pull request
    THIRD_PARTY = "third party"  # a copy or a community file
    DERIVED = "derived"  # arithmetic from the above
    GUESS = "guess"  # no rule may depend on it


@dataclass(frozen=True, slots=True)
class Source:
    """Where a fact comes from."""

    what: str  # the fact in a few words
    where: str  # document or repository, with version, commit or date
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A question that authoritative sources answer differently. `arithmetic` is what the numbers say, if they can."""

    question: str
    answers: tuple[tuple[str, str], ...]  # (answer, who)
    arithmetic: str = ""


# Sources that are cited again and again, with the commit or date they were read at.
AIC = "ai-dynamo/aiconfigurator 095f58a5 (2026-08-21), aic-core/src/aiconfigurator_core/model_configs"
COOK = "NVIDIA-NeMo/Nemotron e27b3713 (2026-08-21), usage-cookbook"
REC = "vllm-project/recipes 8959cf64 (2026-08-21)"
MB = "NVIDIA-NeMo/Megatron-Bridge 067f987d (2026-08-22)"
CARD = "copy of the Hugging Face card of Nemotron 3 Ultra BF16, 2026-06"
REPORT = "Nemotron 3 Ultra technical report, by way of NVIDIA-NeMo/Nemotron e27b3713 (2026-08-21)"
NIM = "NVIDIA NIM for LLMs, Nemotron 3 Ultra, 2.0.6 support matrix"
SGL = "sgl-project/sglang cookbook page Nemotron3-Ultra 087e17d8"
TRT = "NVIDIA/TensorRT-LLM deployment guide 30d2c50c"
VLLM = "vLLM 0.22.0 wheel"
H200 = "measured: vLLM 0.22.0 on one NVIDIA H200, 2026-11"
