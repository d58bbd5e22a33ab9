# strided tiles beside dense ones
# mask
# key ranges: closed form
# no LSE
@kernel(arch="sm_80", expert="prefill_sm80", ctas="items")
def attention(
    Q: elem[B, Hq, Sq, D],
    K: elem[B, Hk, Sk, D],
    V: elem[B, Hk, Sk, Dv],
    Out: elem[B, Hq, Sq, Dv],
    x0: i32,
    *, BM=128, BN=64, ST=1, W=4, D=128, Dv=128, elem=bf16, C0=4, C1=3):
    R = BM // W                                             # query rows of one warp
    G = Hq // Hk                                            # query heads that share a key head
    unit = LOG2E / sqrt(D)                                  # a score times unit is a power of two
    Qs = alloc(shared, (W, R, D), elem)                     # later stages the output
    Ks = alloc(shared, (ST, BN, D), elem)
    Vs = alloc(shared, (ST, BN, Dv), elem)
    everyone = named_barrier(W)

    def key_tiles(b, h, i0, i1):                            # ranges of key tiles for rows i0 <= i < i1, and: needs a mask?
        some = clamp(x0 + i1 - 1, 0, Sk)
        least = clamp(i0 - x0 + 1, 0, Sk)
        high = maximum(cdiv(some, BN), least // BN)
        every = clamp(x0 + i0, 0, Sk)
        first = clamp(cdiv(clamp(i1 - x0, 0, Sk), BN), least // BN, high)
        last = clamp(every // BN, first, high)
        beyond = cdiv(Sk, BN)
        some1 = clamp((i1 - x0 + C1) // C0, 0, cdiv(Sk, C0))
        high1 = cdiv(some1, BN)
        every1 = clamp((i0 - x0) // C0 + 1, 0, cdiv(Sk, C0))
        some2 = cdiv(Sk, C0)
        least1 = clamp(maximum((i1 - x0 + C1) // C0, -((-x0 - i0) // C0)), 0, cdiv(Sk, C0))
        high2 = where(least1 < some2, cdiv(some2, BN), high1)
        low = clamp(least1 // BN, high1, high2)
        every2 = cdiv(Sk, C0)
        first1 = clamp(cdiv(clamp(maximum((i1 - x0 + C1) // C0, -((1 - x0 - i1) // C0)), 0, cdiv(Sk, C0)), BN), low, high2)
        last1 = clamp(every2 // BN, first1, high2)
        return [(beyond + last1, beyond + high2, True), (beyond + first1, beyond + last1, False), (beyond + low, beyond + first1, True), (beyond + every1 // BN, beyond + high1, True), (beyond + 0, beyond + every1 // BN, False), (last, high, True), (first, last, False), (least // BN, first, True)]

    def attend(S, row_max, row_sum, b, h, i0, n, masked):
        i, j = rows(i0, R), cols(n * BN, BN)
        x = S
        if masked:
            if n >= cdiv(Sk, BN):
                column = cols((n - cdiv(Sk, BN)) * BN, BN)
                limit = (i - x0) // C0
                limit1 = (-i - x0) // C0
                limit2 = (Sk + C1) // C0
                x = where((column < limit2) & ((column < limit + 1) | (column >= -limit1)), x, -inf)
            else:
                x = where((j < minimum(Sk, i + x0)) & (j >= i + (1 - x0)), x, -inf)
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
            copy_async(Q[b, h, m * BM:(m + 1) * BM], Qs)    # on its way while key tiles are decided
            tiles = key_tiles(b, h, m * BM, minimum((m + 1) * BM, Sq))
            row_max, row_sum = full(R, -inf), full(R, 0.0)
            acc[:] = 0.0
            n, masked = pick(tiles, 0)
            begin2 = where(n < cdiv(Sk, BN), n * BN, (n - cdiv(Sk, BN)) * BN * C0)
            by2 = where(n < cdiv(Sk, BN), 1, C0)
            copy_async(K[b, h // G, begin2:begin2 + BN * by2:by2], Ks[0])
            for k in range(length(tiles)):
                s = k % ST
                n, masked = pick(tiles, k)
                wait(Ks[s])                                 # this warp's share of K, and of Q
                sync(everyone)                              # everyone's share; and all have read the V before
                begin1 = where(n < cdiv(Sk, BN), n * BN, (n - cdiv(Sk, BN)) * BN * C0)
                by1 = where(n < cdiv(Sk, BN), 1, C0)
                copy_async(V[b, h // G, begin1:begin1 + BN * by1:by1], Vs[s])
                gemm(Qs[g], Ks[s].T, out=S)
                wait(Vs[s])
                sync(everyone)                              # V is whole; and all have read this K
                if k + 1 < length(tiles):
                    y, unused = pick(tiles, k + 1)
                    begin = where(y < cdiv(Sk, BN), y * BN, (y - cdiv(Sk, BN)) * BN * C0)
                    by = where(y < cdiv(Sk, BN), 1, C0)
                    copy_async(K[b, h // G, begin:begin + BN * by:by], Ks[(k + 1) % ST])
                p, row_max, row_sum, shrink = attend(S, row_max, row_sum, b, h, i0, n, masked)
                acc[:] = acc * shrink
                P[:] = p
                gemm(P, Vs[s], add=acc)
            total = complete(row_sum)                       # adds up what each thread holds of a row
            inv = where(total > 0.0, 1.0 / total, 0.0)      # a row without a key gives 0
            acc[:] = acc * inv
            Qs[g][:] = acc
            copy(Qs[g], Out[b, h, i0:i0 + R])
            sync(everyone)                                  # all have read their rows of Q and of the output
