// Builds with sanitizers are several times slower. Tests that try very many cases of a kind, to find the one that is
// wrong, take some of them there: a fault of memory shows in a few, and the ordinary build tries all.
// CUBRIDGE_ALL_CASES=1: all. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdlib>

namespace cubridge::test {

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CUBRIDGE_TEST_SANITIZED 1
#endif
#endif
#if defined(CUBRIDGE_TEST_SANITIZED) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

inline bool all_cases() {
    static const bool all = !kSanitized || std::getenv("CUBRIDGE_ALL_CASES") != nullptr;
    return all;
}

/// How many of so many random cases are drawn.
inline int some(int cases) {
    return all_cases() ? cases : cases / 16 + 1;
}

/// How many of what is counted there must be, at least: one where not all was tried.
template <class T> T at_least(T count) {
    return all_cases() || count < 1 ? count : 1;
}

/// Which cases of a list are tried: the first, and each that comes so many after one that was.
class Sample {
public:
    explicit Sample(int every = 16) : every_(all_cases() ? 1 : every) {}
    bool skips() { return met_++ % every_ != 0; }

private:
    int every_, met_ = 0;
};

} // namespace cubridge::test
