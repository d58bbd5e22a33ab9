// The digests of a record, as docs/store.md defines them.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/cache/record.h"

namespace cubridge::cache {

const Blob* Record::blob(std::string_view name) const {
    for (const auto& candidate : blobs)
        if (candidate.name == name) return &candidate;
    return nullptr;
}

Digest content_id(const Record& record) {
    Digester digester("cubridge-record-1");
    digester.field(record.build).field(record.arch).field(record.made_by).number(record.rank).field(record.metadata);
    digester.number(static_cast<std::int64_t>(record.blobs.size()));
    for (const auto& blob : record.blobs)
        digester.field(blob.name).number(static_cast<std::int64_t>(blob.bytes.size())).field(sha256(blob.bytes));
    return digester.finish();
}

void seal(Record& record) {
    record.id = content_id(record);
}

Digest binding(const Digest& key, const Digest& id, std::int64_t created) {
    return Digester("cubridge-binding-1").field(key).field(id).number(created).finish();
}

std::int64_t footprint(const Record& record) {
    constexpr std::size_t ROW = 512; // digests, numbers, indices: so that many empty records are not free
    std::size_t sum = ROW + record.build.size() + record.arch.size() + record.made_by.size() + record.metadata.size();
    for (const auto& blob : record.blobs) sum += blob.name.size() + blob.bytes.size();
    return static_cast<std::int64_t>(sum);
}

} // namespace cubridge::cache
