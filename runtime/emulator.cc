#include "runtime/emulator.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "runtime/dump.h"
#include "runtime/group_runner.h"

namespace dla::runtime {
namespace {

using machine::Counters;
using machine::Group;
using machine::Port;
using machine::Program;

std::string ShapeText(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t extent : shape) {
    if (!text.empty()) text += 'x';
    text += std::to_string(extent);
  }
  return text.empty() ? "scalar" : text;
}

Status FillInputs(const Program& program, const std::vector<Tensor>& inputs, Storage* storage) {
  if (inputs.size() != program.inputs.size()) {
    return Usage("the program has ", program.inputs.size(), " inputs, ", inputs.size(),
                 " were given");
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Port& port = program.inputs[i];
    const Tensor& tensor = inputs[i];
    if (tensor.type != port.type || tensor.shape != port.shape) {
      return Usage("input '", port.name, "' is ", TypeName(port.type), " ", ShapeText(port.shape),
                   ", given is ", TypeName(tensor.type), " ", ShapeText(tensor.shape));
    }
    const auto bytes = static_cast<int64_t>(tensor.bytes.size());
    if (bytes > storage->RegionBytes(port.region)) {
      return Malformed("input '", port.name, "' has ", bytes, " bytes, its region ",
                       storage->RegionBytes(port.region));
    }
    if (bytes > 0)
      std::memcpy(storage->WriteRegion(port.region), tensor.bytes.data(), tensor.bytes.size());
  }
  return Status();
}

Result<std::vector<Tensor>> TakeOutputs(const Program& program, const Storage& storage) {
  std::vector<Tensor> outputs;
  for (const Port& port : program.outputs) {
    int64_t elements = 1;
    for (const int64_t extent : port.shape) elements *= extent;
    const int64_t bytes = TypeBytes(port.type, elements);
    if (bytes > storage.RegionBytes(port.region)) {
      return Malformed("output '", port.name, "' has ", bytes, " bytes, its region ",
                       storage.RegionBytes(port.region));
    }
    const uint8_t* data = storage.ReadRegion(port.region);
    outputs.push_back({port.name, port.type, port.shape, {data, data + bytes}});
  }
  return outputs;
}

// Everything but MACs, which were added up instruction by instruction.
void SetEnergy(const machine::Target& target, GroupRun* run) {
  const Counters& c = run->counters;
  run->energy.dram_pj = static_cast<double>(c.dram_bus_bytes()) * target.dram.energy_pj_per_byte;
  for (size_t m = 0; m < c.memory.size(); ++m) {
    const int64_t bytes = c.memory[m].read_bytes + c.memory[m].write_bytes;
    run->energy.scratchpad_pj += static_cast<double>(bytes) * target.memories[m].energy_pj_per_byte;
  }
  run->energy.vector_pj = static_cast<double>(c.vector_ops) * target.vector.energy_pj_per_op;
}

void AddTo(const GroupRun& group, GroupRun* total) {
  total->counters.Add(group.counters);
  total->bus_busy += group.bus_busy;
  total->steps += group.steps;
  total->overflows += group.overflows;
  total->read_overflows += group.read_overflows;
  total->peak_array_cycles += group.peak_array_cycles;
  total->energy.dram_pj += group.energy.dram_pj;
  total->energy.scratchpad_pj += group.energy.scratchpad_pj;
  total->energy.mac_pj += group.energy.mac_pj;
  total->energy.vector_pj += group.energy.vector_pj;
  for (size_t e = 0; e < total->engines.size(); ++e) {
    total->engines[e].busy += group.engines[e].busy;
    for (size_t s = 0; s < total->engines[e].stall.size(); ++s) {
      total->engines[e].stall[s] += group.engines[e].stall[s];
    }
  }
}

// Functional runs give no times.
void ClearTimes(GroupRun* run) {
  run->counters.cycles = 0;
  run->bus_busy = 0;
  run->engines = {};
}

// Reads the wanted values that are whole after this group.
void DumpAfter(const Program& program, const RunOptions& options, int32_t group, Storage* values,
               std::vector<Tensor>* dumped) {
  for (size_t i = 0; i < options.dump.size() && values != nullptr; ++i) {
    const machine::ValueDesc& value = program.values[options.dump[i]];
    if (value.group == group) (*dumped)[i] = ReadValue(value, values);
  }
}

// Which group runs, and when it (or its stripe) began.
struct Clock {
  int64_t group = 0, begin = 0;
};

// One run of the whole program.
class ProgramRun {
 public:
  ProgramRun(const Program& program, const RunOptions& options, const GroupRunner::Machine& machine,
             Clock* clock, std::vector<Tensor>* dumped, Counts* result)
      : program_(program),
        options_(options),
        machine_(machine),
        clock_(*clock),
        dumped_(*dumped),
        result_(*result) {}

