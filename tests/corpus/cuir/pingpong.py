@kernel(arch="sm_90a", expert="pingpong", ctas="sms")
def attention(
    Q: elem[B, Hq, Sq, D],
    K: elem[B, Hk, Sk, D],
    V: elem[B, Hk, Sk, Dv],
    Out: elem[B, Hq, Sq, Dv],
    Lse: f32[B, Hq, Sq],
    scale: f32,
    *, BM=128, BN=128, ST=2, WG=2, D=128, Dv=128, elem=bf16):
    R = BM // WG
    G = Hq // Hk
    unit = scale * LOG2E
    Qs = alloc(shared, (WG, R, D), elem)                    # stages the output once Q is used up
    Ks = alloc(shared, (ST, BN, D), elem)
    Vs = alloc(shared, (ST, BN, Dv), elem)
    q_full, q_free = barrier(1), barrier(WG)
    k_full, k_free = barrier(1, n=ST), barrier(WG, n=ST)
    v_full, v_free = barrier(1, n=ST), barrier(WG, n=ST)
    turn = named_barrier(2, n=WG)                           # one warpgroup issues while the other computes
    tiles = channel(2, takers=WG)

    def key_tiles(b, h, i0, i1):
        whole = Sk // BN
        return [(whole, cdiv(Sk, BN), True), (0, whole, False)]

    def attend(S, row_max, row_sum, b, h, i0, n, masked):
        i, j = rows(i0, R), cols(n * BN, BN)
        x = S
        if masked:
            x = where(j < Sk, x, -inf)
        new_max = maximum(row_max, x.amax(-1))
        ref = where(new_max == -inf, 0.0, new_max)          # a row that has seen no key yet
        shrink = exp2(row_max * unit - ref * unit)
        p = exp2(x * unit - ref * unit)
        row_sum = row_sum * shrink + p.sum(-1)
        return p, new_max, row_sum, shrink

    with role("load", warps=1, registers=40):
        step = 0                                            # of all items; stage step % ST, used for the step // ST-th time
        for w, (b, h, m) in enumerate(bind(B, Hq, cdiv(Sq, BM), order="heaviest_first")):
            wait(q_free, w - 1)
            copy_async(Q[b, h, m * BM:(m + 1) * BM], Qs, signal=q_full)
            for n, masked, more in walk(key_tiles(b, h, m * BM, minimum((m + 1) * BM, Sq))):
                publish(tiles, (n, masked, more))
                use, s = divmod(step, ST)
                wait(k_free[s], use - 1)
                copy_async(K[b, h // G, n * BN:(n + 1) * BN], Ks[s], signal=k_full[s])
                wait(v_free[s], use - 1)
                copy_async(V[b, h // G, n * BN:(n + 1) * BN], Vs[s], signal=v_full[s])
                step += 1

    with role("math", warpgroups=WG, registers=232) as g:
        S = alloc(register, (R, BN), f32)
        P = alloc(register, (R, BN), elem)
        acc = alloc(register, (R, Dv), f32)
        step = 0
        if g == 1:
            arrive(turn[0])                                 # the other one begins
        for w, (b, h, m) in enumerate(bind(B, Hq, cdiv(Sq, BM), order="heaviest_first")):
            i0 = m * BM + g * R
            row_max, row_sum = full(R, -inf), full(R, 0.0)
            acc[:] = 0.0
            n, masked, more = take(tiles)
            use, s = divmod(step, ST)
            wait(q_full, w)
            wait(k_full[s], use)
            gemm_async(Qs[g], Ks[s].T, out=S)
            wait(S)
            arrive(k_free[s])
            p, row_max, row_sum, shrink = attend(S, row_max, row_sum, b, h, i0, n, masked)
            P[:] = p
            while more:                                     # scores of this tile beside P V of the tile before
                n, masked, more = take(tiles)
                t, past = s, use
                step += 1
                use, s = divmod(step, ST)
                wait(k_full[s], use)
                sync(turn[g])
                gemm_async(Qs[g], Ks[s].T, out=S)
                wait(v_full[t], past)
                gemm_async(P, Vs[t], add=acc)
                arrive(turn[1 - g])
                wait(S)
                arrive(k_free[s])
                p, row_max, row_sum, shrink = attend(S, row_max, row_sum, b, h, i0, n, masked)
                wait(acc)
                arrive(v_free[t])
                acc[:] = acc * shrink
                P[:] = p
            wait(v_full[s], use)
            gemm_async(P, Vs[s], add=acc)
            wait(acc)
            arrive(v_free[s])
            step += 1
            total = complete(row_sum)
            inv = where(total > 0.0, 1.0 / total, 0.0)      # a row without a key gives 0
            lse = where(total > 0.0, (row_max * unit + log2(total)) * LN2, -inf)
            Lse[b, h, i0:i0 + R] = lse
            acc[:] = acc * inv
            Qs[g][:] = acc
            fence(Qs[g])                                    # written by threads, read by the copy engine
            copy_async(Qs[g], Out[b, h, i0:i0 + R])
            wait(Qs[g])                                     # the copy has read it
            arrive(q_free)
