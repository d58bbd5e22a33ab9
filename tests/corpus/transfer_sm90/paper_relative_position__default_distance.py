# table over the distance of query and key
# bias: one value far from the diagonal
# score: scale and bias
# no LSE
bias = alloc(workspace, (B, Hq, Sq + Sk), f32)

@map
def fill_bias(
    x0: f32[_, _],
    x1: i32,
    ):
    for b, h, t in each(B, Hq, Sq + Sk):
        bias[b, h, t] = x0[h, x1 + minimum(x1, maximum(-x1, t - Sq))] * LOG2E

@kernel(arch="sm_90a", expert="prefill_sm90", ctas="sms")
def attention(
    Q: elem[B, Hq, Sq, D],
    K: elem[B, Hk, Sk, D],
    V: elem[B, Hk, Sk, Dv],
    Out: elem[B, Hq, Sq, Dv],
    ticket: counter,
    x0: f32[_, _],
    x1: i32,
    *, BM=128, BN=128, ST=2, QB=2, WG=2, D=128, Dv=128, SLACK=8.0, LIMIT=1.1529215e+18, elem=bf16):
    R = BM // WG
    G = Hq // Hk
    unit = 1.0                                              # a score times unit is a power of two
    scale = LOG2E / sqrt(D)
    Qs = alloc(shared, (QB, WG, R, D), elem)                # a buffer that is used up stages the output of its rows
    Ks = alloc(shared, (ST, BN, D), elem)
    Vs = alloc(shared, (ST, BN, Dv), elem)
    q_full, q_free = barrier(1, n=QB), barrier(1, n=QB)
    o_full = barrier(1, n=QB * WG)                          # staged, by buffer and warpgroup
    k_full, k_free = barrier(1, n=ST), barrier(WG, n=ST)
    v_full, v_free = barrier(1, n=ST), barrier(WG, n=ST)
    turn = named_barrier(2, n=WG)
    items = channel(4, takers=WG + 2)
    begun = barrier(1)                                      # the load role has the last item that was decided

    def key_tiles(b, h, i0, i1):
        whole = Sk // BN
        return [(whole, cdiv(Sk, BN), True), (0, whole, False)]

    def scores(S, b, h, i0, n, masked, limit1, limit2, factor, factor1):
        i, j = rows(i0, R), cols(n * BN, BN)
        flat = (n + 1) * BN - i0 <= limit1
        flat1 = n * BN - (i0 + R) >= limit2
        value = where(flat, factor, factor1)
        if not (flat or flat1):
            x = S * scale + bias[b, h, j + (Sq - i)]
        else:
            x = S * scale + value
        if masked:
            x = where(j < Sk, x, -inf)
        return x

    def refer(x, base, limit, row_sum):                     # moves the reference of rows that rose by more than SLACK
        shrink = full(R, 1.0)
        moved = any(x * unit > limit)
        if moved:
            top = x.amax(-1) * unit
            up = top > limit
            shrink = where(up, where(limit == -inf, 0.0, exp2(base - top)), 1.0)
            base = where(up, top, base)
            limit = where(up, top + SLACK, limit)
            row_sum = row_sum * shrink
        ready = not any(limit == -inf)                      # every row has a reference
        return base, limit, row_sum, shrink, moved, ready

    with role("decide", warps=1, registers=40):             # beside the copies, so that short items don't wait for it
        for w, (b, h, m) in enumerate(draw(ticket, B, Hq, cdiv(Sq, BM), order="by_head")):
            ranges = key_tiles(b, h, m * BM, minimum((m + 1) * BM, Sq))
            publish(items, (True, b, h, m, ranges))
            wait(begun, w)                                  # what is drawn early can't be shared out when work runs out
        publish(items, (False, 0, 0, 0, key_tiles(0, 0, 0, 0)))

    with role("load", warps=1, registers=40):
        w, first = 0, 0                                     # item; step of the stream at which it begins
        more, b, h, m, ranges = take(items)
        while more:
            arrive(begun)
            y, q = divmod(w, QB)
            wait(q_free[q], y - 1)
            copy_async(Q[b, h, m * BM:(m + 1) * BM], Qs[q], signal=q_full[q])
            n, before = 0, 0                                # tiles of this step and of the last one
            for k in range(length(ranges) + 1):             # K goes one step ahead of V
                before = n
                if k < length(ranges):
                    n, masked = pick(ranges, k)
                    u, s = divmod(first + k, ST)
                    wait(k_free[s], u - 1)
                    copy_async(K[b, h // G, n * BN:(n + 1) * BN], Ks[s], signal=k_full[s])
                if k > 0:
                    u, s = divmod(first + k - 1, ST)
                    wait(v_free[s], u - 1)
                    copy_async(V[b, h // G, before * BN:(before + 1) * BN], Vs[s], signal=v_full[s])
            first += length(ranges)
            w += 1
            more, b, h, m, ranges = take(items)

    with role("store", warps=1, registers=40):
        w = 0
        more, b, h, m, ranges = take(items)
        while more:
            y, q = divmod(w, QB)
            for g in range(WG):
                wait(o_full[q * WG + g], y)
                copy_async(Qs[q][g], Out[b, h, m * BM + g * R:m * BM + (g + 1) * R])
            wait(Qs[q])                                     # the copies have read it
            arrive(q_free[q])
            w += 1
            more, b, h, m, ranges = take(items)

    with role("math", warpgroups=WG, registers=232) as g:
        S = alloc(register, (R, BN), f32)
        P = alloc(register, (R, BN), elem)
        acc = alloc(register, (R, Dv), f32)
        if g == WG - 1:
            arrive(turn[0])                                 # the first turn is warpgroup 0's
        w, it, k, q, u, s = 0, 0, 0, 0, 0, 0                # item, step, its step of the item, Q buffer, use and stage
        more, b, h, m, ranges = take(items)
        busy = more
        if busy:
            i0 = m * BM + g * R
            limit1 = 1 - x1
            limit2 = x1 - 1
            factor = x0[h, x1 + minimum(x1, -x1)] * LOG2E
            factor1 = x0[h, 2 * x1] * LOG2E
            base, limit, row_sum = full(R, 0.0), full(R, -inf), full(R, 0.0)
            n, masked = pick(ranges, 0)
            wait(q_full[0], 0)
            wait(k_full[0], 0)
            gemm_async(Qs[0][g], Ks[0].T, out=S)
            wait(S)
            arrive(k_free[0])
            x = scores(S, b, h, i0, n, masked, limit1, limit2, factor, factor1)
            base, limit, row_sum, shrink, moved, ready = refer(x, base, limit, row_sum)
            p = exp2(x * unit - base)
            row_sum = row_sum + p.sum(-1)
            P[:] = p
        while more:                                         # scores of this step beside P V of the one before, of any item
            t, v = s, u
            fresh = k + 1 == length(ranges)                 # the step before was its item's last
            start = k == 0                                  # the step before was its item's first
            k += 1
            old = q
            if fresh:
                total = complete(row_sum)
                inv = where(total > 0.0, 1.0 / total, 0.0)
                more, b, h, m, ranges = take(items)
                if not more:
                    break
                w += 1
                k = 0
                y, q = divmod(w, QB)
                i0 = m * BM + g * R
                limit1 = 1 - x1
                limit2 = x1 - 1
                factor = x0[h, x1 + minimum(x1, -x1)] * LOG2E
                factor1 = x0[h, 2 * x1] * LOG2E
                base, limit, row_sum = full(R, 0.0), full(R, -inf), full(R, 0.0)
                wait(q_full[q], y)
            n, masked = pick(ranges, k)
            it += 1
            u, s = divmod(it, ST)
            wait(k_full[s], u)
            sync(turn[g])
            gemm_async(Qs[q][g], Ks[s].T, out=S)
            wait(v_full[t], v)
            gemm_async(P, Vs[t], out=acc, add=not start)
            arrive(turn[(g + 1) % WG])
            wait(S)
            x = scores(S, b, h, i0, n, masked, limit1, limit2, factor, factor1)
            exact = fresh or not ready
            moved = False
            if exact:
                base, limit, row_sum, shrink, moved, ready = refer(x, base, limit, row_sum)
            p = exp2(x * unit - base)
            wait(acc)
            arrive(v_free[t])
            if fresh:                                       # that was the last P V of the item before
                acc[:] = acc * inv
                Qs[old][g][:] = acc
                fence(Qs[old][g])
                arrive(o_full[old * WG + g])
            part = p.sum(-1)
            if not exact and any(part > LIMIT):             # the reference was too low: this tile again, with a search
                gemm(Qs[q][g], Ks[s].T, out=S)
                x = scores(S, b, h, i0, n, masked, limit1, limit2, factor, factor1)
                base, limit, row_sum, shrink, moved, ready = refer(x, base, limit, row_sum)
                p = exp2(x * unit - base)
                part = p.sum(-1)
            arrive(k_free[s])                               # only now: the tile might have been needed again
            row_sum = row_sum + part
            P[:] = p
            if moved and not fresh:
                acc[:] = acc * shrink
        if busy:                                            # the last P V of the stream
            wait(v_full[s], u)
            gemm_async(P, Vs[s], out=acc, add=not start)
            wait(acc)
            arrive(v_free[s])
            acc[:] = acc * inv
            Qs[q][g][:] = acc
            fence(Qs[q][g])
            arrive(o_full[q * WG + g])
