# one residue class
# mask
# key ranges: closed form
# sink
# no LSE
# output: gated
@kernel(arch="sm_80", expert="prefill_sm80", ctas="items")
def attention(
    Q: elem[B, Hq, Sq, D],
    K: elem[B, Hk, Sk, D],
    V: elem[B, Hk, Sk, Dv],
    Out: elem[B, Hq, Sq, Dv],
    x0: f32[_],
    x1: f32[_, _, _],
    *, BM=128, BN=64, ST=1, W=4, D=128, Dv=128, elem=bf16, T=4, C1=3):
    R = BM // W                                             # query rows of one warp
    G = Hq // Hk                                            # query heads that share a key head
    unit = LOG2E / sqrt(D)                                  # a score times unit is a power of two
    Qs = alloc(shared, (W, R, D), elem)                     # later stages the output
    Ks = alloc(shared, (ST, BN, D), elem)
    Vs = alloc(shared, (ST, BN, Dv), elem)
    everyone = named_barrier(W)

    def key_tiles(b, h, i0, i1):                            # ranges of key tiles for rows i0 <= i < i1, and: needs a mask?
        some = clamp((Sk + h % T - Sq - (h + (Sk - Sq) % T) % T) // T + i1, 0, cdiv(Sk - (h + (Sk - Sq) % T) % T, T))
        every = clamp((Sk + h % T - Sq - (h + (Sk - Sq) % T) % T) // T + i0 + 1, 0, cdiv(Sk - (h + (Sk - Sq) % T) % T, T))
        return [(every // BN, cdiv(some, BN), True), (0, every // BN, False)]

    def attend(S, row_max, row_sum, b, h, i0, n, masked):
        i, j = rows(i0, R), cols(n * BN, BN)
        x = S
        if masked:
            limit = (Sk + h % T - Sq - (h + (Sk - Sq) % T) % T) // T
            limit1 = (Sk - (h + (Sk - Sq) % T) % T + C1) // T
            x = where(j < minimum(limit1, i + (limit + 1)), x, -inf)
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
        for b, h, m in bind(B, Hq * T, cdiv(Sq, BM * T), order="by_head"):
            i0 = m * BM + g * R
            factor = x0[h // T] * LOG2E
            i2 = rows(i0, R)
            copy_async(Q[b, h // T, m * BM * T + h % T:(m + 1) * BM * T + h % T:T], Qs)  # on its way while key tiles are decided
            tiles = key_tiles(b, h, m * BM, minimum((m + 1) * BM, cdiv(Sq - h % T, T)))
            row_max, row_sum = full(R, factor / unit), full(R, 0.0)
            acc[:] = 0.0
            n, masked = pick(tiles, 0)
            copy_async(K[b, h // T // G, n * BN * T + (h + (Sk - Sq) % T) % T:(n + 1) * BN * T + (h + (Sk - Sq) % T) % T:T], Ks[0])
            for k in range(length(tiles)):
                s = k % ST
                n, masked = pick(tiles, k)
                wait(Ks[s])                                 # this warp's share of K, and of Q
                sync(everyone)                              # everyone's share; and all have read the V before
                copy_async(V[b, h // T // G, n * BN * T + (h + (Sk - Sq) % T) % T:(n + 1) * BN * T + (h + (Sk - Sq) % T) % T:T], Vs[s])
                gemm(Qs[g], Ks[s].T, out=S)
                wait(Vs[s])
                sync(everyone)                              # V is whole; and all have read this K
                if k + 1 < length(tiles):
                    y, unused = pick(tiles, k + 1)
                    copy_async(K[b, h // T // G, y * BN * T + (h + (Sk - Sq) % T) % T:(y + 1) * BN * T + (h + (Sk - Sq) % T) % T:T], Ks[(k + 1) % ST])
                p, row_max, row_sum, shrink = attend(S, row_max, row_sum, b, h, i0, n, masked)
                acc[:] = acc * shrink
                P[:] = p
                gemm(P, Vs[s], add=acc)
            top = where(row_max == -inf, 0.0, row_max * unit)
            total = complete(row_sum) + exp2(factor - top)  # adds up what each thread holds of a row
            inv = where(total > 0.0, 1.0 / total, 0.0)      # a row without a key gives 0
            acc[:] = acc * inv
            d = cols(0, Dv)
            row = 1.0 / (exp2(-(x1[b, T * i2 + h % T, h // T] * LOG2E)) + 1.0)
            acc[:] = acc * row
            Qs[g][:] = acc
            copy(Qs[g], Out[b, h // T, i0 * T + h % T:(i0 + R) * T + h % T:T])
            sync(everyone)                                  # all have read their rows of Q and of the output
