// The gate of a compiled kernel: its symbols, its memory, what a launch of it takes.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/kernel_abi.h"
#include "cubridge/runtime/gate.h"
#include "runtime/driver/elf.h"
#include <algorithm>
#include <cstring>
#include <elf.h>
#include <fmt/format.h>
#include <map>

namespace cubridge::runtime {
namespace {

// Attributes of .nv.info, as ptxas writes them: a kind, a number, and a value of 16 bits or as many bytes as that says.
enum Attribute : unsigned char {
    kMaxThreads = 0x05,
    kExterns = 0x0f,
    kFrameSize = 0x11,
    kMinStackSize = 0x12,
    kParameter = 0x17,
    kRegisters = 0x2f,
    kBarriers = 0x4c,
};
constexpr unsigned char kSized = 0x04;
constexpr unsigned char kEntry = 0x10; // of a symbol's `other`
constexpr int kRegistersOfABlock = 65536, kSharedOfABlock = 232448, kSharedOfTheDriver = 1024;

[[noreturn]] void refuse(std::string_view rule, const std::string& what, std::string hint = {}) {
    throw Fault{"gate", fmt::format("cubin: {}: {}", rule, what), std::move(hint)};
}

/// What the compiler itself adds where the text has asked for nothing.
bool of_the_compiler(std::string_view name) {
    static constexpr std::string_view known[] = {"",
                                                 ".nv.reservedSmem.offset0",
                                                 "__nv_reservedSMEM_offset_0_alias",
                                                 "__cudart_i2opi_f",
                                                 "__cudart_i2opi_d",
                                                 "__cudart_sin_cos_coeffs"};
    return std::find(std::begin(known), std::end(known), name) != std::end(known) ||
           name.substr(0, 11) == "$__internal";
}

std::uint32_t number(std::span<const std::byte> bytes, std::size_t at) {
    std::uint32_t value = 0;
    if (at + sizeof value <= bytes.size()) std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
}

class Gate {
public:
    Gate(const Elf& elf, const Declared& declared, const Constants& constants)
        : elf_(elf), declared_(declared), constants_(constants) {}

    void run() {
        sections();
        symbols();
        for (const auto& r : elf_.relocations) relocation(r);
        attributes();
        for (const auto& kernel : declared_.kernels) launch(kernel);
    }

private:
    struct Seen {
        int threads = 0, registers = 0, stack = 0, barriers = 0, shared = 0, parameters = 0;
        bool defined = false;
    };

    /// Of a kernel that was declared, by what stands after the prefix; null where that is no name of one.
    Seen* seen(std::string_view name) {
        for (const auto& kernel : declared_.kernels)
            if (kernel.name == name) return &seen_[kernel.name];
        return nullptr;
    }

    void sections() {
        for (const auto& s : elf_.sections) {
            const auto rest = [&](std::string_view prefix) {
                return s.name.substr(0, prefix.size()) == prefix ? s.name.substr(prefix.size()) : std::string_view();
            };
            if (s.name == ".nv.global" && s.size > 0)
                refuse("memory", fmt::format("{} bytes of memory that outlive a launch", s.size),
                       "no __device__ variables");
            if (const auto bank = rest(".nv.constant");
                !bank.empty() && s.size > 0 && bank[0] != '0' && bank[0] != '2' && bank[0] != '4')
                refuse("memory", fmt::format("{} bytes of constants in bank {}", s.size, bank),
                       "no __constant__ variables");
            if (const auto name = rest(".text."); !name.empty() && seen(name) == nullptr)
                refuse("kernel", fmt::format("code of `{}`, which is not declared", name));
            if (const auto name = rest(".nv.shared."); !name.empty())
                if (auto* kernel = seen(name))
                    kernel->shared = static_cast<int>(std::min<std::uint64_t>(s.size, 1u << 30));
        }
    }

    void symbols() {
        for (const auto& s : elf_.symbols) {
            if (of_the_compiler(s.name) || s.type == STT_SECTION || s.type == STT_FILE) continue;
            if (s.section == SHN_UNDEF)
                refuse("symbol", fmt::format("`{}` is defined elsewhere", s.name),
                       "a kernel calls nothing outside of its text");
            if (s.type == STT_FUNC && (s.bind != STB_LOCAL || (s.other & kEntry) != 0)) {
                auto* kernel = seen(s.name);
                if (kernel == nullptr || (s.other & kEntry) == 0)
                    refuse("kernel", fmt::format("the function `{}` is not declared", s.name));
                kernel->defined = true;
            } else if (s.type == STT_OBJECT &&
                       elf_.sections[s.section < elf_.sections.size() ? s.section : 0].name == ".nv.global.init") {
                const bool table = declared_.tables && s.name.substr(0, 8) == "cb_table";
                if (!table && !is_constant(s))
                    refuse("memory", fmt::format("`{}`, {} bytes of memory that outlive a launch", s.name, s.size),
                           "constexpr numbers alone lie outside of functions");
            } else if (s.bind != STB_LOCAL) {
                refuse("symbol", fmt::format("`{}` can be seen from outside", s.name));
            }
        }
    }

