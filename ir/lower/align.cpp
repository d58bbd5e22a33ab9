// Alignment of statement trees. SPDX-License-Identifier: Apache-2.0
#include "ir/lower/align.h"
#include <algorithm>

namespace cubridge::ir::lower {

using cuir::Statement;
using Body = std::vector<Statement>;

const std::string& Alignment::key(const Analysis& of, const Statement& s) {
    auto [it, fresh] = keys_.try_emplace(&s);
    if (fresh) it->second = of.key(s);
    return it->second;
}

bool Alignment::equal(const Statement& a, const Statement& b) {
    return key(expert_, a) == key(target_, b);
}

int Alignment::weight(const Statement& a, const Statement& b) {
    if (a.kind != b.kind || (a.kind == Statement::Kind::Def && a.name != b.name)) return 0;
    if (!a.opens_block()) return equal(a, b) ? 4 : 0;
    const auto [it, fresh] = weights_.try_emplace({&a, &b}, 0);
    if (!fresh) return it->second;
    int w = 1 + total(a.body, b.body, nullptr);
    if (cuir::same_line(a, b)) w += 2;
    if (equal(a, b)) w += 2;
    weights_[{&a, &b}] = w;
    return w;
}

int Alignment::total(const Body& a, const Body& b, std::vector<const Statement*>* out) {
    const std::size_t n = a.size(), m = b.size();
    std::vector<int> best((n + 1) * (m + 1), 0);
    const auto at = [&](std::size_t i, std::size_t j) -> int& { return best[i * (m + 1) + j]; };
    for (std::size_t i = n; i-- > 0;)
        for (std::size_t j = m; j-- > 0;) {
            const int w = weight(a[i], b[j]);
            at(i, j) = std::max({at(i + 1, j), at(i, j + 1), w > 0 ? w + at(i + 1, j + 1) : 0});
        }
    if (out != nullptr) {
        out->assign(m, nullptr);
        for (std::size_t i = 0, j = 0; i < n && j < m;) {
            const int w = weight(a[i], b[j]);
            if (w > 0 && at(i, j) == w + at(i + 1, j + 1)) {
                (*out)[j] = &a[i];
                ++i, ++j;
            } else if (at(i, j) == at(i + 1, j)) {
                ++i;
            } else {
                ++j;
            }
        }
    }
    return at(0, 0);
}

std::vector<const Statement*> Alignment::align(const Body& a, const Body& b) {
    std::vector<const Statement*> out;
    total(a, b, &out);
    return out;
}

} // namespace cubridge::ir::lower
