// A schedule that the user gives (`--use-schedule`): read from schedule.json, whole or partial.
//
// If it has `slices`, these chains of groups are cut into slices first, which the rest of the file
// names. If it has `cascades`, exactly these groups run as loops over stripes, whatever their
// mappings in the file. Groups are found by name. A group that is listed with a mapping gets it;
// all others are searched. Groups run in the order of the file, if it lists all of them. If the
// file has `values`, exactly these stay on chip; if it has none, residency is planned as usual.
// Everything else in the file (predictions, addresses) is ignored: it follows from these.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/nest.h"
#include "machine/target.h"
#include "scheduler/mapping.h"
#include "scheduler/slices.h"
#include "scheduler/through.h"
#include "support/status.h"

namespace dla::scheduler {

// A group's mapping in names, as the file has it.
struct GivenMapping {
  struct Place {
    std::string value, memory, buffers, from;
  };
  std::map<std::string, int64_t> blocks;
  std::vector<std::string> order;
  std::vector<Place> operands;
};

// Groups that run as one loop over stripes, in order; their mappings follow from the stripes.
struct GivenCascade {
  std::vector<std::string> groups;
  int64_t lines = 0;
};

// A value that stays in a scratchpad. Without groups: as long as it is used.
struct GivenValue {
  std::string name, memory;
  int first_group = -1, end_group = -1;
  Through through;
};

struct GivenSchedule {
  std::vector<std::string> order;  // names of all groups that it lists, as it lists them
  std::map<std::string, GivenMapping> groups;
  std::optional<std::vector<GivenValue>> values;  // none: residency is planned
  // None: chosen, unless `values` is given.
  std::optional<std::vector<GivenCascade>> cascades;
  std::vector<Slicing> slicings;  // exactly these chains are cut, in this order
};

// kMalformed with the place in the file.
Result<GivenSchedule> ParseGivenSchedule(std::string_view json);

// The mapping for this nest; kUsage says why an illegal one is illegal: an unknown or missing
// dimension, a block out of range, an order that does not list the cut dimensions once each, a
// scratchpad that there is not or that does not hold the operand's class, buffers that do not fit.
// `reserved_bytes`: what residents take of each scratchpad.
Result<Mapping> ResolveMapping(const GivenMapping& given, const ir::Nest& nest,
                               const machine::Target& target,
                               const std::vector<int64_t>& reserved_bytes);

// The mapping for scratchpads that are cut less finely: what two of them held for each other may be
// in one now.
GivenMapping InOnePlace(GivenMapping given, const ir::Nest& nest);

}  // namespace dla::scheduler
