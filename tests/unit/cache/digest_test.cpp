// SPDX-License-Identifier: Apache-2.0
#include "cubridge/cache/digest.h"
#include <gtest/gtest.h>
#include <unordered_set>

namespace cubridge::cache {
namespace {

TEST(Digest, KnownAnswers) { // FIPS 180-2
    EXPECT_EQ(sha256("").hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(sha256("abc").hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(sha256("abc").hex(8), "ba7816bf");
}

TEST(Digest, HexGoesBothWays) {
    const auto digest = sha256("x");
    EXPECT_EQ(Digest::from_hex(digest.hex()), digest);
    EXPECT_EQ(Digest::from_hex(sha256("abc").hex().replace(0, 2, "BA")), sha256("abc"));
    EXPECT_FALSE(Digest::from_hex(digest.hex(62)));
    EXPECT_FALSE(Digest::from_hex(digest.hex() + "0"));
    EXPECT_FALSE(Digest::from_hex(std::string(63, '0') + "g"));
    EXPECT_FALSE(Digest::from_hex(""));
}

TEST(Digest, OrdersAndHashes) {
    Digest low, high;
    high.bytes[0] = 1;
    EXPECT_LT(low, high);
    EXPECT_NE(low, high);
    EXPECT_EQ((std::unordered_set<Digest>{low, high, low}).size(), 2u);
}

TEST(Digester, HashesLengthsWithFields) {
    // The bytes that docs/store.md promises: 8 bytes of length, then the field.
    const std::string expected("\1\0\0\0\0\0\0\0t\2\0\0\0\0\0\0\0ab\10\0\0\0\0\0\0\0\376\377\377\377\377\377\377\377",
                               35);
    EXPECT_EQ(Digester("t").field("ab").number(-2).finish(), sha256(expected));
}

TEST(Digester, NoTwoSplitsCollide) {
    EXPECT_NE(Digester("t").field("ab").field("c").finish(), Digester("t").field("a").field("bc").finish());
    EXPECT_NE(Digester("t").field("").finish(), Digester("t").finish());
    EXPECT_NE(Digester("t").field("a").finish(), Digester("ta").finish());
}

} // namespace
} // namespace cubridge::cache
