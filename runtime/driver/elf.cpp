// Bounds and tables of an ELF file.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/driver/elf.h"
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

std::optional<std::string_view> string_at(std::span<const std::byte> table, std::uint64_t offset) {
    if (offset == 0) return std::string_view();
    if (offset >= table.size()) return std::nullopt;
    const auto* begin = reinterpret_cast<const char*>(table.data()) + offset;
    const auto* end = static_cast<const char*>(std::memchr(begin, 0, table.size() - offset));
    if (end == nullptr) return std::nullopt;
    return std::string_view(begin, static_cast<std::size_t>(end - begin));
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

std::optional<Elf> read_elf(std::span<const std::byte> image) {
    if (!is_whole_elf(image)) return std::nullopt;
    const auto header = read<Elf64_Ehdr>(image, 0);
    Elf out;
    std::vector<std::uint64_t> names;
    for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
        const auto s = read<Elf64_Shdr>(image, header.e_shoff + i * sizeof(Elf64_Shdr));
        Elf::Section section;
        section.type = s.sh_type, section.link = s.sh_link, section.info = s.sh_info;
        section.flags = s.sh_flags, section.size = s.sh_size;
        if (s.sh_type != SHT_NOBITS && s.sh_type != SHT_NULL) section.bytes = image.subspan(s.sh_offset, s.sh_size);
        out.sections.push_back(section);
        names.push_back(s.sh_name);
    }
    if (header.e_shstrndx >= out.sections.size()) return std::nullopt;
    for (std::size_t i = 0; i < names.size(); ++i) {
        const auto name = string_at(out.sections[header.e_shstrndx].bytes, names[i]);
        if (!name) return std::nullopt;
        out.sections[i].name = *name;
    }
    std::optional<std::size_t> table; // a cubin has one
    for (std::size_t i = 0; i < out.sections.size(); ++i) {
        const auto& section = out.sections[i];
        if (section.type != SHT_SYMTAB) continue;
        if (table || section.link >= out.sections.size()) return std::nullopt;
        table = i;
        for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= section.bytes.size(); at += sizeof(Elf64_Sym)) {
            const auto s = read<Elf64_Sym>(section.bytes, at);
            const auto name = string_at(out.sections[section.link].bytes, s.st_name);
            const bool special = s.st_shndx >= SHN_LORESERVE;
            if (!name || (!special && s.st_shndx >= out.sections.size())) return std::nullopt;
            out.symbols.push_back({*name, static_cast<std::uint8_t>(ELF64_ST_BIND(s.st_info)),
                                   static_cast<std::uint8_t>(ELF64_ST_TYPE(s.st_info)), s.st_other, s.st_shndx,
                                   s.st_size});
        }
    }
    for (const auto& section : out.sections) {
        if (section.type != SHT_REL && section.type != SHT_RELA) continue;
        const auto bytes = section.type == SHT_REL ? sizeof(Elf64_Rel) : sizeof(Elf64_Rela);
        if (section.info >= out.sections.size()) return std::nullopt;
        for (std::uint64_t at = 0; at + bytes <= section.bytes.size(); at += bytes) {
            const auto symbol = ELF64_R_SYM(read<Elf64_Rel>(section.bytes, at).r_info); // which begins both
            if (symbol >= out.symbols.size()) return std::nullopt;
            out.relocations.push_back({section.info, symbol});
        }
    }
    return out;
}

} // namespace cubridge::runtime
