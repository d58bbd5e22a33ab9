# mask
# key ranges: closed form
# order of work items
# cap: scores far below it
# pointwise weights
@kernel(arch="sm_90a", expert="prefill_sm90", ctas="sms")
def attention(
    Q: elem[B, Hq, Sq, D],
    K: elem[B, Hk, Sk, D],
    V: elem[B, Hk, Sk, Dv],
    Out: elem[B, Hq, Sq, Dv],
    ticket: counter,
    x0: i32,
    x1: f32,
    *, BM=128, BN=128, ST=2, QB=2, WG=2, D=128, Dv=128, elem=bf16):
    R = BM // WG
    G = Hq // Hk
    scale = sqrt(D)
    scale1 = LOG2E * 2.0
    scale2 = 2.0 * LOG2E / sqrt(D)
    scale3 = 1.0 / sqrt(D)
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
        some = clamp(maximum(x0, i1), 0, Sk)
        every = clamp(maximum(x0, i0 + 1), 0, Sk)
        return [(every // BN, cdiv(some, BN), True), (0, every // BN, False)]

    def scores(S, b, h, i0, n, masked, factor, factor1, factor2, factor3, factor4, factor5, factor6):
        i, j = rows(i0, R), cols(n * BN, BN)
        far = any(~(abs(S) <= factor))
        if far:
            x = 1.0 / (exp2(factor1 * (1.0 / (exp2(S * factor2) + 1.0)) + factor3) + 1.0)
        else:
            x = logistic_small(factor6 - tanh_small(S * factor5) * factor4)
        if masked:
            x = where(j < minimum(Sk, maximum(x0, i + 1)), x, 0.0)
        return x

    with role("decide", warps=1, registers=40):             # beside the copies, so that short items don't wait for it
        for w, (b, h, m) in enumerate(draw(ticket, B, Hq, cdiv(Sq, BM), order="heaviest_first")):
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
            factor = minimum((21.0 - abs(-log(f32(Sk)))) / abs(x1), 0.5) * abs(x1 * scale)
            factor1 = x1 * scale1
            factor2 = scale2 / x1
            factor3 = log2(f32(Sk)) - x1 * LOG2E
            factor4 = x1 * LOG2E
            factor5 = scale3 / x1
            factor6 = log2(f32(Sk))
            n, masked = pick(ranges, 0)
            wait(q_full[0], 0)
            wait(k_full[0], 0)
            gemm_async(Qs[0][g], Ks[0].T, out=S)
            wait(S)
            arrive(k_free[0])
            x = scores(S, b, h, i0, n, masked, factor, factor1, factor2, factor3, factor4, factor5, factor6)
            P[:] = x
        while more:                                         # scores of this step beside P V of the one before, of any item
            t, v = s, u
            fresh = k + 1 == length(ranges)                 # the step before was its item's last
            start = k == 0                                  # the step before was its item's first
            k += 1
            old = q
            if fresh:
                more, b, h, m, ranges = take(items)
                if not more:
                    break
                w += 1
                k = 0
                y, q = divmod(w, QB)
                i0 = m * BM + g * R
                factor = minimum((21.0 - abs(-log(f32(Sk)))) / abs(x1), 0.5) * abs(x1 * scale)
                factor1 = x1 * scale1
                factor2 = scale2 / x1
                factor3 = log2(f32(Sk)) - x1 * LOG2E
                factor4 = x1 * LOG2E
                factor5 = scale3 / x1
                factor6 = log2(f32(Sk))
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
            arrive(k_free[s])
            x = scores(S, b, h, i0, n, masked, factor, factor1, factor2, factor3, factor4, factor5, factor6)
            wait(acc)
            arrive(v_free[t])
            if fresh:                                       # that was the last P V of the item before
                Qs[old][g][:] = acc
                fence(Qs[old][g])
                arrive(o_full[old * WG + g])
            P[:] = x
        if busy:                                            # the last P V of the stream
            wait(v_full[s], u)
            gemm_async(P, Vs[s], out=acc, add=not start)
            wait(acc)
            arrive(v_free[s])
            Qs[q][g][:] = acc
            fence(Qs[q][g])
            arrive(o_full[q * WG + g])
