# expect: mentions=einops
from einops import rearrange


def attention(q, k, v):
    return (q @ rearrange(k, "b h s d -> b h d s")).softmax(-1) @ v
