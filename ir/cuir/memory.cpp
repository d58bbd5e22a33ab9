// Global memory: every element written once, read across kernels only. SPDX-License-Identifier: Apache-2.0
#include "ir/cuir/memory.h"
#include "ir/cuir/order.h"
#include <cmath>
#include <fmt/format.h>

namespace cubridge::ir::cuir {

std::int64_t Tensor::size() const {
    std::int64_t n = 1;
    for (const auto e : shape) n *= e;
    return n;
}

std::string Tensor::element(std::int64_t at) const {
    std::string out;
    for (std::size_t k = shape.size(); k-- > 0; at /= shape[k])
        out = std::to_string(at % shape[k]) + (out.empty() ? "" : ", ") + out;
    return name + "[" + out + "]";
}

void Tensor::write(std::int64_t at, double value, const Step& step, int kernel) {
    const auto k = static_cast<std::size_t>(at);
    if (use == Use::Input) trouble("output", "`" + name + "` is an input and is never written");
    if (written_in[k] >= 0)
        trouble("output",
                fmt::format("{} is written twice, the first time in line {}; every element is written once",
                            element(at), writer[k]->line),
                writer[k]->line);
    if (std::isfinite(value) && std::fabs(value) > largest_of(type))
        trouble("range", fmt::format("{:.6g} in {} is beyond the range of {}", value, element(at), short_name(type)));
    values[k] = value;
    writer[k] = &step;
    written_in[k] = static_cast<std::int16_t>(kernel);
}

double Tensor::read(std::int64_t at, int kernel) const {
    const auto k = static_cast<std::size_t>(at);
    if (use == Use::Input) return input[k];
    if (written_in[k] < 0) trouble("unwritten", element(at) + " is read and was never written");
    if (written_in[k] == kernel)
        trouble("race",
                fmt::format("{} was written in this kernel (line {}); what a kernel writes is read by a later one",
                            element(at), writer[k]->line),
                writer[k]->line);
    return values[k];
}

} // namespace cubridge::ir::cuir
