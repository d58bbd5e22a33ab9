# mask
# key ranges: closed form
# cap: scores far below it
# pointwise weights
@kernel(arch="sm_80", expert="prefill_sm80", ctas="items")
def attention(
    Q: elem[B, Hq, Sq, D],
    K: elem[B, Hk, Sk, D],
    V: elem[B, Hk, Sk, Dv],
    Out: elem[B, Hq, Sq, Dv],
    x0: i32,
    x1: f32,
    *, BM=128, BN=64, ST=1, W=4, D=128, Dv=128, elem=bf16):
    R = BM // W                                             # query rows of one warp
    G = Hq // Hk                                            # query heads that share a key head
    scale = sqrt(D)
    scale1 = LOG2E * 2.0
    scale2 = 2.0 * LOG2E / sqrt(D)
    scale3 = 1.0 / sqrt(D)
    Qs = alloc(shared, (W, R, D), elem)                     # later stages the output
    Ks = alloc(shared, (ST, BN, D), elem)
    Vs = alloc(shared, (ST, BN, Dv), elem)
    everyone = named_barrier(W)

    def key_tiles(b, h, i0, i1):                            # ranges of key tiles for rows i0 <= i < i1, and: needs a mask?
        some = clamp(maximum(x0, i1), 0, Sk)
        every = clamp(maximum(x0, i0 + 1), 0, Sk)
        return [(every // BN, cdiv(some, BN), True), (0, every // BN, False)]

    def attend(S, b, h, i0, n, masked, factor, factor1, factor2, factor3, factor4, factor5, factor6):
        i, j = rows(i0, R), cols(n * BN, BN)
        far = any(~(abs(S) <= factor))
        if far:
            x = 1.0 / (exp2(factor1 * (1.0 / (exp2(S * factor2) + 1.0)) + factor3) + 1.0)
        else:
            x = logistic_small(factor6 - tanh_small(S * factor5) * factor4)
        if masked:
            x = where(j < minimum(Sk, maximum(x0, i + 1)), x, 0.0)
        return x

    with role("math", warps=W, registers=255) as g:
        S = alloc(register, (R, BN), f32)
        P = alloc(register, (R, BN), elem)
        acc = alloc(register, (R, Dv), f32)
        for b, h, m in bind(B, Hq, cdiv(Sq, BM), order="by_head"):
            i0 = m * BM + g * R
            factor = minimum((21.0 - abs(-log(f32(Sk)))) / abs(x1), 0.5) * abs(x1 * scale)
            factor1 = x1 * scale1
            factor2 = scale2 / x1
            factor3 = log2(f32(Sk)) - x1 * LOG2E
            factor4 = x1 * LOG2E
            factor5 = scale3 / x1
            factor6 = log2(f32(Sk))
            copy_async(Q[b, h, m * BM:(m + 1) * BM], Qs)    # on its way while key tiles are decided
            tiles = key_tiles(b, h, m * BM, minimum((m + 1) * BM, Sq))
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
                p = attend(S, b, h, i0, n, masked, factor, factor1, factor2, factor3, factor4, factor5, factor6)
                P[:] = p
                gemm(P, Vs[s], add=acc)
            Qs[g][:] = acc
            copy(Qs[g], Out[b, h, i0:i0 + R])
            sync(everyone)                                  # all have read their rows of Q and of the output
