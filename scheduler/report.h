// What a compile prints: one line, or a page that a person can act on.
#pragma once

#include <string>
#include <string_view>

#include "ir/graph.h"
#include "scheduler/schedule.h"
#include "support/status.h"

namespace dla::scheduler {

// "edge32: 25 groups, 4.2 Mcycles (4.2 ms), ..." with a newline.
std::string SummaryLine(const Schedule& schedule);

// Target and sizes, a row a group (cycles, bytes, utilisation, what binds it), the `top` groups
// that lose most against their rooflines, totals.
std::string ReportText(const Schedule& schedule, size_t top);

// Which groups do not have the buffers that SearchOptions::buffers asks for, because no mapping
// with them fits (or their mapping was given); empty: none.
std::string OtherBuffers(const Schedule& schedule);

// The rows as CSV with a header.
std::string ReportCsv(const Schedule& schedule);

// A few lines about the group that holds the ONNX node of that name (its mapping, where its
// operands lie, what it costs and what binds it), or about the value of that name
// (explain_residency.h). kUsage: there is neither.
Result<std::string> Explain(const Schedule& schedule, std::string_view name);

}  // namespace dla::scheduler
