// SHA-256 by OpenSSL's libcrypto.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/cache/digest.h"
#include <new>
#include <openssl/evp.h>

namespace cubridge::cache {

namespace {

// SHA-256 is in every provider of libcrypto; what can fail is memory.
void require(int result) {
    if (result != 1) throw std::bad_alloc();
}

int nibble(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

std::array<std::uint8_t, 8> little_endian(std::uint64_t value) {
    std::array<std::uint8_t, 8> out{};
    for (auto& byte : out) {
        byte = static_cast<std::uint8_t>(value & 0xff);
        value >>= 8;
    }
    return out;
}

std::string_view text_of(const std::uint8_t* bytes, std::size_t size) {
    return {reinterpret_cast<const char*>(bytes), size};
}

} // namespace

std::string Digest::hex(std::size_t digits) const {
    static constexpr char DIGITS[] = "0123456789abcdef";
    std::string out;
    out.reserve(64);
    for (const auto byte : bytes) {
        out += DIGITS[byte >> 4];
        out += DIGITS[byte & 15];
    }
    if (digits < out.size()) out.resize(digits);
    return out;
}

std::optional<Digest> Digest::from_hex(std::string_view text) {
    Digest out;
    if (text.size() != 2 * out.bytes.size()) return std::nullopt;
    for (std::size_t i = 0; i < out.bytes.size(); ++i) {
        const int high = nibble(text[2 * i]), low = nibble(text[2 * i + 1]);
        if (high < 0 || low < 0) return std::nullopt;
        out.bytes[i] = static_cast<std::uint8_t>(high * 16 + low);
    }
    return out;
}

Digest sha256(std::string_view bytes) {
    Digest out;
    require(EVP_Digest(bytes.data(), bytes.size(), out.bytes.data(), nullptr, EVP_sha256(), nullptr));
    return out;
}

struct Digester::State {
    EVP_MD_CTX* context = EVP_MD_CTX_new();
    State() = default;
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() { EVP_MD_CTX_free(context); }
};

Digester::Digester(std::string_view domain) : state_(std::make_unique<State>()) {
    if (!state_->context) throw std::bad_alloc();
    require(EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr));
    field(domain);
}
Digester::Digester(Digester&&) noexcept = default;
Digester& Digester::operator=(Digester&&) noexcept = default;
Digester::~Digester() = default;

Digester& Digester::field(std::string_view bytes) {
    const auto length = little_endian(bytes.size());
    require(EVP_DigestUpdate(state_->context, length.data(), length.size()));
    require(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()));
    return *this;
}

Digester& Digester::field(const Digest& digest) {
    return field(text_of(digest.bytes.data(), digest.bytes.size()));
}

Digester& Digester::number(std::int64_t value) {
    const auto bytes = little_endian(static_cast<std::uint64_t>(value));
    return field(text_of(bytes.data(), bytes.size()));
}

Digest Digester::finish() {
    Digest out;
    require(EVP_DigestFinal_ex(state_->context, out.bytes.data(), nullptr));
    return out;
}

} // namespace cubridge::cache
