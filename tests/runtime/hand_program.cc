#include "tests/runtime/hand_program.h"

#include <algorithm>
#include <cstring>

namespace dla::runtime::test {

using machine::Engine;
using machine::Instruction;
using machine::Opcode;

namespace {

enum Token : uint8_t {
  kFreeD,
  kFreeS,
  kLoaded,
  kStoredD,
  kStoredS,
  kDoneToken,
  kReady,
  kArrayFree
};

Instruction Tokens(Opcode op, Engine engine, uint8_t token, uint8_t count = 1) {
  Instruction i;
  i.op = op;
  i.engine = engine;
  i.token = token;
  i.count = count;
  return i;
}

Instruction Bus(Engine engine, uint8_t lag, uint8_t slot) {
  Instruction i;
  i.op = Opcode::kBus;
  i.engine = engine;
  i.lag = lag;
  i.slot = slot;
  return i;
}

}  // namespace

uint16_t HandGroup::DimsOf(uint8_t o) const {
  unsigned mask = 0;
  for (const auto& axis : group.operands[o].axes) {
    for (const auto& term : axis.terms) mask |= 1u << term.dim;
  }
  return static_cast<uint16_t>(mask);
}

int HandGroup::InnermostLoop(uint8_t o) const {
  int innermost = -1;
  for (size_t k = 0; k < group.loops.size(); ++k) {
    if (DimsOf(o) >> group.loops[k] & 1) innermost = static_cast<int>(k);
  }
  return innermost;
}

void HandGroup::SetGeneration(uint8_t o) {
  unsigned mask = 0;
  for (int k = 0; k <= InnermostLoop(o); ++k) mask |= 1u << group.loops[static_cast<size_t>(k)];
  group.operands[o].generation_dims = static_cast<uint16_t>(mask);
}

void HandGroup::EmitCode() {
  const Engine compute_on = compute_engine;
  const Engine last_on = vector_after.empty() ? compute_engine : Engine::kVector;
  auto& body = group.body;
  group.prologue = {Tokens(Opcode::kSignal, last_on, kFreeD, 2),
                    Tokens(Opcode::kSignal, last_on, kFreeS),
                    Tokens(Opcode::kSignal, Engine::kStore, kStoredD, 2),
                    Tokens(Opcode::kSignal, Engine::kStore, kStoredS)};
  // Loops inside the innermost relevant one repeat the tile: it moves at their first (load) or last
  // (store) iteration.
  const auto transfers = [&](const std::vector<Traffic>& list, bool overlaps, Engine engine) {
    for (const Traffic& t : list) {
      if (t.overlaps != overlaps) continue;
      Instruction i;
      i.op = engine == Engine::kLoad ? Opcode::kLoad : Opcode::kStore;
      i.engine = engine;
      i.operand = t.operand;
      unsigned inside = 0;
      for (size_t k = static_cast<size_t>(InnermostLoop(t.operand) + 1); k < group.loops.size();
           ++k) {
        inside |= 1u << group.loops[k];
      }
      (engine == Engine::kLoad && !t.at_drain ? i.predicate.first : i.predicate.last) =
          static_cast<uint16_t>(inside);
      body.push_back(i);
    }
  };
  body = {Tokens(Opcode::kWait, Engine::kLoad, kFreeD)};
  transfers(loads, true, Engine::kLoad);
  body.push_back(Bus(Engine::kLoad, 0, 1));
  body.push_back(Tokens(Opcode::kWait, Engine::kLoad, kFreeS));
  transfers(loads, false, Engine::kLoad);
  body.push_back(Bus(Engine::kLoad, 0, 3));
  body.push_back(Tokens(Opcode::kSignal, Engine::kLoad, kLoaded));
  for (const uint8_t token : {kLoaded, kStoredS, kStoredD}) {
    body.push_back(Tokens(Opcode::kWait, compute_on, token));
  }
  if (!vector_after.empty()) {
    group.prologue.push_back(Tokens(Opcode::kSignal, last_on, kArrayFree));
    body.push_back(Tokens(Opcode::kWait, compute_on, kArrayFree));
  }
  body.insert(body.end(), compute.begin(), compute.end());
  if (!vector_after.empty()) {
    body.push_back(Tokens(Opcode::kSignal, compute_on, kReady));
    body.push_back(Tokens(Opcode::kWait, last_on, kReady));
    body.insert(body.end(), vector_after.begin(), vector_after.end());
    body.push_back(Tokens(Opcode::kSignal, last_on, kArrayFree));
  }
  for (const uint8_t token : {kFreeD, kFreeS, kDoneToken}) {
    body.push_back(Tokens(Opcode::kSignal, last_on, token));
  }
  body.push_back(Tokens(Opcode::kWait, Engine::kStore, kDoneToken));
  transfers(stores, false, Engine::kStore);
  body.push_back(Bus(Engine::kStore, 1, 2));
  body.push_back(Tokens(Opcode::kSignal, Engine::kStore, kStoredS));
  transfers(stores, true, Engine::kStore);
  body.push_back(Bus(Engine::kStore, 2, 0));
  body.push_back(Tokens(Opcode::kSignal, Engine::kStore, kStoredD));
  group.epilogue = {
      Tokens(Opcode::kWait, Engine::kLoad, kFreeD, 2), Tokens(Opcode::kWait, Engine::kLoad, kFreeS),
      Tokens(Opcode::kWait, compute_on, kStoredD, 2), Tokens(Opcode::kWait, compute_on, kStoredS)};
  if (!vector_after.empty()) {
    group.epilogue.push_back(Tokens(Opcode::kWait, compute_on, kArrayFree));
  }
}

machine::Target PlainTarget(int64_t memory_bytes) {
  machine::Target target;
  target.name = "plain";
  for (const char* name : {"input", "weight", "output"}) {
    machine::Memory memory;
    memory.name = name;
    memory.bytes = memory_bytes;
    memory.holds.fill(true);
    memory.energy_pj_per_byte = 1;
    target.memories.push_back(memory);
  }
  target.links.push_back({.from = 0, .to = 2, .bytes_per_cycle = {32, 1}});
  target.array.rates[{ElementType::kF32, ElementType::kF32}] = {1, 1};
  target.array.accumulator[ElementType::kF32] = ElementType::kF32;
  target.array.energy_pj_per_mac[ElementType::kF32] = 4.6;
  target.vector.op_cycles.fill(1);
  target.vector.op_cycles[0] = 0;
  return target;
}

uint32_t AddRegion(machine::Program* program, machine::RegionKind kind, const std::string& name,
                   int64_t bytes) {
  int64_t address = 0;
  for (const machine::Region& region : program->regions) {
    if (region.kind == kind) address = std::max(address, region.address + region.bytes);
  }
  program->regions.push_back(
      {.name = name, .kind = kind, .address = (address + 63) / 64 * 64, .bytes = bytes});
  return static_cast<uint32_t>(program->regions.size() - 1);
}

uint32_t AddConstant(machine::Program* program, const std::string& name,
                     const std::vector<float>& values) {
  const std::vector<uint8_t> bytes = BytesOf(values);
  const uint32_t number =
      AddRegion(program, machine::RegionKind::kConstant, name, static_cast<int64_t>(bytes.size()));
  std::vector<uint8_t> all(program->constants.bytes.begin(), program->constants.bytes.end());
  all.resize(static_cast<size_t>(program->regions[number].address));
  all.insert(all.end(), bytes.begin(), bytes.end());
  program->constants = machine::ConstantData::Own(std::move(all));
  return number;
}

std::vector<uint8_t> BytesOf(const std::vector<float>& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::vector<float> FloatsOf(const std::vector<uint8_t>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

}  // namespace dla::runtime::test
