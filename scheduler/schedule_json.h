// schedule.json: a schedule for people and programs.
//
// docs/schedule.schema.json and docs/SCHEDULE.md describe it; predictions use the keys of
// `dlarun --stats-json`.
#pragma once

#include <string>

#include "ir/graph.h"
#include "scheduler/schedule.h"

namespace dla::scheduler {

std::string ScheduleJson(const Schedule& schedule);

}  // namespace dla::scheduler