    /// A number under its name, or under what the compiler makes of a member's: _ZN4CellI..E5kRowsE.
    bool is_constant(const Elf::Symbol& s) const {
        return s.size <= sizeof(double) &&
               std::any_of(constants_.begin(), constants_.end(), [&](const std::string& name) {
                   const auto part = fmt::format("{}{}", name.size(), name);
                   const auto at = s.name.rfind(part);
                   return s.name == name || (s.name.substr(0, 2) == "_Z" && at != s.name.npos &&
                                             (at + part.size() == s.name.size() || s.name[at + part.size()] == 'E'));
               });
    }

    void relocation(const Elf::Relocation& r) const {
        const auto& symbol = elf_.symbols[r.symbol];
        const auto place = elf_.sections[r.section].name;
        if (symbol.section == SHN_UNDEF && (symbol.name.empty() || !of_the_compiler(symbol.name)))
            refuse("symbol", fmt::format("{} needs `{}`, which is defined elsewhere", place, symbol.name));
    }

    // ---- What a launch takes --------------------------------------------------------------------------------------
    void attributes() {
        for (const auto& s : elf_.sections) {
            if (s.name.substr(0, 8) != ".nv.info") continue;
            auto* const kernel = s.name.size() > 9 ? seen(s.name.substr(9)) : nullptr;
            for (std::size_t at = 0; at + 4 <= s.bytes.size();) {
                const auto kind = static_cast<unsigned char>(s.bytes[at]),
                           what = static_cast<unsigned char>(s.bytes[at + 1]);
                const auto value = number(s.bytes, at) >> 16;
                at += 4;
                const auto bytes =
                    s.bytes.subspan(at, kind == kSized ? std::min<std::size_t>(value, s.bytes.size() - at) : 0);
                at += bytes.size();
                attribute(kernel, what, value, bytes);
            }
        }
    }

    void attribute(Seen* kernel, unsigned char what, std::uint32_t value, std::span<const std::byte> bytes) {
        const auto n = [&](std::size_t at) { return static_cast<int>(std::min(number(bytes, at), 1u << 30)); };
        if (what == kExterns && !bytes.empty()) refuse("symbol", "a kernel calls what is defined elsewhere");
        if (what == kRegisters || what == kFrameSize || what == kMinStackSize) { // of a symbol, by its number
            const auto symbol = number(bytes, 0);
            auto* const of = symbol < elf_.symbols.size() ? seen(elf_.symbols[symbol].name) : nullptr;
            if (of == nullptr) return;
            auto& most = what == kRegisters ? of->registers : of->stack;
            most = std::max(most, n(4));
        }
        if (kernel == nullptr) return;
        if (what == kMaxThreads) {
            const auto product = std::int64_t{n(0)} * n(4) <= 1 << 20 ? std::int64_t{n(0)} * n(4) * n(8) : 0;
            kernel->threads = product <= 1024 ? static_cast<int>(product) : 0;
        }
        if (what == kBarriers) kernel->barriers = static_cast<int>(value & 0xffu);
        if (what == kParameter) {
            ++kernel->parameters;
            if (number(bytes, 8) >> 18 != sizeof(ir::abi::cb_args))
                refuse("abi", "a kernel takes another parameter than the argument block");
        }
    }

    void launch(const Declared::Kernel& kernel) {
        const auto& is = seen_[kernel.name];
        if (!is.defined) refuse("kernel", fmt::format("the kernel `{}` is declared but not there", kernel.name));
        if (is.parameters != 1) refuse("abi", fmt::format("`{}` takes {} parameters", kernel.name, is.parameters));
        const auto most = [&](const char* what, int has, int may) {
            if (has > may)
                refuse("launch", fmt::format("`{}` takes {} {}, {} at most are declared", kernel.name, has, what, may));
        };
        if (is.threads < std::max(kernel.threads, 1))
            refuse("launch",
                   fmt::format("`{}` may have {} threads and is launched with {}", kernel.name, is.threads,
                               kernel.threads),
                   "set its launch bounds");
        most("registers", is.registers, kernel.registers);
        most("bytes of stack", is.stack, kernel.stack);
        most("barriers", is.barriers, kernel.barriers);
        most("bytes of static shared memory", is.shared, kernel.static_shared + kSharedOfTheDriver);
        most("bytes of shared memory", is.shared + kernel.shared, kSharedOfABlock);
        most("registers a block", (is.registers + 7) / 8 * 8 * is.threads, kRegistersOfABlock);
    }

    const Elf& elf_;
    const Declared& declared_;
    const Constants& constants_;
    std::map<std::string, Seen, std::less<>> seen_;
};

} // namespace

Outcome<void> cubin_gate(std::span<const std::byte> cubin, const Declared& declared, const Constants& constants) {
    const auto elf = read_elf(cubin);
    if (!elf) return Fault{"gate", "cubin: elf: it is torn, or no cubin"};
    try {
        Gate(*elf, declared, constants).run();
    } catch (Fault& fault) {
        return std::move(fault);
    }
    return {};
}

} // namespace cubridge::runtime
