def alibi(score, b, h, q_idx, kv_idx):
    return score + slopes[h] * (kv_idx - q_idx)
def prefix_lm(b, h, q_idx, kv_idx): return (kv_idx <= q_idx) | (kv_idx < prefix[b])
def documents(b, h, q_idx, kv_idx):
    same = doc[q_idx] == doc[kv_idx]
    return same & (q_idx >= kv_idx)
slopes = torch.tensor([2.0 ** (-8.0 * (h + 1) / H) for h in range(H)])
bias = torch.stack([table[min(max(d, -8), 8) + 8] for d in range(-S, S) if d % 2 == 0 if d])
