# mask
# key ranges: closed form
# table over the distance of query and key
# bias: one value far from the diagonal
# score: scale and bias
# rows without keys give NaN
# no LSE
bias = alloc(workspace, (B, Hq, Sq + Sk), f32)

@map
def fill_bias(
    x0: f32[_, _],
    x1: i32,
    x2: i32,
    ):
    for b, h, t in each(B, Hq, Sq + Sk):
        value = where((0 < x1 // 2) & (Sk < x1 // 2 + t), Sk - t, minimum(x1 - 1, x1 // 2 + i32(f32.mul(f32.div(f32.log(f32.div(f32(maximum(Sk - t, 1)), f32(x1 // 2))), f32(log(f32(x2) / f32(x1 // 2)))), f32(x1 - x1 // 2)))))
        bias[b, h, t] = x0[where(value < 0, x0.shape[0] + value, value), h] * LOG2E

@kernel(arch="sm_80", expert="prefill_sm80", ctas="items")
def attention(
    Q: elem[B, Hq, Sq, D],
    K: elem[B, Hk, Sk, D],
    V: elem[B, Hk, Sk, Dv],
    Out: elem[B, Hq, Sq, Dv],
    x0: f32[_, _],
    x1: i32,
    x2: i32,
    *, BM=128, BN=64, ST=1, W=4, D=128, Dv=128, elem=bf16):
    R = BM // W                                             # query rows of one warp
    G = Hq // Hk                                            # query heads that share a key head
    unit = 1.0                                              # a score times unit is a power of two
    Qs = alloc(shared, (W, R, D), elem)                     # later stages the output
    Ks = alloc(shared, (ST, BN, D), elem)
    Vs = alloc(shared, (ST, BN, Dv), elem)
    everyone = named_barrier(W)

    def key_tiles(b, h, i0, i1):                            # ranges of key tiles for rows i0 <= i < i1, and: needs a mask?
        some = clamp(Sk + i1 - Sq, 0, Sk)
        every = clamp(Sk + i0 - Sq + 1, 0, Sk)
        return [(every // BN, cdiv(some, BN), True), (0, every // BN, False)]

    def attend(S, row_max, row_sum, b, h, i0, n, masked, limit, factor):
        i, j = rows(i0, R), cols(n * BN, BN)
        flat = (n + 1) * BN - i0 <= limit
        if not flat:
            x = S * LOG2E + bias[b, h, j + (Sq - i)]
        else:
            x = S * LOG2E + factor
        if masked:
            x = where(j < i + (Sk - Sq + 1), x, -inf)
        new_max = maximum(row_max, x.amax(-1))
        ref = where(new_max == -inf, 0.0, new_max)          # a row without a key so far: no NaN
        shrink = exp2(row_max * unit - ref * unit)
        p = exp2(x * unit - ref * unit)
        row_sum = row_sum * shrink + p.sum(-1)
        return p, new_max, row_sum, shrink

    with role("math", warps=W, registers=255) as g:
        S = alloc(register, (R, BN), f32)
        P = alloc(register, (R, BN), elem)
        acc = alloc(register, (R, Dv), f32)
        for b, h, m in bind(B, Hq, cdiv(Sq, BM), order="by_head"):
            i0 = m * BM + g * R
            limit = minimum(Sk - Sq - x1 // 2 + 1, Sk - Sq - i32(where((0 < x1 // 2) & (x1 // 2 < x1) & (0.0 < f32(log(f32(x2) / f32(x1 // 2)))), minimum(maximum(f32(x1 // 2) * exp(f32(x1 - x1 // 2 - 1) * f32(log(f32(x2) / f32(x1 // 2))) / f32(x1 - x1 // 2)), 0.0) * 1.0001, 1073741824.0), 1073741824.0)))
            factor = x0[where(x1 <= 0, x0.shape[0] + x1 - 1, x1 - 1), h] * LOG2E
            copy_async(Q[b, h, m * BM:(m + 1) * BM], Qs)    # on its way while key tiles are decided
            tiles = key_tiles(b, h, m * BM, minimum((m + 1) * BM, Sq))
            row_max, row_sum = full(R, -inf), full(R, 0.0)
            acc[:] = 0.0
            n, masked = pick(tiles, 0)
            copy_async(K[b, h // G, n * BN:(n + 1) * BN], Ks[0])
            for k in range(length(tiles)):
                s = k % ST
                n, masked = pick(tiles, k)
                wait(Ks[s])                                 # this warp's share of K, and of Q
                sync(everyone)                              # everyone's share; and all have read the V before
                copy_async(V[b, h // G, n * BN:(n + 1) * BN], Vs[s])
                gemm(Qs[g], Ks[s].T, out=S)
                wait(Vs[s])
                sync(everyone)                              # V is whole; and all have read this K
                if k + 1 < length(tiles):
                    y, unused = pick(tiles, k + 1)
                    copy_async(K[b, h // G, y * BN:(y + 1) * BN], Ks[(k + 1) % ST])
                p, row_max, row_sum, shrink = attend(S, row_max, row_sum, b, h, i0, n, masked, limit, factor)
                acc[:] = acc * shrink
                P[:] = p
                gemm(P, Vs[s], add=acc)
            total = complete(row_sum)                       # adds up what each thread holds of a row
            inv = where(Sk > 0, 1.0 / total, 0.0)           # a row without a key gives NaN
            acc[:] = acc * inv
            Qs[g][:] = acc
            copy(Qs[g], Out[b, h, i0:i0 + R])
            sync(everyone)                                  # all have read their rows of Q and of the output
