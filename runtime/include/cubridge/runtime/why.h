// Why a request was not answered with an exact kernel: a set of bits, numbered as cubridge.h publishes them.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

namespace cubridge::runtime::why {

enum : std::uint32_t {
    kArch = 1,
    kDtype = 2,
    kHeadDim = 4,
    kLayout = 8,
    kPhase = 16,
    kAlignment = 32,
    kLse = 64,
    kVariant = 128,
    kHeads = 256,
    kNotStored = 512,
    kNoCompiler = 1024,
    kSealed = 2048,
    kUnverified = 4096,
    kFailed = 8192,
    kBudget = 16384,
    kMemory = 32768
};

/// "VARIANT,UNVERIFIED": the words of log lines, lowest bit first.
std::string names(std::uint32_t bits);

} // namespace cubridge::runtime::why
