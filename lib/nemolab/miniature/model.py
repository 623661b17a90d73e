"""The architecture in torch, for training on sequences: LatentMoE Nemotron-H (extra `train`).

Module and parameter names are those of the `nemotron_h` checkpoint, so `state_dict()` is the checkpoint. Decoding is
the engines' business: there is no cache here.
"""

# mypy: disable-error-code="misc"
# torch is untyped here: it is an extra, and its classes are Any where it is not installed.

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nemolab.miniature.config import ATTENTION, MAMBA, MOE, MiniatureConfig

CHUNK = 64  # tokens that the scan handles as one matrix product; any value gives the same result


class RMSNorm(nn.Module):
    """Root-mean-square norm in float32."""

    def __init__(self, size: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x.float(), self.weight.shape, self.weight, self.epsilon).to(x.dtype)


class GatedGroupNorm(nn.Module):
    """Mamba-2's output norm: gate by silu first, then normalise each group on its own."""

    def __init__(self, size: int, groups: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.groups, self.epsilon = groups, epsilon

    def forward(self, x: Tensor, gate: Tensor) -> Tensor:
        x = (x.float() * F.silu(gate.float())).unflatten(-1, (self.groups, -1))
        return F.rms_norm(x, x.shape[-1:], None, self.epsilon).flatten(-2) * self.weight


def segment_sums(x: Tensor) -> Tensor:
    """`out[..., i, j] = sum(x[..., j+1 .. i])` for j <= i, minus infinity above the diagonal."""
    total = x.cumsum(-1)
    sums = total[..., :, None] - total[..., None, :]
    seen = torch.ones(x.shape[-1], x.shape[-1], dtype=torch.bool, device=x.device).tril()
    return sums.masked_fill(~seen, -torch.inf)


def state_space_scan(x: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """The Mamba-2 recurrence `h = exp(dt a) h + dt b x; y = c h`, by chunks (Dao and Gu 2024, listing 1).

    Args:
        x: (batch, length, groups, heads, channels).
        dt: (batch, length, groups, heads), float32, positive.
        a: (groups, heads), negative.
        b, c: (batch, length, groups, state).

    Returns:
        y, shaped as x.
    """
    length, dtype = x.shape[1], x.dtype
    padding = -length % CHUNK
    if padding:
        x, dt = F.pad(x, (0, 0) * 3 + (0, padding)), F.pad(dt, (0, 0) * 2 + (0, padding))
        b, c = F.pad(b, (0, 0) * 2 + (0, padding)), F.pad(c, (0, 0) * 2 + (0, padding))
    x, dt, b, c = (t.unflatten(1, (-1, CHUNK)) for t in (x, dt, b, c))
    decay = (dt * a).permute(0, 1, 3, 4, 2)  # batch, chunk, group, head, token
    total = decay.cumsum(-1)
    update = x * dt[..., None].to(dtype)
    # Within a chunk: attention-like, with the decay between the two tokens as weight.
    scores = torch.einsum("bzlgn,bzsgn->bzgls", c, b)
    weights = (scores[:, :, :, None] * segment_sums(decay).exp()).to(dtype)
    inside = torch.einsum("bzghls,bzsghp->bzlghp", weights, update)
    # Across chunks: the state each chunk leaves, then the state each chunk finds.
    left = (total[..., -1:] - total).exp().permute(0, 1, 4, 2, 3)[..., None]
    states = torch.einsum("bzlgn,bzlghp->bzghpn", b, update * left.to(dtype))
    states = torch.cat([torch.zeros_like(states[:, :1]), states], dim=1)
    between = segment_sums(F.pad(total[..., -1].permute(0, 2, 3, 1), (1, 0))).exp()
    found = torch.einsum("bghzy,byghpn->bzghpn", between[..., :-1, :].to(dtype), states)
    outside = torch.einsum("bzlgn,bzghpn->bzlghp", c, found)
    y = inside + outside * total.exp().permute(0, 1, 4, 2, 3)[..., None].to(dtype)
    return y.flatten(1, 2)[:, :length]


class Mamba(nn.Module):
    """Mamba-2 mixer."""

    def __init__(self, shape: MiniatureConfig) -> None:
        super().__init__()
        heads, inner, conv = shape.mamba_num_heads, shape.mamba_inner_size, shape.conv_size
        self.shape = shape
        self.in_proj = nn.Linear(shape.hidden_size, inner + conv + heads, bias=False)
        self.conv1d = nn.Conv1d(conv, conv, shape.conv_kernel, groups=conv, padding=shape.conv_kernel - 1)
        step = torch.exp(torch.linspace(math.log(1e-3), math.log(1e-1), heads))
        self.dt_bias = nn.Parameter(step + torch.log(-torch.expm1(-step)))  # softplus(dt_bias) = step
        self.A_log = nn.Parameter(torch.log(torch.linspace(1, 16, heads)))
        self.D = nn.Parameter(torch.ones(heads))
        self.norm = GatedGroupNorm(inner, shape.n_groups, shape.layer_norm_epsilon)
        self.out_proj = nn.Linear(inner, shape.hidden_size, bias=False)

    def forward(self, u: Tensor) -> Tensor:
        s, groups = self.shape, self.shape.n_groups
        gate, xbc, dt = self.in_proj(u).split([s.mamba_inner_size, s.conv_size, s.mamba_num_heads], -1)
        xbc = F.silu(self.conv1d(xbc.transpose(1, 2))[..., : u.shape[1]]).transpose(1, 2)
        state = groups * s.ssm_state_size
        x, b, c = xbc.split([s.mamba_inner_size, state, state], -1)
        x = x.unflatten(-1, (groups, -1, s.mamba_head_dim))
        b, c = b.unflatten(-1, (groups, -1)), c.unflatten(-1, (groups, -1))
        dt = F.softplus(dt.float() + self.dt_bias).unflatten(-1, (groups, -1))
        y = state_space_scan(x, dt, -self.A_log.float().exp().view(groups, -1), b, c)
        y = y + x * self.D.view(groups, -1, 1).to(x.dtype)
        return self.out_proj(self.norm(y.flatten(2), gate).to(u.dtype))


class Attention(nn.Module):
    """Causal grouped-query attention without positions."""

    def __init__(self, shape: MiniatureConfig) -> None:
        super().__init__()
        q, kv = shape.num_attention_heads * shape.head_dim, shape.num_key_value_heads * shape.head_dim
        self.shape = shape
        self.q_proj = nn.Linear(shape.hidden_size, q, bias=False)
        self.k_proj = nn.Linear(shape.hidden_size, kv, bias=False)
        self.v_proj = nn.Linear(shape.hidden_size, kv, bias=False)
        self.o_proj = nn.Linear(q, shape.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (
            projection(x).unflatten(-1, (-1, self.shape.head_dim)).transpose(1, 2)
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        repeat = self.shape.num_attention_heads // self.shape.num_key_value_heads
        k, v = k.repeat_interleave(repeat, 1), v.repeat_interleave(repeat, 1)
        return self.o_proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class MLP(nn.Module):
    """Up, relu squared, down."""

    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        self.up_proj = nn.Linear(size, width, bias=False)
        self.down_proj = nn.Linear(width, size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.relu(self.up_proj(x)).square())


class Gate(nn.Module):
    """Sigmoid router: the top k by score plus balance bias, weighted by the scores alone, in float32."""

    e_score_correction_bias: Tensor

    def __init__(self, shape: MiniatureConfig) -> None:
        super().__init__()
        self.shape = shape
        self.weight = nn.Parameter(torch.empty(shape.n_routed_experts, shape.hidden_size))
        self.register_buffer("e_score_correction_bias", torch.zeros(shape.n_routed_experts))

    def forward(self, x: Tensor) -> Tensor:
        """Weight of every expert for every token: (batch, length, experts), zero where not chosen."""
        with torch.autocast(x.device.type, enabled=False):
            scores = F.linear(x.float(), self.weight.float()).sigmoid()
        chosen = (scores + self.e_score_correction_bias).topk(self.shape.num_experts_per_tok, -1).indices
        weights = scores.gather(-1, chosen)
        weights = weights / (weights.sum(-1, keepdim=True) + 1e-20) * self.shape.routed_scaling_factor
        spread = torch.zeros_like(scores).scatter(-1, chosen, weights)
        if self.training:  # balance without a loss: nudge each bias towards an even share
            share = (spread > 0).float().mean((0, 1))
            even = self.shape.num_experts_per_tok / self.shape.n_routed_experts
            self.e_score_correction_bias += 1e-3 * torch.sign(even - share)
        return spread


class MoE(nn.Module):
    """Routed experts behind latent projections, and one shared expert. Every expert runs; the gate weighs them."""

    def __init__(self, shape: MiniatureConfig) -> None:
        super().__init__()
        d, latent = shape.hidden_size, shape.moe_latent_size
        self.gate = Gate(shape)
        self.experts = nn.ModuleList(MLP(latent, shape.moe_intermediate_size) for _ in range(shape.n_routed_experts))
        self.shared_experts = MLP(d, shape.moe_shared_expert_intermediate_size)
        self.fc1_latent_proj = nn.Linear(d, latent, bias=False)
        self.fc2_latent_proj = nn.Linear(latent, d, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        weights, latent = self.gate(x).to(x.dtype), self.fc1_latent_proj(x)
        up = torch.cat([expert.up_proj.weight for expert in self.experts])
        down = torch.cat([expert.down_proj.weight for expert in self.experts], dim=1)
        inner = F.relu(F.linear(latent, up)).square().unflatten(-1, (len(self.experts), -1))
        routed = F.linear((inner * weights[..., None]).flatten(-2), down)
        return self.fc2_latent_proj(routed) + self.shared_experts(x)


class Block(nn.Module):
    """Pre-norm residual block around one mixer."""

    def __init__(self, letter: str, shape: MiniatureConfig) -> None:
        super().__init__()
        self.norm = RMSNorm(shape.hidden_size, shape.layer_norm_epsilon)
        self.mixer: nn.Module = {MAMBA: Mamba, ATTENTION: Attention, MOE: MoE}[letter](shape)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.mixer(self.norm(x))


class Backbone(nn.Module):
    """Embeddings, blocks, final norm."""

    def __init__(self, shape: MiniatureConfig) -> None:
        super().__init__()
        self.embeddings = nn.Embedding(shape.vocab_size, shape.hidden_size)
        self.layers = nn.ModuleList(Block(letter, shape) for letter in shape.hybrid_override_pattern)
        self.norm_f = RMSNorm(shape.hidden_size, shape.layer_norm_epsilon)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embeddings(ids)
        for layer in self.layers:
            x = layer(x)
        return self.norm_f(x)


class Miniature(nn.Module):
    """The language model: ids (batch, length) to logits (batch, length, vocabulary)."""

    def __init__(self, shape: MiniatureConfig) -> None:
        super().__init__()
        self.backbone = Backbone(shape)
        self.lm_head = nn.Linear(shape.hidden_size, shape.vocab_size, bias=False)
        residual = 0.02 / math.sqrt(len(shape.hybrid_override_pattern))
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=residual if module.out_features == shape.hidden_size else 0.02)
            if isinstance(module, Gate):
                nn.init.normal_(module.weight, std=0.02)
        nn.init.normal_(self.backbone.embeddings.weight, std=0.5)

    def forward(self, ids: Tensor) -> Tensor:
        return self.lm_head(self.backbone(ids))
