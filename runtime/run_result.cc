#include "runtime/run_result.h"

namespace dla::runtime {

std::string_view StallName(StallCause cause) {
  constexpr std::array<std::string_view, kStallCauseCount> kNames = {"load",   "store", "compute",
                                                                     "credit", "bus",   "barrier"};
  return kNames[static_cast<size_t>(cause)];
}

double GroupRun::utilisation() const {
  return counters.cycles == 0 ? 0 : peak_array_cycles / static_cast<double>(counters.cycles);
}

std::string_view GroupRun::bound_by() const {
  std::string_view name = "none";
  int64_t most = 0;
  const auto consider = [&](std::string_view candidate, int64_t busy) {
    if (busy > most) {
      most = busy;
      name = candidate;
    }
  };
  for (const machine::Engine e :
       {machine::Engine::kArray, machine::Engine::kVector, machine::Engine::kMove}) {
    consider(machine::EngineName(e), engines[static_cast<size_t>(e)].busy);
  }
  consider("bus", bus_busy);
  return name;
}

}  // namespace dla::runtime
