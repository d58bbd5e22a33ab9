# q made by a map kernel
# k made by a map kernel
# heads and tensors of q, k, v
# mask
# key ranges: classes of tiles, by tables
# no LSE
# output: gated
q = alloc(workspace, (B, Hq, Sq, D), bf16)
k1 = alloc(workspace, (B, Hk, Sk, D), bf16)
least = alloc(workspace, (B, Sk), i32)
most = alloc(workspace, (B, Sk), i32)
least1 = alloc(workspace, (B, Sq), i32)
most1 = alloc(workspace, (B, Sq), i32)

@map
def make_q(
    Q: elem[B, Hq, Sq, D],
    x0: f32,
    x1: f32[_],
    x2: f32,
    x3: i32[_, _],
    *, D=128, elem=bf16, C0=31, C1=32, C2=63):
    for b, h, i, c in each(B, Hq, Sq, D):
        count = 0.0
        for r in range(D):
            value = Q[b, h, i, r]
            count += value * value
        value1 = count * (1.0 / D) + x0
        value2 = f32(x3[b, i]) * pow(x2, -(f32(c) * 0.03125))
        value3 = f32(x3[b, i]) * pow(x2, -(f32(c - C1) * 0.03125))
        q[b, h, i, c] = where(c <= C0, rsqrt(value1) * Q[b, h, i, c] * cos(value2) * x1[c] - rsqrt(value1) * sin(value2) * Q[b, h, i, c + C1] * x1[c + C1], where(c <= C2, rsqrt(value1) * Q[b, h, i, c] * cos(value3) * x1[c] + rsqrt(value1) * Q[b, h, i, c - C1] * sin(value3) * x1[c - C1], rsqrt(value1) * Q[b, h, i, c] * x1[c]))

@map
def make_k(
    K: elem[B, Hk, Sk, D],
    x0: f32,
    x2: f32,
    x4: f32[_],
    x5: i32[_, _],
    *, D=128, elem=bf16, C0=31, C1=32, C2=63):
    for b, h, i, c in each(B, Hk, Sk, D):
        value4 = f32(x5[b, i]) * pow(x2, -(f32(c) * 0.03125))
        count1 = 0.0
        for r1 in range(D):
            value5 = K[b, h, i, r1]
            count1 += value5 * value5
        value6 = count1 * (1.0 / D) + x0
        value7 = f32(x5[b, i]) * pow(x2, -(f32(c - C1) * 0.03125))
        k1[b, h, i, c] = where(c <= C0, cos(value4) * K[b, h, i, c] * rsqrt(value6) * x4[c] - sin(value4) * rsqrt(value6) * K[b, h, i, c + C1] * x4[c + C1], where(c <= C2, cos(value7) * K[b, h, i, c] * rsqrt(value6) * x4[c] + sin(value7) * rsqrt(value6) * K[b, h, i, c - C1] * x4[c - C1], K[b, h, i, c] * rsqrt(value6) * x4[c]))

@map
def bound_tiles(
    x5: i32[_, _],
    *, BN=64):
    for b, n in each(B, cdiv(Sk, BN)):
        low = x5[b, n * BN]
        high = low
        for r in range(BN):
            low = minimum(low, x5[b, minimum(n * BN + r, Sk - 1)])
            high = maximum(high, x5[b, minimum(n * BN + r, Sk - 1)])
        least[b, n] = low
        most[b, n] = high

@map
def bound_tiles1(
    x3: i32[_, _],
    *, BM=128):
    for b, n in each(B, cdiv(Sq, BM)):
        low = x3[b, n * BM]
        high = low
        for r in range(BM):
            low = minimum(low, x3[b, minimum(n * BM + r, Sq - 1)])
            high = maximum(high, x3[b, minimum(n * BM + r, Sq - 1)])
        least1[b, n] = low
        most1[b, n] = high

@kernel(arch="sm_80", expert="prefill_sm80", ctas="items")
def attention(
    V: elem[B, Hk, Sk, Dv],
    Out: elem[B, Hq, Sq, Dv],
    x3: i32[_, _],
    x5: i32[_, _],
    x6: f32[_, _, _, _],
    *, BM=128, BN=64, ST=1, W=4, D=128, Dv=128, elem=bf16):
    R = BM // W                                             # query rows of one warp
    G = Hq // Hk                                            # query heads that share a key head
    unit = LOG2E / sqrt(D)                                  # a score times unit is a power of two
    Qs = alloc(shared, (W, R, D), elem)                     # later stages the output
    Ks = alloc(shared, (ST, BN, D), elem)
    Vs = alloc(shared, (ST, BN, Dv), elem)
    everyone = named_barrier(W)

    def tile_class(b, h, i0, i1, n):
        j0, j1 = n * BN, minimum((n + 1) * BN, Sk)
        low_key = least[b, n]
        high_query = most1[b, i0 // BM]
        high_key = most[b, n]
        low_query = least1[b, i0 // BM]
        some = low_key <= high_query
        every = (high_key <= low_query) & ((n + 1) * BN <= Sk)
        return some, every

    def key_tiles(b, h, i0, i1):                            # ranges of key tiles for rows i0 <= i < i1, and: needs a mask?
        return classify(cdiv(Sk, BN), tile_class, b, h, i0, i1)

    def attend(S, row_max, row_sum, b, h, i0, n, masked):
        i, j = rows(i0, R), cols(n * BN, BN)
        x = S
        if masked:
            column = x5[b, j]
            row = x3[b, i]
            x = where((j < Sk) & (column <= row), x, -inf)
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
            tiles = key_tiles(b, h, m * BM, minimum((m + 1) * BM, Sq))
            row_max, row_sum = full(R, -inf), full(R, 0.0)
            acc[:] = 0.0
            n, masked = pick(tiles, 0)
            copy_async(q[b, h, m * BM:(m + 1) * BM], Qs)
            copy_async(k1[b, h // G, n * BN:(n + 1) * BN], Ks[0])
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
                    copy_async(k1[b, h // G, y * BN:(y + 1) * BN], Ks[(k + 1) % ST])
                p, row_max, row_sum, shrink = attend(S, row_max, row_sum, b, h, i0, n, masked)
                acc[:] = acc * shrink
                P[:] = p
                gemm(P, Vs[s], add=acc)
            total = complete(row_sum)                       # adds up what each thread holds of a row
            inv = where(total > 0.0, 1.0 / total, 0.0)      # a row without a key gives 0
            acc[:] = acc * inv
            i2 = rows(i0, R)
            d = cols(0, Dv)
            acc[:] = acc * (1.0 / (exp2(-(x6[b, h, i2, d] * LOG2E)) + 1.0))
            Qs[g][:] = acc
            copy(Qs[g], Out[b, h, i0:i0 + R])
            sync(everyone)                                  # all have read their rows of Q and of the output
