// Why a value stays on chip, or why it does not.
#pragma once

#include <string>
#include <string_view>

#include "ir/graph.h"
#include "scheduler/schedule.h"
#include "support/status.h"

namespace dla::scheduler {

// A few lines of text about the value of that (ONNX) name: where and how long it stays and what
// that spares, or what keeps it from staying; what more scratchpad would give. kUsage: no such
// value after fusion.
Result<std::string> ExplainResidency(const Schedule& schedule, std::string_view value);

// The most DRAM bytes that so many further bytes of scratchpad would save, by the bound's prices
// (the bound is concave in the capacity, so its slope bounds it).
double SavedByMore(const Schedule& schedule, int64_t bytes);

}  // namespace dla::scheduler
