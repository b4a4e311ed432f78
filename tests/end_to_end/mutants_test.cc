// Damaged programs are noticed: mutants of single groups of a real network, cut out of its program.
#include "tests/codegen/mutants.h"

#include <gtest/gtest.h>

#include "machine/verifier.h"
#include "tests/end_to_end/compile_run.h"

namespace dla::testing {
namespace {

using machine::RegionKind;

int64_t StepsOf(const machine::Group& group) {
  int64_t steps = 1;
  for (const uint8_t d : group.loops) steps *= group.dims[d].count();
  return steps;
}

// The group alone: what it loads from other groups becomes an input, what it stores for them an
// output. All values go through DRAM.
machine::Program CutOut(const machine::Program& whole, size_t g) {
  machine::Program program = whole;
  program.groups = {whole.groups[g]};
  program.predicted = {whole.predicted[g]};
  program.buffers.clear();
  program.values.clear();
  program.inputs.clear();
  program.outputs.clear();
  std::vector<bool> used(whole.regions.size(), false);
  for (const machine::Instruction& i : program.groups[0].body) {
    if (i.op != machine::Opcode::kLoad && i.op != machine::Opcode::kStore) continue;
    const machine::OperandDesc& operand = program.groups[0].operands[i.operand];
    machine::Region& region = program.regions[operand.region];
    if (region.kind == RegionKind::kConstant || used[operand.region]) continue;
    if (operand.cls == OperandClass::kPartial) continue;  // spilled, then loaded again
    used[operand.region] = true;
    const bool load = i.op == machine::Opcode::kLoad;
    region.kind = load ? RegionKind::kInput : RegionKind::kOutput;
    const machine::Port port = {
        .name = region.name, .shape = {region.bytes / 4}, .region = operand.region};
    (load ? program.inputs : program.outputs).push_back(port);
  }
  for (size_t r = 0; r < program.regions.size(); ++r) {  // out of the way
    machine::Region& region = program.regions[r];
    if (!used[r] && region.kind != RegionKind::kConstant) {
      region.kind = RegionKind::kTemporary, region.address = 0, region.bytes = 0;
    }
  }
  return program;
}

std::vector<Tensor> RandomInputs(const machine::Program& program, std::mt19937* random) {
  std::vector<Tensor> inputs;
  for (const machine::Port& port : program.inputs) {
    Tensor tensor = {.name = port.name, .type = port.type, .shape = port.shape};
    for (int64_t i = 0; i < port.shape[0]; ++i) {
      const float value = static_cast<float>((*random)() % 65) / 8 - 4;
      const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
      tensor.bytes.insert(tensor.bytes.end(), bytes, bytes + sizeof(value));
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

// Groups with some steps and little work, up to three of each anchor.
std::vector<size_t> ChooseGroups(const Compiled& compiled) {
  std::map<ir::Anchor, int> taken;
  std::vector<size_t> chosen;
  for (size_t g = 0; g < compiled.program.groups.size(); ++g) {
    const int64_t steps = StepsOf(compiled.program.groups[g]);
    const machine::Counters& predicted = compiled.program.predicted[g];
    if (steps < 2 || steps > 40 || predicted.macs_issued > 400000 ||
        predicted.dram_bytes() > 100000)
      continue;
    if (taken[compiled.schedule.groups[g].nest.anchor]++ < 3) chosen.push_back(g);
  }
  return chosen;
}

TEST(Mutants, OfARealNetworksGroupsAreNoticedOrEquivalent) {
  constexpr uint32_t kSeed = 31;
  std::printf("seed %u\n", kSeed);
  std::mt19937 random(kSeed);
  const Bundled model = BundledModels()[1];
  CompileOptions options = {.import = model.import, .memories = {"input=5K", "output=5K"}};
  options.schedule.residency = scheduler::ResidencyPolicy::kNone;
  options.schedule.prefetch = false;  // groups are run alone
  const Result<Compiled> compiled = CompileModel(BundledPath(model.name, "model.onnx"), options);
  ASSERT_TRUE(compiled.ok()) << compiled.status().message();
  FateTable table;
  for (const size_t g : ChooseGroups(*compiled)) {
    SCOPED_TRACE("group " + compiled->program.groups[g].name);
    std::printf("%s: %ld steps\n", compiled->program.groups[g].name.c_str(),
                static_cast<long>(StepsOf(compiled->program.groups[g])));
    const machine::Program program = CutOut(compiled->program, g);
    JudgeMutants(program, RandomInputs(program, &random), 4, &random, &table);
    if (HasFailure()) break;
  }
  table.Print();
}

}  // namespace
}  // namespace dla::testing
