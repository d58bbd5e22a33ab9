// Names and sizes of storage. SPDX-License-Identifier: Apache-2.0
#include "ir/cuir/order.h"
#include <limits>

namespace cubridge::ir::cuir {

int Buffer::cells_below(int depth) const {
    int n = 1;
    for (std::size_t k = static_cast<std::size_t>(depth); k < leading.size(); ++k) n *= leading[k];
    return n;
}

std::string Buffer::name_of(int first, int depth) const {
    std::string out = name;
    for (int k = 0; k < depth; ++k) {
        const int below = cells_below(k + 1);
        out += "[" + std::to_string(first / below) + "]";
        first %= below;
    }
    return out;
}

std::string Buffer::name_of(int cell) const {
    return name_of(cell, static_cast<int>(leading.size()));
}

double largest_of(DType type) {
    switch (type) {
    case DType::F16: return 65504;
    case DType::BF16: return 3.3895313892515355e38;
    case DType::F32: return std::numeric_limits<float>::max();
    case DType::E4M3: return 448;
    case DType::E5M2: return 57344;
    case DType::I32: return std::numeric_limits<std::int32_t>::max();
    case DType::I16: return std::numeric_limits<std::int16_t>::max();
    case DType::I8: return std::numeric_limits<std::int8_t>::max();
    case DType::U8: return std::numeric_limits<std::uint8_t>::max();
    case DType::Bool: return 1;
    default: return std::numeric_limits<double>::infinity();
    }
}

} // namespace cubridge::ir::cuir
