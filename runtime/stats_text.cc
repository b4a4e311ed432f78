// The table of `dlarun --stats`.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "runtime/stats.h"

namespace dla::runtime {
namespace {

using machine::Counters;
using machine::Program;

std::string Fixed(double value, int decimals) {
  char buffer[64];
  const auto end =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::fixed, decimals);
  return std::string(buffer, end.ptr);
}

// 1234567 as "1,234,567".
std::string Grouped(int64_t value) {
  const std::string digits = std::to_string(value);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0 && digits[i - 1] != '-') text += ',';
    text += digits[i];
  }
  return text;
}

std::string Left(std::string text, size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

std::string Right(const std::string& text, size_t width) {
  return std::string(width > text.size() ? width - text.size() : 0, ' ') + text;
}

double Share(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

std::string Totals(const Program& program, const GroupRun& total) {
  const Counters& c = total.counters;
  const double ms =
      static_cast<double>(c.cycles) / (static_cast<double>(program.target.clock_mhz) * 1000.0);
  const Energy& e = total.energy;
  std::string text = Concat(
      "target       ", program.target.name, ", ", program.target.clock_mhz, " MHz\n",
      "cycles       ", Grouped(c.cycles), "  (", Fixed(ms, 3), " ms, ",
      Fixed(ms > 0 ? 1000 / ms : 0, 1), " inferences/s)\n", "MACs         ",
      Grouped(c.macs_array + c.macs_vector + c.macs_host), " nominal, ", Grouped(c.macs_issued),
      " issued, ", Fixed(100 * total.utilisation(), 1), " % of the array's peak\n", "DRAM         ",
      Grouped(c.dram_bytes()), " bytes, ", Grouped(c.dram_bus_bytes()), " on the bus\n");
  for (size_t i = 0; i < c.traffic.size(); ++i) {
    const Counters::Traffic& t = c.traffic[i];
    if (t.load_bytes + t.store_bytes == 0) continue;
    text += Concat("  ", Left(std::string(ClassName(static_cast<OperandClass>(i))), 11),
                   Right(Grouped(t.load_bytes), 15), " loaded", Right(Grouped(t.store_bytes), 15),
                   " stored\n");
  }
  for (size_t m = 0; m < c.memory.size(); ++m) {
    text += Concat("  ", Left(Concat("'", program.target.memories[m].name, "'"), 11),
                   Right(Grouped(c.memory[m].read_bytes), 15), " read  ",
                   Right(Grouped(c.memory[m].write_bytes), 15), " written\n");
  }
  return Concat(text, "energy       ", Fixed(e.total_pj() / 1e6, 3), " uJ: DRAM ",
                Fixed(e.dram_pj / 1e6, 3), ", scratchpads ", Fixed(e.scratchpad_pj / 1e6, 3),
                ", MACs ", Fixed(e.mac_pj / 1e6, 3), ", vector ", Fixed(e.vector_pj / 1e6, 3),
                "\n");
}

std::string EngineTable(const GroupRun& total) {
  std::string text = Concat("\n", Left("engine", 8), Right("busy", 15));
  for (int s = 0; s < kStallCauseCount; ++s) {
    text += Right(Concat("wait ", StallName(static_cast<StallCause>(s))), 15);
  }
  text += "\n";
  for (size_t i = 0; i < total.engines.size(); ++i) {
    const EngineTimes& times = total.engines[i];
    if (times.busy == 0) continue;
    text += Left(std::string(machine::EngineName(static_cast<machine::Engine>(i))), 8) +
            Right(Grouped(times.busy), 15);
    for (const int64_t stall : times.stall) text += Right(Grouped(stall), 15);
    text += "\n";
  }
  return text;
}

std::string NodesOf(const machine::Group& group) {
  std::string text = group.name;
  for (const std::string& node : group.onnx_nodes) {
    if (node != group.name) text += Concat(" + ", node);
  }
  return text;
}

std::string CountsText(const Program& program, const RunOptions& options, const Counts& result,
                       bool is_first) {
  const std::vector<Counters>& all = PredictedOf(program, is_first);
  const int64_t cycles = result.total.counters.cycles;
  std::string text = Totals(program, result.total) + EngineTable(result.total);
  text += Concat("\n", Right("group", 5), Right("cycles", 14), Right("%", 7),
                 Right("DRAM bytes", 15), Right("bus bytes", 15), Right("MACs", 15),
                 Right("peak %", 8), "  ", Left("bound by", 9), Left("predicted", 10), "nodes\n");
  for (size_t g = 0; g < result.groups.size(); ++g) {
    const GroupRun& run = result.groups[g];
    const Counters& c = run.counters;
    const std::string predicted = g >= all.size()                        ? "-"
                                  : AsPredicted(all, options, result, g) ? "exactly"
                                                                         : "DIFFERS";
    text += Concat(Right(std::to_string(g), 5), Right(Grouped(c.cycles), 14),
                   Right(Fixed(Share(c.cycles, cycles), 1), 7), Right(Grouped(c.dram_bytes()), 15),
                   Right(Grouped(c.dram_bus_bytes()), 15),
                   Right(Grouped(c.macs_array + c.macs_vector + c.macs_host), 15),
                   Right(Fixed(100 * run.utilisation(), 1), 8), "  ",
                   Left(std::string(run.bound_by()), 9), Left(predicted, 10),
                   NodesOf(program.groups[g]), "\n");
  }
  return text;
}

}  // namespace

std::string StatsText(const Program& program, const RunOptions& options, const RunResult& result) {
  std::string first = CountsText(program, options, result, true);
  if (!result.steady) return first;
  return Concat("run 1\n", first, "\nruns 2 to ", options.repeat, ", each\n",
                CountsText(program, options, *result.steady, false));
}

}  // namespace dla::runtime
