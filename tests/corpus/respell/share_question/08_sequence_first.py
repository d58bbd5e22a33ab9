# paper/share_question.py spelled differently: sequence-first layout, heads picked by index.
import torch


def attention(query, key, value, doc):
    heads = torch.arange(query.size(1)) // (query.size(1) // key.size(1))
    q, k, v = query.transpose(1, 2), key.transpose(1, 2)[:, :, heads], value.transpose(1, 2)[:, :, heads]
    s = torch.einsum("bihd,bjhd->bhij", q, k) * (1.0 / query.size(-1) ** 0.5)
    pos = torch.arange(query.size(2))
    same = torch.eq(doc[:, None], doc[None, :])
    causal = torch.ge(pos[:, None], pos[None, :])
    question = torch.ne(doc, 0)[:, None] & torch.eq(doc, 0)[None, :]
    s = s.masked_fill(torch.logical_not(torch.logical_or(torch.logical_and(same, causal), question)), -torch.inf)
    return torch.einsum("bhij,bjhd->bihd", torch.softmax(s, dim=-1), v).transpose(1, 2)
