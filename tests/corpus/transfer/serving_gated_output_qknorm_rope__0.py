# q made by a map kernel
# k made by a map kernel
# heads and tensors of q, k, v
# mask
# key ranges: classes of tiles, by tables
# scale
# no LSE
# output: gated
q = alloc(workspace, (B, Hq, Sq, D), bf16)
k1 = alloc(workspace, (B, Hk, Sk, D), bf16)
least = alloc(workspace, (B, Sq), i32)
most = alloc(workspace, (B, Sq), i32)
least1 = alloc(workspace, (B, Sk), i32)
most1 = alloc(workspace, (B, Sk), i32)

@map
def make_q(
    Q: elem[B, Hq, Sq, D],
    x0: f32,
    x1: f32[_],
    x2: f32,
    x3: i32[_, _],
    *, D=128, elem=bf16, C0=31, C1=32, C2=63):
    for b, h, i, c in each(B, Hq, Sq, D):
        sum = 0.0
        for r in range(D):
            value = Q[b, h, i, r]
            sum += value * value
        sum1 = 0.0
        for r1 in range(D):
            value1 = Q[b, h, i, r1]
            sum1 += value1 * value1
        sum2 = 0.0
        for r2 in range(D):
            value2 = Q[b, h, i, r2]
            sum2 += value2 * value2
        sum3 = 0.0
        for r3 in range(D):
            value3 = Q[b, h, i, r3]
            sum3 += value3 * value3
        sum4 = 0.0
        for r4 in range(D):
            value4 = Q[b, h, i, r4]
            sum4 += value4 * value4
        q[b, h, i, c] = where(c <= C0, rsqrt(sum * (1.0 / f32(D)) + x0) * Q[b, h, i, c] * cos(f32(x3[b, i]) * pow(x2, -(f32(c) * 0.03125))) * x1[c] - rsqrt(sum1 * (1.0 / f32(D)) + x0) * sin(f32(x3[b, i]) * pow(x2, -(f32(c) * 0.03125))) * Q[b, h, i, c + C1] * x1[c + C1], where(c <= C2, rsqrt(sum2 * (1.0 / f32(D)) + x0) * Q[b, h, i, c] * cos(f32(x3[b, i]) * pow(x2, -(f32(c - C1) * 0.03125))) * x1[c] + rsqrt(sum3 * (1.0 / f32(D)) + x0) * Q[b, h, i, c - C1] * sin(f32(x3[b, i]) * pow(x2, -(f32(c - C1) * 0.03125))) * x1[c - C1], rsqrt(sum4 * (1.0 / f32(D)) + x0) * Q[b, h, i, c] * x1[c]))

@map
def make_k(
    K: elem[B, Hk, Sk, D],
    x0: f32,
    x2: f32,
    x4: f32[_],
    x5: i32[_, _],
    *, D=128, elem=bf16, C0=31, C1=32, C2=63):
    for b, h, i, c in each(B, Hk, Sk, D):
        sum5 = 0.0
        for r5 in range(D):
            value5 = K[b, h, i, r5]
            sum5 += value5 * value5
        sum6 = 0.0
        for r6 in range(D):
            value6 = K[b, h, i, r6]
            sum6 += value6 * value6
        sum7 = 0.0
        for r7 in range(D):
            value7 = K[b, h, i, r7]
            sum7 += value7 * value7
        sum8 = 0.0
        for r8 in range(D):
            value8 = K[b, h, i, r8]
            sum8 += value8 * value8
        sum9 = 0.0
        for r9 in range(D):
            value9 = K[b, h, i, r9]
            sum9 += value9 * value9
        k1[b, h, i, c] = where(c <= C0, cos(f32(x5[b, i]) * pow(x2, -(f32(c) * 0.03125))) * K[b, h, i, c] * rsqrt(sum5 * (1.0 / f32(D)) + x0) * x4[c] - sin(f32(x5[b, i]) * pow(x2, -(f32(c) * 0.03125))) * rsqrt(sum6 * (1.0 / f32(D)) + x0) * K[b, h, i, c + C1] * x4[c + C1], where(c <= C2, cos(f32(x5[b, i]) * pow(x2, -(f32(c - C1) * 0.03125))) * K[b, h, i, c] * rsqrt(sum7 * (1.0 / f32(D)) + x0) * x4[c] + sin(f32(x5[b, i]) * pow(x2, -(f32(c - C1) * 0.03125))) * rsqrt(sum8 * (1.0 / f32(D)) + x0) * K[b, h, i, c - C1] * x4[c - C1], K[b, h, i, c] * rsqrt(sum9 * (1.0 / f32(D)) + x0) * x4[c]))

@map
def bound_tiles(
    x3: i32[_, _],
    *, BM=128):
    for b, n in each(B, cdiv(Sq, BM)):
        at = n * BM
        low = x3[b, at]
        high = low
        for r in range(BM):
            at = minimum(n * BM + r, Sq - 1)
            x = x3[b, at]
            low = minimum(low, x)
            high = maximum(high, x)
        least[b, n] = low
        most[b, n] = high

@map
def bound_tiles1(
    x5: i32[_, _],
    *, BN=64):
    for b, n in each(B, cdiv(Sk, BN)):
        at = n * BN
        low = x5[b, at]
        high = low
        for r in range(BN):
            at = minimum(n * BN + r, Sk - 1)
            x = x5[b, at]
            low = minimum(low, x)
            high = maximum(high, x)
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
    unit = LOG2E / sqrt(f32(D))
    Qs = alloc(shared, (W, R, D), elem)                     # later stages the output
    Ks = alloc(shared, (ST, BN, D), elem)
    Vs = alloc(shared, (ST, BN, Dv), elem)
    everyone = named_barrier(W)

    def tile_class(b, h, i0, i1, n):
        j0, j1 = n * BN, minimum((n + 1) * BN, Sk)
        some = least1[b, n] <= most[b, i0 // BM]
        every = (most1[b, n] <= least[b, i0 // BM]) & ((n + 1) * BN <= Sk)
        return some, every

    def key_tiles(b, h, i0, i1):                            # ranges of key tiles for rows i0 <= i < i1, and: needs a mask?
        return classify(cdiv(Sk, BN), tile_class, b, h, i0, i1)

    def attend(S, row_max, row_sum, b, h, i0, n, masked):
        i, j = rows(i0, R), cols(n * BN, BN)
        x = S
        if masked:
            row = x3[b, i]
            column = x5[b, j]
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
            acc[:] = acc / (exp2(-(x6[b, h, i2, d] * LOG2E)) + 1.0)
            Qs[g][:] = acc
            copy(Qs[g], Out[b, h, i0:i0 + R])
            sync(everyone)                                  # all have read their rows of Q and of the output
