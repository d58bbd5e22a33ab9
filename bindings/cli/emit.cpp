// Writing files. SPDX-License-Identifier: Apache-2.0
#include "bindings/cli/emit.h"
#include <filesystem>
#include <fstream>
#include <string_view>

namespace cubridge::cli {

namespace {

std::string write(const std::filesystem::path& path, std::string_view text) {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
    file.close();
    return file ? "" : path.string() + " can't be written";
}

} // namespace

std::string emit(const std::string& folder, const ir::Specification* specification, const runtime::Report& report,
                 const std::string& json) {
    const std::filesystem::path at(folder);
    std::error_code error;
    std::filesystem::create_directories(at, error);
    if (error) return folder + ": " + error.message();
    std::string wrong = write(at / "report.json", json + "\n");
    const auto also = [&](const char* name, std::string_view text) {
        if (wrong.empty()) wrong = write(at / name, text);
    };
    if (specification != nullptr) also("variant.txt", specification->subject());
    if (report.artifact) {
        also("kernel.cu", report.artifact->cuda);
        also("kernel.cubin",
             {reinterpret_cast<const char*>(report.artifact->cubin.data()), report.artifact->cubin.size()});
        also("plan.txt", report.artifact->plan.text());
        if (!report.artifact->program.empty()) {
            also("expert.py", report.artifact->expert_program);
            also("variant.py", report.artifact->program);
            also("difference.txt", report.artifact->difference);
        }
    }
    return wrong;
}

} // namespace cubridge::cli
