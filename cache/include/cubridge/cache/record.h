// What a store keeps: records of opaque bytes under a key, with a digest over their content.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/cache/digest.h"
#include <cstdint>
#include <string>
#include <vector>

namespace cubridge::cache {

/// One named piece of a record (a cubin, a source, a plan). Names are the caller's; a record keeps its blobs in order.
struct Blob {
    std::string name;
    std::string bytes;
    friend bool operator==(const Blob&, const Blob&) = default;
};

/// A kernel as the store sees it. A plain value.
struct Record {
    Digest key;               ///< what a look-up asks for
    Digest id;                ///< content_id() of this record; publish refuses any other
    std::string build;        ///< what made it, for people and for renewal
    std::string arch;         ///< "sm_90a"
    std::string made_by;      ///< "generic", "rules", "model"
    std::int64_t rank = 0;    ///< among the records of one key the highest is served
    std::int64_t created = 0; ///< Unix seconds
    std::string metadata;     ///< opaque
    std::vector<Blob> blobs;

    /// The first blob of that name, or null. Owned by the record.
    const Blob* blob(std::string_view name) const;
    friend bool operator==(const Record&, const Record&) = default;
};

/// A record without its metadata and blobs, with what the store knows about it.
struct Summary {
    Digest key, id;
    std::string build, arch, made_by;
    std::int64_t rank = 0;
    std::int64_t created = 0;
    std::int64_t bytes = 0; ///< what it counts against the budget
    std::int64_t used = 0;  ///< Unix seconds of the last use, an hour coarse
    bool pinned = false;
};

/// The digest of everything but `key`, `id` and `created` (docs/store.md). Throws only std::bad_alloc.
Digest content_id(const Record& record);
/// Sets `id`. Call it last.
void seal(Record& record);
/// What ties content to a key: the digest of key, id and `created`.
Digest binding(const Digest& key, const Digest& id, std::int64_t created);
/// Bytes that the record counts against a budget.
std::int64_t footprint(const Record& record);

} // namespace cubridge::cache