  Status Run() {
    result_.total.counters.memory.resize(program_.target.memories.size());
    result_.groups.resize(program_.groups.size());
    for (GroupRun& run : result_.groups) {
      run.counters.memory.resize(program_.target.memories.size());
    }
    for (size_t g = 0; g < program_.groups.size();) {
      const size_t end = EndOfCascade(g);
      DLA_RETURN_IF_ERROR(RunCascade(g, end));
      g = end;
    }
    return Status();
  }

 private:
  // Behind the last group that belongs to the cascade of group g; g + 1 if it is in none.
  size_t EndOfCascade(size_t g) const {
    const int32_t cascade = program_.groups[g].cascade;
    size_t end = g + 1;
    while (cascade >= 0 && end < program_.groups.size() &&
           program_.groups[end].cascade == cascade) {
      ++end;
    }
    return end;
  }

  // All stripes of the groups from `begin` to before `end`.
  Status RunCascade(size_t begin, size_t end) {
    std::vector<GroupPlan> plans;
    int64_t stripes = 0;
    for (size_t g = begin; g < end; ++g) {
      DLA_ASSIGN_OR_RETURN(GroupPlan plan, PlanGroup(program_.groups[g], program_.target));
      plans.push_back(std::move(plan));
      stripes = std::max(stripes, CountStripes(program_.groups[g]));
    }
    for (int64_t stripe = 0; stripe < stripes; ++stripe) {
      for (size_t g = begin; g < end; ++g) {
        if (stripe >= CountStripes(program_.groups[g])) continue;
        DLA_RETURN_IF_ERROR(RunGroup(g, stripe, plans[g - begin]));
      }
    }
    for (size_t g = begin; g < end; ++g) Finish(g);
    return Status();
  }

  // The group that runs after this one; not within a cascade.
  GroupRunner::Next NextOf(size_t g) {
    if (program_.groups[g].cascade >= 0 || g + 1 == program_.groups.size()) return {};
    return {.group = &program_.groups[g + 1],
            .number = static_cast<int32_t>(g + 1),
            .counters = &result_.groups[g + 1].counters};
  }

  Status RunGroup(size_t g, int64_t stripe, const GroupPlan& plan) {
    const Group& group = program_.groups[g];
    if (machine_.shadow != nullptr) machine_.shadow->BeginGroup(static_cast<int32_t>(g));
    clock_.group = static_cast<int64_t>(g);
    GroupRun run;
    GroupRunner runner(program_, group, plan, stripe, machine_, NextOf(g));
    const std::string where = Concat("group '", group.name, "'");
    const bool striped = CountStripes(group) > 1;
    DLA_RETURN_IF_ERROR(
        runner.Run(&clocks_, &run).At(striped ? Concat(where, " stripe ", stripe) : where));
    clock_.begin += run.counters.cycles;
    AddTo(run, &result_.groups[g]);
    return Status();
  }

