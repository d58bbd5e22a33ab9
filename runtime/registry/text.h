// What a Text holds, and the texts of one engine. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/cache/digest.h"
#include "cubridge/runtime/engine.h"
#include <map>
#include <mutex>
#include <unordered_map>

namespace cubridge::runtime {

struct Text::State {
    const void* owner = nullptr;
    std::shared_ptr<const ir::Specification> specification;
    std::vector<std::string> operands;
    std::string title; ///< for people: the function's name

    /// The specification for a model with so many query heads: another one only where the text computes with them.
    /// Parses outside any lock of the engine.
    ir::Result<std::shared_ptr<const ir::Specification>> for_heads(int heads) const;

private:
    mutable std::mutex mutex_;
    mutable std::map<int, std::shared_ptr<const ir::Specification>> by_heads_;
};

/// Texts by their source. Any thread.
class Texts {
public:
    explicit Texts(const void* owner) : owner_(owner) {}
    ir::Result<const Text*> find_or_parse(const ir::Source& source);

private:
    const void* const owner_;
    std::mutex mutex_;
    std::unordered_map<cache::Digest, std::unique_ptr<Text>> all_;
};

} // namespace cubridge::runtime
