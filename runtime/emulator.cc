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

Status RunGroup(const Program& program, const RunOptions& options, const Group& group,
                const GroupRunner::Machine& machine, GroupRun* run) {
  DLA_ASSIGN_OR_RETURN(const GroupPlan plan, PlanGroup(group, program.target));
  GroupRunner runner(program, group, plan, machine);
  DLA_RETURN_IF_ERROR(runner.Run(run).At("group '" + group.name + "'"));
  SetEnergy(program.target, run);
  if (options.mode == Mode::kFunctional) ClearTimes(run);
  return Status();
}

// Reads the wanted values that are whole after this group.
void DumpAfter(const Program& program, const RunOptions& options, int32_t group, Storage* values,
               RunResult* result) {
  for (size_t i = 0; i < options.dump.size() && values != nullptr; ++i) {
    const machine::ValueDesc& value = program.values[options.dump[i]];
    if (value.group == group) result->dumped[i] = ReadValue(value, values);
  }
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
  const TraceSink trace = [&](TraceEvent event) {
    event.group = static_cast<int64_t>(result.groups.size()) - 1;
    event.begin += result.total.counters.cycles;
    event.end += result.total.counters.cycles;
    options.trace(event);
  };
  const GroupRunner::Machine machine = {.datapath = &datapath,
                                        .storage = values,
                                        .shadow = shadow ? &*shadow : nullptr,
                                        .jitter = options.jitter ? &random : nullptr,
                                        .trace = options.trace ? &trace : nullptr};
  result.total.counters.memory.resize(program.target.memories.size());
  result.dumped.resize(options.dump.size());
  DumpAfter(program, options, -1, values, &result);
  for (const Group& group : program.groups) {
    if (shadow) shadow->BeginGroup(static_cast<int32_t>(result.groups.size()));
    GroupRun& run = result.groups.emplace_back();
    DLA_RETURN_IF_ERROR(RunGroup(program, options, group, machine, &run));
    AddTo(run, &result.total);
    DumpAfter(program, options, static_cast<int32_t>(result.groups.size()) - 1, values, &result);
    if (options.progress) {
      options.progress(static_cast<int64_t>(result.groups.size()),
                       static_cast<int64_t>(program.groups.size()));
    }
  }
  if (shadow) DLA_RETURN_IF_ERROR(shadow->Finish());
  if (values != nullptr) {
    DLA_ASSIGN_OR_RETURN(result.outputs, TakeOutputs(program, *values));
  }
  return result;
}

}  // namespace dla::runtime
