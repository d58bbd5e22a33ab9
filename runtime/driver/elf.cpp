// Bounds of an ELF file.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/driver/elf.h"
#include <cstdint>
#include <cstring>
#include <elf.h>

namespace cubridge::runtime {
namespace {

bool inside(std::span<const std::byte> image, std::uint64_t offset, std::uint64_t bytes) {
    return offset <= image.size() && bytes <= image.size() - offset;
}

/// `offset` is inside, and need not be aligned.
template <class T> T read(std::span<const std::byte> image, std::uint64_t offset) {
    T value;
    std::memcpy(&value, image.data() + offset, sizeof value);
    return value;
}

} // namespace

bool is_whole_elf(std::span<const std::byte> image) {
    if (image.size() < sizeof(Elf64_Ehdr)) return false;
    const auto header = read<Elf64_Ehdr>(image, 0);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_ident[EI_DATA] != ELFDATA2LSB)
        return false;
    constexpr int kCudaMachine = 190; // EM_CUDA. The driver itself takes another machine's number: seen on an H200
    if (header.e_machine != kCudaMachine) return false;
    if (header.e_phnum > 0 && header.e_phentsize != sizeof(Elf64_Phdr)) return false;
    if (header.e_shnum > 0 && header.e_shentsize != sizeof(Elf64_Shdr)) return false;
    if (!inside(image, header.e_phoff, std::uint64_t{header.e_phnum} * sizeof(Elf64_Phdr))) return false;
    if (!inside(image, header.e_shoff, std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr))) return false;
    for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
        const auto segment = read<Elf64_Phdr>(image, header.e_phoff + i * sizeof(Elf64_Phdr));
        if (!inside(image, segment.p_offset, segment.p_filesz)) return false;
    }
    for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
        const auto section = read<Elf64_Shdr>(image, header.e_shoff + i * sizeof(Elf64_Shdr));
        if (section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL &&
            !inside(image, section.sh_offset, section.sh_size))
            return false;
    }
    return header.e_shnum > 0;
}

} // namespace cubridge::runtime
