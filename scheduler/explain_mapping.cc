#include "scheduler/explain_mapping.h"

#include <cstdio>
#include <optional>
#include <vector>

#include "scheduler/predict.h"
#include "scheduler/search.h"
#include "scheduler/searcher.h"
#include "support/checked.h"

namespace dla::scheduler {
namespace {

size_t At(int i) { return static_cast<size_t>(i); }

std::string Percent(double value, double least) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f%%", least > 0 ? 100 * (value / least - 1) : 0.0);
  return text;
}

std::string Whole(double value) { return std::to_string(static_cast<int64_t>(value)); }

const char* UnitOf(Objective objective) {
  switch (objective) {
    case Objective::kLatency:
      return "cycles";
    case Objective::kEnergy:
      return "pJ";
    case Objective::kEdp:
      return "pJ times cycles";
    case Objective::kTraffic:
    case Objective::kBalanced:
      break;
  }
  return "bus bytes";
}

std::string LoopsText(const ir::Nest& nest, const Mapping& mapping) {
  if (mapping.order.empty()) return "one step";
  std::string text;
  for (const int d : mapping.order) {
    text += Concat(text.empty() ? "" : " > ", nest.dimensions[At(d)].name, " by ",
                   mapping.block[At(d)]);
  }
  return text;
}

class Explainer {
 public:
  Explainer(const Schedule& schedule, size_t g)
      : schedule_(schedule), group_(schedule.groups[g]), target_(schedule.target) {
    for (const machine::Memory& memory : target_.memories) free_.push_back(UsableBytes(memory));
    const int number = static_cast<int>(g);
    for (const Resident& r : schedule.residents) {
      if (number < r.first_group || number >= r.end_group) continue;
      free_[At(r.memory)] -= RoundUp(r.bytes, target_.memories[At(r.memory)].align_bytes);
    }
    for (const OperandPlace& place : group_.mapping.operands) {
      resident_in_.push_back(place.resident ? place.memory : place.source);
    }
  }

  std::string Run() const {
    std::string text = CertificateText(group_, schedule_);
    text += "best by objective, with the same values on chip:\n";
    for (int i = 0; i < kObjectiveCount; ++i) {
      const Objective objective = static_cast<Objective>(i);
      const std::optional<SearchResult> found = Search(objective, free_);
      if (!found) continue;
      const Cost cost = CostOf(found->predicted);
      text += Concat("  ", ObjectiveName(objective), ": ", Whole(cost.cycles), " cycles, ",
                     Whole(cost.bytes), " bus bytes, ", Whole(cost.energy), " pJ; ",
                     LoopsText(group_.nest, found->mapping), "\n");
    }
    for (size_t m = 0; m < free_.size(); ++m) text += MemoryText(m);
    return text;
  }

 private:
  std::optional<SearchResult> Search(Objective objective, const std::vector<int64_t>& free) const {
    return SearchMapping({.nest = &group_.nest,
                          .target = &target_,
                          .free_bytes = free,
                          .resident_in = resident_in_,
                          .objective = objective,
                          .options = schedule_.search});
  }

  Cost CostOf(const machine::Counters& counters) const {
    return {static_cast<double>(counters.dram_bus_bytes()), static_cast<double>(counters.cycles),
            EnergyPj(counters, target_, group_.nest.operands[0].ReadType())};
  }

  std::string MemoryText(size_t m) const {
    int64_t used = 0;
    for (const TileBuffer& buffer : group_.buffers) {
      if (At(buffer.memory) == m) used += buffer.slot_bytes * buffer.slots;
    }
    const machine::Memory& memory = target_.memories[m];
    std::string text = Concat("scratchpad '", memory.name, "': tiles take ", used, " of ", free_[m],
                              " bytes; with ", memory.bytes, " bytes more: ");
    std::vector<int64_t> more = free_;
    more[m] += memory.bytes;
    const std::optional<SearchResult> found = Search(schedule_.objective, more);
    const Cost now = CostOf(group_.predicted);
    if (!found || !IsBetter(schedule_.objective, CostOf(found->predicted), now)) {
      return text + "no better\n";
    }
    const Cost then = CostOf(found->predicted);
    return Concat(text, Whole(then.cycles), " cycles, ", Whole(then.bytes),
                  " bus bytes, so it binds\n");
  }

  const Schedule& schedule_;
  const ScheduledGroup& group_;
  const machine::Target& target_;
  std::vector<int64_t> free_;
  std::vector<int> resident_in_;
};

}  // namespace

std::string ExplainMapping(const Schedule& schedule, size_t group) {
  return Explainer(schedule, group).Run();
}

std::string CertificateText(const ScheduledGroup& group, const Schedule& schedule) {
  if (group.points == 0) return "the mapping was given\n";
  const Certificate& certificate = group.certificate;
  const double value = ValueOf(group, schedule);
  std::string text = Concat(Whole(value), " ", UnitOf(schedule.objective), "; ");
  if (certificate.least <= 0) {
    text += "no bound was searched for";
  } else if (certificate.proven) {
    text += "no mapping has less";
  } else {
    text += Concat("none has less than ", Whole(certificate.least), " (",
                   Percent(value, certificate.least), " above)");
  }
  if (schedule.objective == Objective::kBalanced && certificate.least_cycles > 0) {
    text +=
        Concat(" within 5% of the least cycles (at least ", Whole(certificate.least_cycles), ")");
  }
  if (!certificate.all_sizes) text += ", among the sizes that were looked at";
  return Concat(text, "; ", group.points, " boxes and orders bounded, ", group.evaluated,
                " mappings evaluated\n");
}

}  // namespace dla::scheduler
