// The compiler of a machine that has none.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/runtime/compiler.h"

namespace cubridge::runtime {
namespace {

class NoCompiler final : public Compiler {
public:
    explicit NoCompiler(Fault reason) : reason_(std::move(reason)) { reason_.kind = "no_compiler"; }
    Outcome<CompileResult> compile(const CompileJob&) override { return reason_; }
    Outcome<std::string> identity() override { return reason_; }
    std::string location() const override { return {}; }

private:
    Fault reason_;
};

} // namespace

std::shared_ptr<Compiler> no_compiler(Fault reason) {
    return std::make_shared<NoCompiler>(std::move(reason));
}

} // namespace cubridge::runtime
