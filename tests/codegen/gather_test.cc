// Gathered operands: any mapping of any Take gives what the evaluator gives, counts what was
// predicted (and what a brute-force walk counts), whatever the indices are. Seeds are printed.
#include <gtest/gtest.h>

#include <algorithm>

#include "ir/evaluate.h"
#include "ir/op.h"
#include "machine/assembly.h"
#include "machine/target_file.h"
#include "machine/verifier.h"
#include "runtime/emulator.h"
#include "scheduler/predict.h"
#include "scheduler/transfers.h"
#include "tests/codegen/layer_program.h"
#include "tests/scheduler/nest_walk.h"

namespace dla::testing {
namespace {

constexpr ElementType kDataTypes[] = {ElementType::kF32, ElementType::kF16, ElementType::kI8,
                                      ElementType::kI64};
constexpr ElementType kIndexTypes[] = {ElementType::kI64, ElementType::kI32, ElementType::kI16,
                                       ElementType::kU8};

struct TakeCase {
  ir::Graph graph;  // data, indices -> result
  std::map<std::string, ir::Tensor> inputs;
};

int64_t Number(std::mt19937* random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>((*random)() % static_cast<uint64_t>(high - low + 1));
}

ir::Value DenseValue(const std::string& name, ElementType type, const ir::Shape& shape,
                     ir::ValueId id) {
  return {.name = name,
          .type = type,
          .shape = shape,
          .constant = nullptr,
          .storage = {id, 0, ir::DenseStrides(shape), std::nullopt}};
}

TakeCase RandomTake(std::mt19937* random) {
  const ir::Shape data = {Number(random, 1, 4), Number(random, 1, 9), Number(random, 1, 40)};
  const int64_t count = Number(random, 1, 12);
  const bool by_outer = Number(random, 0, 1) == 1, by_inner = Number(random, 0, 2) == 0;
  const ir::Shape indices = {by_outer ? data[0] : 1, count, by_inner ? data[2] : 1};
  const ElementType type = kDataTypes[Number(random, 0, 3)];
  const ElementType index_type = kIndexTypes[Number(random, 0, 3)];
  TakeCase c;
  c.graph.values = {DenseValue("data", type, data, 0), DenseValue("list", index_type, indices, 1),
                    DenseValue("result", type, {data[0], count, data[2]}, 2)};
  ir::Node node{.name = "take", .op = "Take", .inputs = {0, 1}, .outputs = {2}};
  const bool may_fuse = type == ElementType::kF32 || type == ElementType::kI64;
  if (may_fuse && Number(random, 0, 1) == 0) node.fused = {{"Neg", {-1}, {}}};
  c.graph.nodes = {node};
  c.graph.inputs = {0, 1};
  c.graph.outputs = {2};
  ir::Tensor values = ir::Tensor::Zeros({type, data}),
             list = ir::Tensor::Zeros({index_type, indices});
  for (int64_t i = 0; i < values.elements(); ++i) {
    ir::WriteDouble(&values, i, static_cast<double>(Number(random, -60, 60)));
  }
  const int64_t least = index_type == ElementType::kU8 ? 0 : -data[1];
  for (int64_t i = 0; i < list.elements(); ++i) {
    ir::WriteInt(&list, i, Number(random, least, data[1] - 1));
  }
  c.inputs = {{"data", values}, {"list", list}};
  return c;
}

std::vector<Tensor> RunInputs(const TakeCase& c) {
  std::vector<Tensor> inputs;
  for (const char* name : {"data", "list"}) {
    const ir::Tensor& t = c.inputs.at(name);
    inputs.push_back({name, t.type, t.shape, t.bytes});
  }
  return inputs;
}

ir::Nest NestOf(const TakeCase& c) {
  const Result<ir::Nest> nest = ir::BuildNest(c.graph, c.graph.nodes[0]);
  DLA_CHECK(nest.ok(), nest.status().message());
  return *nest;
}

scheduler::Mapping RandomPlaces(const ir::Nest& nest, bool three, std::mt19937* random) {
  scheduler::Mapping mapping;
  do {
    mapping = RandomMapping(nest, random);
    if (three) PlaceInThree(nest, &mapping, random);
    if (nest.anchor == ir::Anchor::kMove) mapping.operands.back() = mapping.operands[0];
  } while (!scheduler::GatherFault(nest, mapping).empty());
  return mapping;
}

machine::Program ProgramFor(const TakeCase& c, const ir::Nest& nest,
                            const scheduler::Mapping& mapping, const machine::Target& target) {
  scheduler::ScheduledGroup group = {.name = "take", .onnx_nodes = {"take"}, .op = "Take"};
  group.nest = nest;
  group.mapping = mapping;
  return ProgramOf(ScheduleOf(c.graph, group, target));
}

// Predicted traffic and cycles are those of the walk.
void ExpectAsWalked(const ir::Nest& nest, const scheduler::Mapping& mapping,
                    const machine::Target& target) {
  if (nest.anchor != ir::Anchor::kMove) return;  // the walk computes on the array alone
  const Walk walk = WalkNest(nest, mapping, target);
  const machine::Counters predicted = scheduler::Predict(nest, mapping, target);
  machine::Counters::Traffic expected;
  int64_t descriptors = 0;
  for (const Walk::PerOperand& o : walk.operands) {
    expected.load_bytes += o.load_bytes;
    expected.store_bytes += o.store_bytes;
    expected.load_bus_bytes += o.load_bus_bytes;
    expected.store_bus_bytes += o.store_bus_bytes;
    descriptors += o.descriptors;
  }
  EXPECT_TRUE(predicted.traffic[static_cast<size_t>(OperandClass::kVector)] == expected);
  EXPECT_EQ(predicted.descriptors, descriptors);
  EXPECT_EQ(predicted.cycles, walk.cycles);
}

void RunRandom(const std::string& target_name, uint32_t seed, int runs, bool slow = false) {
  std::printf("seed %u\n", seed);
  Result<machine::Target> target = machine::LoadTarget(target_name, {});
  ASSERT_TRUE(target.ok()) << target.status().message();
  if (slow) {
    for (machine::Memory& memory : target->memories) {
      memory.bytes_per_cycle = machine::Rational{5, 2};
    }
  }
  std::mt19937 random(seed);
  for (int run = 0; run < runs && !::testing::Test::HasFailure(); ++run) {
    SCOPED_TRACE("run " + std::to_string(run));
    const TakeCase c = RandomTake(&random);
    const ir::Nest nest = NestOf(c);
    const bool three = target->memories.size() == 3;
    const scheduler::Mapping mapping = RandomPlaces(nest, three, &random);
    if (!slow) ExpectAsWalked(nest, mapping, *target);
    const machine::Program program = ProgramFor(c, nest, mapping, *target);
    ASSERT_EQ(machine::VerifyProgram(program).message(), "");
    const Result<machine::Program> again = machine::Assemble(machine::Disassemble(program));
    ASSERT_TRUE(again.ok()) << again.status().message();
    ASSERT_TRUE(again->groups == program.groups);
    const auto expected = ir::Evaluate(c.graph, c.inputs);
    ASSERT_TRUE(expected.ok()) << expected.status().message();
    const auto ran = runtime::Run(program, {.check = true, .jitter = {}}, RunInputs(c));
    ASSERT_TRUE(ran.ok()) << ran.status().message();
    EXPECT_EQ(ran->outputs[0].bytes, expected->at("result").bytes);
    EXPECT_TRUE(ran->groups[0].counters == program.predicted[0]);
    const auto timed = runtime::Run(program, {.mode = runtime::Mode::kTimed, .jitter = {}}, {});
    ASSERT_TRUE(timed.ok()) << timed.status().message();
    EXPECT_TRUE(timed->groups[0].counters == program.predicted[0]);
    const auto late = runtime::Run(program, {.check = true, .jitter = random()}, RunInputs(c));
    ASSERT_TRUE(late.ok()) << late.status().message();
    EXPECT_EQ(late->outputs[0].bytes, expected->at("result").bytes);
  }
}

TEST(Gather, Edge32) { RunRandom("edge32", 31, 400); }
TEST(Gather, OnePool) { RunRandom("edge32-unified", 32, 200); }
TEST(Gather, Ideal) { RunRandom("edge32-ideal", 33, 200); }
TEST(Gather, SlowScratchpads) { RunRandom("edge32", 34, 200, true); }

// Every change of what a gathered operand says, or of the order of the loads, is noticed: by the
// verifier, by --check, as another value or as another count.
TEST(Gather, MutantsAreNoticed) {
  const Result<machine::Target> target = machine::LoadTarget("edge32", {});
  ASSERT_TRUE(target.ok());
  using G = machine::Group;
  const auto find_load = [](G* g, uint8_t operand) {
    return std::find_if(g->body.begin(), g->body.end(), [&](const machine::Instruction& i) {
      return i.op == machine::Opcode::kLoad && i.operand == operand;
    });
  };
  const std::vector<std::pair<std::string, std::function<void(G*)>>> changes = {
      {"bound + 1", [](G* g) { ++g->operands[0].gather->bound; }},
      {"bound - 1", [](G* g) { --g->operands[0].gather->bound; }},
      {"stride + 1", [](G* g) { ++g->operands[0].gather->stride; }},
      {"stride - 1", [](G* g) { --g->operands[0].gather->stride; }},
      {"not gathered", [](G* g) { g->operands[0].gather.reset(); }},
      {"gathered by itself", [](G* g) { g->operands[0].gather->indices = 0; }},
      {"gathered by the result", [](G* g) { g->operands[0].gather->indices = 2; }},
      {"no indices", [&](G* g) { g->body.erase(find_load(g, 1)); }},
      {"indices last", [&](G* g) { std::iter_swap(find_load(g, 0), find_load(g, 1)); }},
  };
  std::mt19937 random(41);
  std::printf("seed 41\n");
  std::vector<int> noticed(changes.size());
  constexpr int kRuns = 60;
  int runs = 0;
  while (runs < kRuns) {
    const TakeCase c = RandomTake(&random);
    const ir::Shape& data = c.graph.values[0].shape;
    const ir::Tensor& list = c.inputs.at("list");
    // All entries are named, the last one from the end too, so that any other bound matters.
    if (data[1] < 3 || list.elements() < 8 || list.type == ElementType::kU8) continue;
    TakeCase full = c;
    for (int64_t i = 0; i < list.elements(); ++i) {
      ir::WriteInt(&full.inputs.at("list"), i, i % (2 * data[1]) - data[1]);
    }
    if (list.elements() < 2 * data[1]) continue;
    ++runs;
    const ir::Nest nest = NestOf(full);
    const machine::Program program =
        ProgramFor(full, nest, RandomPlaces(nest, true, &random), *target);
    const auto right = runtime::Run(program, {.check = true, .jitter = {}}, RunInputs(full));
    ASSERT_TRUE(right.ok()) << right.status().message();
    for (size_t m = 0; m < changes.size(); ++m) {
      machine::Program mutant = program;
      changes[m].second(&mutant.groups[0]);
      if (!machine::VerifyProgram(mutant).ok()) {
        ++noticed[m];
        continue;
      }
      const auto ran = runtime::Run(mutant, {.check = true, .jitter = {}}, RunInputs(full));
      noticed[m] += !ran.ok() || ran->outputs[0].bytes != right->outputs[0].bytes ||
                    !(ran->groups[0].counters == program.predicted[0]);
    }
  }
  for (size_t m = 0; m < changes.size(); ++m) EXPECT_EQ(noticed[m], kRuns) << changes[m].first;
}

TEST(Gather, AnIndexThatNamesNothingEndsTheRun) {
  const Result<machine::Target> target = machine::LoadTarget("edge32", {});
  ASSERT_TRUE(target.ok());
  std::mt19937 random(51);
  TakeCase c = RandomTake(&random);
  while (c.inputs.at("list").type == ElementType::kU8) c = RandomTake(&random);
  const ir::Nest nest = NestOf(c);
  const machine::Program program = ProgramFor(c, nest, RandomPlaces(nest, true, &random), *target);
  const int64_t extent = c.graph.values[0].shape[1];
  for (const int64_t index : {extent, -extent - 1}) {
    ir::Tensor& list = c.inputs.at("list");
    ir::WriteInt(&list, list.elements() - 1, index);
    const auto ran = runtime::Run(program, {.jitter = {}}, RunInputs(c));
    ASSERT_FALSE(ran.ok());
    EXPECT_EQ(ran.status().code(), ErrorCode::kMalformed);
    for (const std::string& part :
         {std::string("group 'take'"), Concat("index ", index, " in 'list'"),
          Concat("outside the ", extent, " entries of 'data'")}) {
      EXPECT_NE(ran.status().message().find(part), std::string::npos) << ran.status().message();
    }
    EXPECT_FALSE(ir::Evaluate(c.graph, c.inputs).ok());
  }
}

}  // namespace
}  // namespace dla::testing
