// What a compile prints: one line, or a page that a person can act on.
#pragma once

#include <string>

#include "ir/graph.h"
#include "scheduler/schedule.h"

namespace dla::scheduler {

// "edge32: 25 groups, 4.2 Mcycles (4.2 ms), ..." with a newline.
std::string SummaryLine(const Schedule& schedule);

// Target and sizes, a row a group (cycles, bytes, utilisation, what binds it), totals.
std::string ReportText(const ir::Graph& graph, const Schedule& schedule);

}  // namespace dla::scheduler
