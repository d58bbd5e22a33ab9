// Which lines of a file belong to which statement. SPDX-License-Identifier: Apache-2.0
#include "ir/lower/regions.h"

namespace cubridge::ir::lower {

using cuir::Statement;

namespace {

class Walker {
public:
    explicit Walker(const Margin& margin) : margin_(margin) {}

    Places run(const cuir::Program& program) {
        for (const auto& s : program.storage) start(s);
        for (const auto& k : program.kernels) {
            for (const auto& s : k.head) start(s);
            block(k.body);
            close(k.head[1]);
        }
        if (at_ != margin_.segments.size()) fail("margin", "a margin line that belongs to no statement", line(at_));
        return std::move(out_);
    }

private:
    Span line(std::size_t at) const {
        const int l = at < margin_.segments.size() ? margin_.segments[at].line : margin_.segments.back().line;
        return {l, 1, l, 1};
    }

    /// One margin line a statement: continuation lines would hide where the CUDA belongs.
    void start(const Statement& s) {
        const bool first = at_ < margin_.segments.size() && margin_.segments[at_].line == s.line;
        if (!first) fail("margin", "`" + cuir::line_of(s) + "` is not where its margin line is", line(at_));
        out_[&s].open = at_++;
    }

    void block(const std::vector<Statement>& body) {
        for (const auto& s : body) {
            start(s);
            if (!s.opens_block()) continue;
            block(s.body);
            close(s);
        }
    }

    void close(const Statement& s) {
        if (at_ >= margin_.segments.size() || !closes(margin_.segments[at_]))
            fail("margin", "the block of `" + cuir::line_of(s) + "` is not closed by `# end` here", line(at_));
        out_[&s].close = at_++;
    }

    const Margin& margin_;
    Places out_;
    std::size_t at_ = 0;
};

} // namespace

Result<Places> places_of(const Margin& margin, const cuir::Program& program) {
    try {
        return Walker(margin).run(program);
    } catch (const Failure& f) {
        return f.error;
    }
}

} // namespace cubridge::ir::lower
