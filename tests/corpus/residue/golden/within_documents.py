# one residue class
# mask
# key ranges: classes of tiles, by tables
# no LSE
least = alloc(workspace, (B, 4 * Hq, maximum(cdiv(Sq, 4), cdiv(Sk, 4))), i32)
most = alloc(workspace, (B, 4 * Hq, maximum(cdiv(Sq, 4), cdiv(Sk, 4))), i32)

@map
def bound_tiles(
    x0: i32[_],
    *, BN=64, T=4):
    for b, h, n in each(B, T * Hq, cdiv(maximum(cdiv(Sq, T), cdiv(Sk, T)), BN)):
        low = x0[T * (n * BN) + h % T]
        high = low
        for r in range(BN):
            here = x0[T * minimum(n * BN + r, maximum(cdiv(Sq, T), cdiv(Sk, T)) - 1) + h % T]
            low = minimum(low, here)
            high = maximum(high, here)
        least[b, h, n] = low
        most[b, h, n] = high

@kernel(arch="sm_80", expert="prefill_sm80", ctas="items")
def attention(
    Q: elem[B, Hq, Sq, D],
    K: elem[B, Hk, Sk, D],
    V: elem[B, Hk, Sk, Dv],
    Out: elem[B, Hq, Sq, Dv],
    x0: i32[_],
    *, BM=128, BN=64, ST=1, W=4, D=128, Dv=128, elem=bf16, T=4, C1=3):
    R = BM // W                                             # query rows of one warp
    G = Hq // Hk                                            # query heads that share a key head
    unit = LOG2E / sqrt(D)                                  # a score times unit is a power of two
    Qs = alloc(shared, (W, R, D), elem)                     # later stages the output
    Ks = alloc(shared, (ST, BN, D), elem)
    Vs = alloc(shared, (ST, BN, Dv), elem)
    everyone = named_barrier(W)

    def tile_class(b, h, i0, i1, low_query, high_query, n):
        j0, j1 = n * BN, minimum((n + 1) * BN, cdiv(Sk - h % T, T))
        high_key = most[b, h, n]
        low_key = least[b, h, n]
        some = (j0 < i1) & (low_query <= high_key) & (low_key <= high_query)
        every = (j1 <= i0 + 1) & (high_query == low_key) & (low_query == high_key) & ((n + 1) * BN <= cdiv(Sk - h % T, T))
        return some, every

    def key_tiles(b, h, i0, i1):                            # ranges of key tiles for rows i0 <= i < i1, and: needs a mask?
        low_query = least[b, h, i0 // BN]
        high_query = most[b, h, i0 // BN]
        for t in range(i0 // BN + 1, cdiv(i1, BN)):
            low_query = minimum(low_query, least[b, h, t])
            high_query = maximum(high_query, most[b, h, t])
        return classify(cdiv(clamp(i1, 0, cdiv(Sk - h % T, T)), BN), tile_class, b, h, i0, i1, low_query, high_query)

    def attend(S, row_max, row_sum, b, h, i0, n, masked, row):
        i, j = rows(i0, R), cols(n * BN, BN)
        x = S
        if masked:
            limit = h % T
            limit1 = (Sk - limit + C1) // T
            column = x0[T * j + limit]
            x = where((j < minimum(limit1, i + 1)) & (column == row), x, -inf)
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
            i2 = rows(i0, R)
            row = x0[T * i2 + h % T]
            copy_async(Q[b, h // T, m * BM * T + h % T:(m + 1) * BM * T + h % T:T], Qs)  # on its way while key tiles are decided
            tiles = key_tiles(b, h, m * BM, minimum((m + 1) * BM, cdiv(Sq - h % T, T)))
            row_max, row_sum = full(R, -inf), full(R, 0.0)
            acc[:] = 0.0
            n, masked = pick(tiles, 0)
            copy_async(K[b, h // T // G, n * BN * T + h % T:(n + 1) * BN * T + h % T:T], Ks[0])
            for k in range(length(tiles)):
                s = k % ST
                n, masked = pick(tiles, k)
                wait(Ks[s])                                 # this warp's share of K, and of Q
                sync(everyone)                              # everyone's share; and all have read the V before
                copy_async(V[b, h // T // G, n * BN * T + h % T:(n + 1) * BN * T + h % T:T], Vs[s])
                gemm(Qs[g], Ks[s].T, out=S)
                wait(Vs[s])
                sync(everyone)                              # V is whole; and all have read this K
                if k + 1 < length(tiles):
                    y, unused = pick(tiles, k + 1)
                    copy_async(K[b, h // T // G, y * BN * T + h % T:(y + 1) * BN * T + h % T:T], Ks[(k + 1) % ST])
                p, row_max, row_sum, shrink = attend(S, row_max, row_sum, b, h, i0, n, masked, row)
                acc[:] = acc * shrink
                P[:] = p
                gemm(P, Vs[s], add=acc)
            total = complete(row_sum)                       # adds up what each thread holds of a row
            inv = where(total > 0.0, 1.0 / total, 0.0)      # a row without a key gives 0
            acc[:] = acc * inv
            Qs[g][:] = acc
            copy(Qs[g], Out[b, h // T, i0 * T + h % T:(i0 + R) * T + h % T:T])
            sync(everyone)                                  # all have read their rows of Q and of the output
