// Bad candidates, one folder each: a kernel by rules, or its program, with edits; and which layer finds what is wrong.
// docs/verifying.md says how they are tried. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/ir/candidate.h"
#include "cubridge/runtime/verifier.h"
#include "runtime/adapter/references.h"
#include <map>
#include <string>
#include <vector>

namespace cubridge::gallery {

/// candidate.json of a folder.
struct Candidate {
    std::string name, what, specification, kind;
    std::vector<std::string> arguments;                     ///< of `cubridge adapt`
    bool program = false;                                   ///< the edits are of the program, else of the CUDA text
    std::vector<std::pair<std::string, std::string>> edits; ///< each for a text that stands there once
    std::string shows;     ///< where its author thinks that it shows: "text", "program", "compile", "gpu"
    std::string caught_by; ///< "text", "census", "program", "compile", "gpu": the first layer that must find it
    std::string finding;   ///< and a part of what it must say
};

/// All folders below, by name. Throws std::runtime_error with the file that is none.
std::vector<Candidate> read_all(const std::string& folder);

/// What a layer said; empty: it let the candidate pass.
struct Layer {
    std::string name, finding;
    double ms = 0;
};
struct Examined {
    std::vector<Layer> layers;  ///< those that it came to, in order
    std::string broken;         ///< why it can't be tried; empty: it was
    const Layer* first() const; ///< that found something; null: none did
};

/// Tries candidates. `verifier` null: no layer "gpu". One thread.
class Gallery {
public:
    Gallery(std::string specifications, std::shared_ptr<runtime::Compiler> compiler,
            std::shared_ptr<runtime::Verifier> verifier = nullptr);
    ~Gallery();
    /// All layers in turn until one finds something; with `all` what comes after it too, as far as it can.
    Examined examine(const Candidate& candidate, bool all = false);

private:
    struct Base;
    Base* base_of(const Candidate& candidate, std::string& broken);

    const std::string specifications_;
    const std::shared_ptr<runtime::Compiler> compiler_;
    const std::shared_ptr<runtime::Verifier> verifier_;
    std::map<std::string, std::unique_ptr<Base>> bases_;
};

} // namespace cubridge::gallery
