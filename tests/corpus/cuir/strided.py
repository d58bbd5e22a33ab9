@kernel(arch="sm_80", expert="example", ctas="items")
def attention(
    Q: elem[B, Hq, Sq, D],
    K: elem[B, Hk, Sk, D],
    V: elem[B, Hk, Sk, Dv],
    Out: elem[B, Hq, Sq, Dv],
    Lse: f32[B, Hq, Sq],
    *, BM=128, BN=64, W=4, T=4, D=128, Dv=128, elem=bf16):
    R = BM // W
    G = Hq // Hk
    unit = LOG2E / sqrt(D)
    Qs = alloc(shared, (W, R, D), elem)                     # later stages the output
    Ks = alloc(shared, (BN, D), elem)
    Vs = alloc(shared, (BN, Dv), elem)
    everyone = named_barrier(W)

    def weights(S, row_max, row_sum, n, count):
        x = where(cols(n * BN, BN) < count, S, -inf)
        new_max = maximum(row_max, x.amax(-1))
        ref = where(new_max == -inf, 0.0, new_max)
        shrink = exp2(row_max * unit - ref * unit)
        p = exp2(x * unit - ref * unit)
        return p, new_max, row_sum * shrink + p.sum(-1), shrink

    with role("math", warps=W, registers=255) as g:
        S = alloc(register, (R, BN), f32)
        P = alloc(register, (R, BN), elem)
        acc = alloc(register, (R, Dv), f32)
        for b, h, m in bind(B, Hq * T, cdiv(Sq, BM * T), order="by_head"):  # rows T * i + c of a head
            c = h % T
            i0 = m * BM + g * R
            row_max, row_sum = full(R, -inf), full(R, 0.0)
            acc[:] = 0.0
            copy_async(Q[b, h // T, m * BM * T + c:(m + 1) * BM * T + c:T], Qs)
            for y in range(T):                              # one class of keys behind the other
                count = cdiv(Sk - y, T)
                for n in range(cdiv(count, BN)):
                    copy_async(K[b, h // T // G, n * BN * T + y:(n + 1) * BN * T + y:T], Ks)
                    copy_async(V[b, h // T // G, n * BN * T + y:(n + 1) * BN * T + y:T], Vs)
                    wait(Vs)
                    sync(everyone)
                    gemm(Qs[g], Ks.T, out=S)
                    p, row_max, row_sum, shrink = weights(S, row_max, row_sum, n, count)
                    acc[:] = acc * shrink
                    P[:] = p
                    gemm(P, Vs, add=acc)
                    sync(everyone)                          # all have read K and V before they are filled again
            total = complete(row_sum)
            inv = where(total > 0.0, 1.0 / total, 0.0)
            lse = where(total > 0.0, (row_max * unit + log2(total)) * LN2, -inf)
            Lse[b, h // T, i0 * T + c:(i0 + R) * T + c:T] = lse
            acc[:] = acc * inv
            wait(Qs)                                        # there may have been no keys
            sync(everyone)
            Qs[g][:] = acc
            copy(Qs[g], Out[b, h // T, i0 * T + c:(i0 + R) * T + c:T])
            sync(everyone)                                  # all have read their rows of Q and of the output
