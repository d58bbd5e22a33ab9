// Texts: parsed once, kept until the engine goes.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/registry/text.h"
#include "cubridge/runtime/json.h"

namespace cubridge::runtime {
namespace {

cache::Digest digest_of(const ir::Source& source) {
    cache::Digester id("cubridge-text-1");
    id.field(source.text).field(source.function).field(source.mask);
    for (const auto& [name, setting] : source.settings) {
        id.field(name).number(static_cast<std::int64_t>(setting.kind)).field(Json(setting.value).text());
        id.number(setting.dtype ? static_cast<std::int64_t>(*setting.dtype) : -1).number(setting.rank.value_or(-1));
    }
    return id.finish();
}

std::vector<std::string> operands_of(const ir::Specification& specification) {
    std::vector<std::string> out;
    const auto& inputs = specification.inputs();
    for (std::size_t n = 3; n < inputs.size(); ++n)
        if (inputs[n].fate == ir::Input::Fate::Operand) out.push_back(inputs[n].name);
    return out;
}

} // namespace

Text::Text(std::unique_ptr<State> state) : state_(std::move(state)), owner_(state_->owner) {}
Text::~Text() = default;

const ir::Specification& Text::specification() const {
    return *state_->specification;
}
const std::vector<std::string>& Text::operands() const {
    return state_->operands;
}

ir::Result<std::shared_ptr<const ir::Specification>> Text::State::for_heads(int heads) const {
    if (specification->heads() == 0 || specification->heads() == heads) return specification;
    {
        const std::lock_guard lock(mutex_);
        if (const auto it = by_heads_.find(heads); it != by_heads_.end()) return it->second;
    }
    ir::ParseOptions options;
    options.heads = heads;
    auto parsed = ir::Specification::parse(specification->source(), options);
    if (!parsed) return parsed.error();
    const std::lock_guard lock(mutex_);
    return by_heads_.emplace(heads, *parsed).first->second;
}

ir::Result<const Text*> Texts::find_or_parse(const ir::Source& source) {
    const auto digest = digest_of(source);
    {
        const std::lock_guard lock(mutex_);
        if (const auto it = all_.find(digest); it != all_.end()) return it->second.get();
    }
    auto parsed = ir::Specification::parse(source);
    if (!parsed) return parsed.error();
    auto state = std::make_unique<Text::State>();
    state->owner = owner_;
    state->operands = operands_of(**parsed);
    state->title = source.function;
    state->specification = std::move(*parsed);
    auto text = std::make_unique<Text>(std::move(state));
    const std::lock_guard lock(mutex_);
    return all_.emplace(digest, std::move(text)).first->second.get(); // of two that parsed it at once, the first stays
}

} // namespace cubridge::runtime
