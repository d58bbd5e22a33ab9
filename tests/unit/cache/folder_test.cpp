// SPDX-License-Identifier: Apache-2.0
#include "cache/folder.h"
#include "support.h"

namespace cubridge::cache {
namespace {

TEST(Folder, TheSystemsOwnAnswer) {
    EXPECT_EQ(system_file_system("/proc"), 0x9fa0);
    EXPECT_FALSE(system_file_system("/no/such/place"));
    EXPECT_EQ(network_file_system(0x9fa0), nullptr);
    EXPECT_STREQ(network_file_system(0x6969), "NFS");
}

TEST(Folder, ExistingPart) {
    EXPECT_EQ(existing_part("/proc/self/nothing/at/all"), "/proc/self");
    EXPECT_EQ(existing_part("/nothing"), "/");
    EXPECT_EQ(existing_part("/"), "/");
}

TEST(Folder, MakesOnlyWhatIsMissing) {
    TemporaryFolder folder;
    chmod(folder.path().c_str(), 0755);
    EXPECT_EQ(make_folders(folder.path() + "/a/b/c"), 0);
    EXPECT_EQ(make_folders(folder.path() + "/a/b/c"), 0);
    EXPECT_EQ(mode_of(folder.path() + "/a/b"), 0700u);
    EXPECT_EQ(mode_of(folder.path()), 0755u) << "what was there keeps its mode";
    spill(folder.path() + "/file", "");
    EXPECT_NE(make_folders(folder.path() + "/file/x"), 0);
    EXPECT_NE(make_folders(folder.path() + "/file"), 0);
}

TEST(Folder, Inspect) {
    TemporaryFolder folder;
    EXPECT_EQ(inspect(folder.path()).code, Code::OK);
    EXPECT_EQ(inspect(folder.store()).code, Code::MISSING);
    EXPECT_TRUE(files_in(folder.path()).empty());
    chmod(folder.path().c_str(), 0720);
    EXPECT_EQ(inspect(folder.path()).code, Code::UNTRUSTED);
    EXPECT_NE(inspect(folder.path()).reason.find("0720"), std::string::npos);
}

} // namespace
} // namespace cubridge::cache
