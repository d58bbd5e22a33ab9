// SHA-256 digests, and how values of several parts are hashed: by length-prefixed fields, so that no two lists of parts
// collide. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace cubridge::cache {

/// 32 bytes, a plain value. The default is all zeros, which names nothing.
struct Digest {
    std::array<std::uint8_t, 32> bytes{};

    /// Lower case, two digits a byte; `digits` keeps only the first so many (for names and log lines).
    std::string hex(std::size_t digits = 64) const;
    /// Exactly 64 digits of either case, else nothing.
    static std::optional<Digest> from_hex(std::string_view text);

    friend bool operator==(const Digest&, const Digest&) = default;
    friend std::strong_ordering operator<=>(const Digest&, const Digest&) = default; // NOLINT(modernize-use-nullptr)
};

/// Of the bytes alone, without a length. Throws only std::bad_alloc.
Digest sha256(std::string_view bytes);

/// Hashes fields: each is its length (64 bits, little-endian) and its bytes; a number is a field of 8 bytes. For one
/// thread at a time. Throws only std::bad_alloc.
class Digester {
public:
    /// `domain` is the first field: the name and version of what is hashed, so that values of two kinds never share a
    /// digest.
    explicit Digester(std::string_view domain);
    Digester(Digester&&) noexcept;
    Digester& operator=(Digester&&) noexcept;
    ~Digester();

    Digester& field(std::string_view bytes);
    Digester& field(const Digest& digest);
    Digester& number(std::int64_t value);
    /// Ends the hash; the object can only be destroyed or assigned to afterwards.
    Digest finish();

private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace cubridge::cache

template <> struct std::hash<cubridge::cache::Digest> {
    std::size_t operator()(const cubridge::cache::Digest& digest) const noexcept {
        std::size_t value; // any part of a SHA-256 is as good as another
        std::memcpy(&value, digest.bytes.data(), sizeof value);
        return value;
    }
};
