// Whether a cubin is whole, and what it holds. The driver is given no size and would read past the end of a torn one.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace cubridge::runtime {

/// All that a 64-bit ELF file's header, tables and sections point to lies inside `image`. Nothing is judged beyond
/// that: what a cubin may hold is the driver's business.
bool is_whole_elf(std::span<const std::byte> image);

/// Its sections and symbols; views into the image.
struct Elf {
    struct Section {
        std::string_view name;
        std::uint32_t type = 0, link = 0, info = 0;
        std::uint64_t flags = 0, size = 0;
        std::span<const std::byte> bytes; ///< empty where the file has none of it
    };
    struct Symbol {
        std::string_view name;
        std::uint8_t bind = 0, type = 0, other = 0;
        std::uint16_t section = 0; ///< SHN_UNDEF: defined elsewhere
        std::uint64_t size = 0;
    };
    /// A place that is given a symbol's address.
    struct Relocation {
        std::size_t section = 0; ///< that the place lies in
        std::size_t symbol = 0;  ///< in `symbols`
    };
    std::vector<Section> sections;
    std::vector<Symbol> symbols;
    std::vector<Relocation> relocations;
};

/// Nothing where it is not whole, or a name, a section's number or a symbol's is out of bounds.
std::optional<Elf> read_elf(std::span<const std::byte> image);

} // namespace cubridge::runtime