  void Finish(size_t g) {
    GroupRun& run = result_.groups[g];
    SetEnergy(program_.target, &run);
    if (options_.mode == Mode::kFunctional) ClearTimes(&run);
    AddTo(run, &result_.total);
    DumpAfter(program_, options_, static_cast<int32_t>(g), machine_.storage, &dumped_);
    if (!options_.progress) return;
    options_.progress(static_cast<int64_t>(g) + 1, static_cast<int64_t>(program_.groups.size()));
  }

  const Program& program_;
  const RunOptions& options_;
  const GroupRunner::Machine& machine_;
  Clock& clock_;
  Clocks clocks_;
  std::vector<Tensor>& dumped_;
  Counts& result_;
};

// Does a run count what the other did? Jitter changes times.
bool CountAlike(const Counts& a, const Counts& b, bool with_cycles) {
  for (size_t g = 0; g < a.groups.size(); ++g) {
    Counters of_a = a.groups[g].counters;
    if (!with_cycles) of_a.cycles = b.groups[g].counters.cycles;
    if (!(of_a == b.groups[g].counters)) return false;
  }
  return true;
}

// A later run gives what the first gave, and counts what the second did.
Status CompareRuns(const RunResult& result, const Counts& counts,
                   const std::vector<Tensor>& outputs, bool with_cycles, int64_t run) {
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (outputs[o].bytes == result.outputs[o].bytes) continue;
    return Malformed("run ", run, ": output '", outputs[o].name,
                     "' is not what it was in the first run");
  }
  if (!result.steady || CountAlike(counts, *result.steady, with_cycles)) return Status();
  return Malformed("run ", run, " counts otherwise than the second run");
}

}  // namespace

Result<RunResult> Run(const Program& program, const RunOptions& options,
                      const std::vector<Tensor>& inputs) {
  RunResult result;
  std::optional<Storage> storage;
  if (options.mode != Mode::kTimed) {
    storage.emplace(program);
    DLA_RETURN_IF_ERROR(FillInputs(program, inputs, &*storage));
  }
  Storage* values = storage ? &*storage : nullptr;
  std::mt19937_64 random(options.jitter.value_or(0));
  std::optional<Shadow> shadow;
  if (options.check) shadow.emplace(program);
  Datapath datapath(program, values);
  // The sink of the groups' own clocks.
  Clock clock;
  const TraceSink trace = [&](TraceEvent event) {
    event.group = clock.group;
    event.begin += clock.begin;
    event.end += clock.begin;
    options.trace(event);
  };
  GroupRunner::Machine machine = {.datapath = &datapath,
                                  .storage = values,
                                  .shadow = shadow ? &*shadow : nullptr,
                                  .jitter = options.jitter ? &random : nullptr,
                                  .trace = options.trace ? &trace : nullptr};
  result.dumped.resize(options.dump.size());
  for (int64_t run = 0; run < options.repeat; ++run) {
    machine.is_first_run = run == 0;
    if (run > 0 && shadow) shadow->BeginRun();
    if (run > 0 && values != nullptr) values->ForgetRun();
    Counts counts;
    DumpAfter(program, options, -1, values, &result.dumped);
    DLA_RETURN_IF_ERROR(
        ProgramRun(program, options, machine, &clock, &result.dumped, &counts).Run());
    if (shadow) DLA_RETURN_IF_ERROR(shadow->Finish());
    std::vector<Tensor> outputs;
    if (values != nullptr) {
      DLA_ASSIGN_OR_RETURN(outputs, TakeOutputs(program, *values));
    }
    if (run == 0) {
      static_cast<Counts&>(result) = std::move(counts);
      result.outputs = std::move(outputs);
      continue;
    }
    DLA_RETURN_IF_ERROR(CompareRuns(result, counts, outputs, !options.jitter, run + 1));
    if (run == 1) result.steady = std::move(counts);
  }
  return result;
}

}  // namespace dla::runtime
