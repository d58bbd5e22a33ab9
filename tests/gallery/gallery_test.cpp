// Every bad candidate is refused by the layer that its folder names, for the reason that it names; those that only a
// GPU shows pass everything before. SPDX-License-Identifier: Apache-2.0
#include "tests/gallery/gallery.h"
#include <gtest/gtest.h>

namespace cubridge::gallery {
namespace {

constexpr char kSpecifications[] = "../shared/specs";

class GalleryTest : public testing::TestWithParam<Candidate> {};

TEST_P(GalleryTest, IsRefused) {
    const Candidate& c = GetParam();
    static const auto compiler = runtime::open_nvrtc();
    if (!compiler && (c.caught_by == "compile" || c.caught_by == "gpu")) GTEST_SKIP() << compiler.fault().text();
    static Gallery gallery(kSpecifications, compiler ? *compiler : runtime::no_compiler(compiler.fault()));
    const auto seen = gallery.examine(c);
    if (seen.broken.find("can't be read") != seen.broken.npos) GTEST_SKIP() << seen.broken;
    ASSERT_EQ(seen.broken, "") << c.what;
    const Layer* first = seen.first();
    if (c.caught_by == "gpu") {
        EXPECT_EQ(first, nullptr) << first->name << ": " << first->finding;
        return;
    }
    ASSERT_NE(first, nullptr) << c.what;
    EXPECT_EQ(first->name, c.caught_by) << first->finding;
    EXPECT_NE(first->finding.find(c.finding), std::string::npos) << first->finding;
}

std::string name_of(const testing::TestParamInfo<Candidate>& info) {
    return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Gallery, GalleryTest, testing::ValuesIn(read_all("tests/gallery")), name_of);

TEST(GallerySize, IsSixtyAtLeast) {
    EXPECT_GE(read_all("tests/gallery").size(), 60u);
}

} // namespace
} // namespace cubridge::gallery
