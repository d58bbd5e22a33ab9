// Choosing among the configurations of a kernel by measuring them on a GPU. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/runtime/adapter.h"
#include "cubridge/runtime/driver.h"
#include <span>

namespace cubridge::runtime {

/// What kernels took, one after the other on one GPU.
class Measurer {
public:
    virtual ~Measurer() = default;

    struct Timing {
        double us = 0;     ///< of a launch: the median of the medians of blocks
        double spread = 0; ///< the largest of those less the smallest, over `us`
        int launches = 0;  ///< counted
        std::string wrong; ///< its output is not that of the first: not timed
    };
    /// What results hold for: device_text().
    virtual std::string device() const = 0;
    /// One Timing an artifact, in their order; blocks of all alternate. One thread.
    virtual Outcome<std::vector<Timing>> measure(const ir::Specification& specification, const ir::Request& request,
                                                 const ir::Shape& shape,
                                                 std::span<const Artifact* const> artifacts) = 0;

    Measurer(const Measurer&) = delete;
    Measurer& operator=(const Measurer&) = delete;

protected:
    Measurer() = default;
};

/// A configuration and what the model says of it: the members that `explain --json` and a Tuning have in common.
Json json_of(const ir::Configuration& configuration);

/// Queries, keys and values are normal numbers; integers of positions are a few runs in ascending order, others a
/// quarter of the keys, or 0 where the text refuses that. Faults: of the driver; "memory" where the inputs don't fit.
Outcome<std::unique_ptr<Measurer>> gpu_measurer(const std::shared_ptr<Driver>& driver, int ordinal = 0);

/// Makes ir::Candidate::configurations(), each through all that adapt() asks of a kernel, measures them, and keeps the
/// fastest as the kernel of its key, with what was measured. One that is not faster than what adapt() makes by more
/// than either spread (and 1%) does not take its place. What is stored for the device, the shape and these rules is
/// served as it is. Where there is nothing to choose from, it is adapt(). `options.experts` and `printer` must be
/// empty. Errors beyond adapt()'s: the measurer's faults.
Report tune(const std::shared_ptr<const ir::Specification>& specification, const ir::Request& request,
            const AdaptOptions& options, Measurer& measurer, const ir::Shape& shape);

} // namespace cubridge::runtime
