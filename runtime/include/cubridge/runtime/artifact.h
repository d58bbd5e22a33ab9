// Artifact: a kernel with everything it takes to launch it, to explain it and to trust it. A value; the store keeps it
// as a Record. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/cache/record.h"
#include "cubridge/ir/candidate.h"
#include "cubridge/ir/launch.h"
#include "cubridge/ir/specification.h"
#include "cubridge/runtime/compiler.h"
#include "cubridge/runtime/json.h"

namespace cubridge::runtime {

inline constexpr int kKeyFormat = 1; ///< docs/request-key.md

/// What made an artifact: explains it, and says when it should be renewed. Not part of any key.
struct BuildId {
    std::string made_by = "generic"; ///< "generic", "rules", "model"
    std::string rules;               ///< version of the printer or of the rules
    std::string expert;              ///< name and digest; empty for the generic kernel
    std::string model;               ///< empty unless made_by is "model"
    std::string compiler;            ///< Compiler::identity()
    std::string options;             ///< joined by blanks
    std::string tuned;               ///< the device on which it was chosen by measuring; empty: by the model
    std::string text() const;        ///< one line
    bool operator==(const BuildId&) const = default;
};

/// What a look-up asks for: SHA-256 over length-prefixed fields, see docs/request-key.md. `operands` are the dtypes of
/// the specification's operands in their order. Fields of the request that do not change the kernel are left out.
cache::Digest request_key(const ir::Specification& specification, const ir::Request& request);

/// Names a text with its settings: of two specifications with equal ids every fact is equal.
cache::Digest source_id(const ir::Specification& specification);

/// The `places` of an artifact with this plan, made from this specification.
std::vector<int> places_of(const ir::Specification& specification, const ir::launch::Plan& plan);

/// What a verification by this library looks at: more with every number. What passed an older one is run again before
/// it serves.
inline constexpr int kVerification = 1;

/// A verification on a GPU, as data.
struct GpuRun {
    int format = 0;                  ///< kVerification of the library that ran it
    int cases = 0, against_text = 0; ///< compared, and how many of those with the text itself in float64
    std::uint64_t seed = 0;
    std::string device;    ///< "NVIDIA H200"
    int driver = 0;        ///< 13000: the newest CUDA that its driver was made for; 0: not known
    std::int64_t date = 0; ///< Unix seconds
};

/// How far an artifact was verified.
enum class Verified { None, Executor, Gpu };
struct Verification {
    Verified level = Verified::None;
    std::string record = "compiled, not run"; ///< for people
    double error_ratio = 0;                   ///< worst error over that of the low-precision baseline
    std::optional<GpuRun> gpu;                ///< nothing: not run on one, or in the record of an older library

    int format() const { return gpu ? gpu->format : 0; }
    /// A GPU has run it, with all that this library looks at.
    bool stands() const { return level == Verified::Gpu && format() >= kVerification; }
    Json json() const;
    /// An Error says what is missing.
    static ir::Result<Verification> read(const Json& json);
};

/// What a kernel was made for: with this it can be verified again.
struct Asked {
    ir::Source source;
    int heads = 0; ///< Specification::heads()
    ir::Request request;
};

/// What was measured when a kernel was chosen.
struct Tuning {
    struct Row {
        ir::Configuration configuration;
        double us = 0, spread = 0;
        int launches = 0;
        bool chosen = false;
        std::string refused; ///< why it was not timed
    };
    std::string device; ///< device_text()
    ir::Shape shape;
    std::vector<Row> rows; ///< in the model's order

    Json json() const;
    /// Nothing where it is none.
    static std::optional<Tuning> read(const Json& json);
};

struct Artifact {
    cache::Digest key, id;
    BuildId build;
    std::string arch, subject;
    std::vector<std::byte> cubin;
    std::string cuda;
    std::string expert_program, program, difference; ///< CuIR, and how they differ; empty for the generic kernel
    ir::launch::Plan plan;
    /// For each operand of the plan its place in Specification::order(), -1 where the subject does not name it: by this
    /// another text of the same subject finds its own operands.
    std::vector<int> places;
    cache::Digest specification; ///< source_id() of the text that it was made from
    std::optional<Asked> asked;  ///< nothing in records of older libraries
    std::vector<CompiledEntry> entries;
    Verification verification;
    std::optional<Tuning> tuning;
    std::int64_t created = 0; ///< Unix seconds

    cache::Record to_record() const;
    /// Nothing is trusted: a record that is not whole is an Error that says what is missing.
    static ir::Result<Artifact> from_record(const cache::Record& record);
};

} // namespace cubridge::runtime
