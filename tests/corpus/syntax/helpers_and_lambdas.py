# Everything that a specification may define on its way.
soft = lambda x, cap=50.0: cap * (x / cap).tanh()
scale_of = (lambda d: d ** -0.5)


def repeat(x, n): return x.repeat_interleave(n, dim=1)


def attention(q, k, v, cap: float = 50.0, /, groups: int = 1, *rest, causal=True, **options) -> "torch.Tensor":
    assert q.shape[1] % groups == 0, f"heads {q.shape[1]} / {groups}"
    k, v = (repeat(x, groups) for x in (k, v))
    s = soft(q @ k.mT * scale_of(q.shape[-1]), cap)
    s = s if not causal else s.tril()
    return (s.softmax(-1) @ v)[..., : v.shape[-1]]
