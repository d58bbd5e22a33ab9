// The steps of a generic kernel on the host, in float64: the same values in the same order as the kernel computes them,
// from the same argument block (with host pointers). Dense layout. Tests compare it with the text, and kernels with it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/ir/kernel_abi.h"
#include "ir/generic/generic.h"

namespace cubridge::ir::generic {

struct HostResult {
    std::vector<double> o; ///< [requests, output heads, max_q, head_dim_v], contiguous; rows beyond a request's stay 0
    std::vector<double> lse; ///< [requests, output heads, max_q]; empty where none was asked
};

/// Reads every pointer of `args` but o, lse and workspace. Errors as print(); "unsupported" for other layouts.
Result<HostResult> run(const Scalar& scalar, const Request& request, const Options& options, const abi::cb_args& args);

/// Element i of host memory of type t as float64; integers beyond 2^53 lose bits.
double host_element(const void* data, DType t, std::int64_t i);

} // namespace cubridge::ir::generic
