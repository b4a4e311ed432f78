// Groups that overlap (`--prefetch`): never slower, as predicted, the same values; programs in
// which the overlap is wrong are refused or noticed.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "machine/assembly.h"
#include "machine/verifier.h"
#include "tests/end_to_end/compile_run.h"
#include "tests/ir/graph_builder.h"
#include "tests/random_pick.h"

namespace dla::testing {
namespace {

using scheduler::ResidencyPolicy;

Compiled CompileFor(const Bundled& model, const std::string& target, bool prefetch,
                    ResidencyPolicy residency = ResidencyPolicy::kBest) {
  CompileOptions options = {.import = model.import, .target = target};
  options.schedule.objective = scheduler::Objective::kLatency;
  options.schedule.cascades = false;
  options.schedule.prefetch = prefetch;
  options.schedule.residency = residency;
  return MustCompile(model, options);
}

struct Overlaps {
  int joined = 0, prefetched = 0;
};

Overlaps CountOverlaps(const Compiled& compiled) {
  Overlaps overlaps;
  for (const machine::Group& group : compiled.program.groups) {
    overlaps.joined += group.joined ? 1 : 0;
    overlaps.prefetched += group.prefetch.empty() ? 0 : 1;
  }
  return overlaps;
}

void CompareWithBarriers(const Bundled& model, const std::string& target, Overlaps* all) {
  SCOPED_TRACE(model.name + " on " + target);
  const auto inputs = ReadNpz(BundledPath(model.name, "inputs.npz"));
  ASSERT_TRUE(inputs.ok());
  const Compiled apart = CompileFor(model, target, false);
  const Compiled overlapping = CompileFor(model, target, true);
  EXPECT_EQ(CountOverlaps(apart).joined + CountOverlaps(apart).prefetched, 0);
  const Overlaps overlaps = CountOverlaps(overlapping);
  all->joined += overlaps.joined;
  all->prefetched += overlaps.prefetched;
  const auto first = RunCompiled(apart, *inputs, {.check = true});
  const auto second = RunCompiled(overlapping, *inputs, {.check = true});
  ASSERT_TRUE(first.ok()) << first.status().message();
  ASSERT_TRUE(second.ok()) << second.status().message();
  ExpectAsPredicted(apart, first->result);
  ExpectAsPredicted(overlapping, second->result);
  const machine::Counters& with = second->result.total.counters;
  const machine::Counters& without = first->result.total.counters;
  EXPECT_EQ(with.dram_bytes(), without.dram_bytes());
  EXPECT_EQ(without.cycles, CyclesApart(overlapping.schedule));
  if (overlaps.joined + overlaps.prefetched > 0) {
    EXPECT_LT(with.cycles, without.cycles);
  } else {
    EXPECT_EQ(with.cycles, without.cycles);
  }
  // What engines do and wait for in all groups is the time of the whole.
  for (const runtime::EngineTimes& times : second->result.total.engines) {
    int64_t sum = times.busy;
    for (const int64_t stall : times.stall) sum += stall;
    EXPECT_EQ(sum, with.cycles);
  }
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const auto jittered = RunCompiled(overlapping, *inputs, {.check = true, .jitter = seed});
    ASSERT_TRUE(jittered.ok()) << jittered.status().message();
    for (const auto& [name, tensor] : first->outputs) {
      EXPECT_EQ(tensor.bytes, jittered->outputs.at(name).bytes);
    }
  }
}

TEST(Overlap, IsFasterAndAsPredicted) {
  Overlaps all;
  for (const Bundled& model : BundledModels()) {
    for (const char* target : {"edge32", "edge32-unified", "edge32-ws", "meta-df", "onsram"}) {
      CompareWithBarriers(model, target, &all);
    }
  }
  std::printf("%d groups joined, %d with prefetched operands\n", all.joined, all.prefetched);
  EXPECT_GT(all.joined, 20);
  EXPECT_GT(all.prefetched, 20);
}

// Element-wise groups on what stays on chip, between groups that load something: convolutions,
// products, additions of an input, copies into another order.
ir::Graph RandomNeighbours(std::mt19937* random) {
  const RandomPick pick(random);
  ir::GraphBuilder builder;
  ir::Shape shape = {1, pick(2, 12), pick(4, 20), pick(4, 20)};
  ir::ValueId x = builder.Input("x", shape);
  std::vector<std::pair<ir::ValueId, ir::Shape>> values;
  const int64_t count = pick(3, 8);
  for (int64_t i = 0; i < count; ++i) {
    values.emplace_back(x, shape);
    const std::string name = "n" + std::to_string(i);
    const int64_t form = pick(0, 7);
    if (form == 0) {
      const int64_t m = pick(2, 12);
      const ir::ValueId w =
          builder.Floats(name + ".w", {m, shape[1], 1, 1}, ir::Pattern(m * shape[1]));
      x = builder.Node("Conv", name, {x, w});
      shape[1] = m;
    } else if (form == 1) {
      // An input, or a value from before, a part of whose life may have been on chip.
      std::vector<ir::ValueId> same;
      for (const auto& [value, its_shape] : values) {
        if (its_shape == shape) same.push_back(value);
      }
      const auto at = static_cast<size_t>(pick(0, static_cast<int64_t>(same.size())));
      x = builder.Node("Add", name,
                       {x, at < same.size() ? same[at] : builder.Input(name + ".in", shape)});
    } else if (form == 2) {
      x = builder.Node("Transpose", name, {x}, {{"perm", ir::Shape{0, 1, 3, 2}}});
      std::swap(shape[2], shape[3]);
    } else if (form >= 6) {
      // The second factor's tiles may come over a link.
      const int64_t n = pick(8, 100);
      const ir::ValueId in = builder.Input(name + ".in", {1, shape[1], shape[3], n});
      x = builder.Node("MatMul", name, {x, builder.Node("Abs", name + ".abs", {in})});
      shape[3] = n;
    } else {
      x = builder.Node(form == 3 ? "Abs" : form == 4 ? "Neg" : "Relu", name, {x});
    }
  }
  // A value that leaves the network may stay for its readers, too.
  std::vector<ir::ValueId> outputs = {x};
  const ir::ValueId other = values[static_cast<size_t>(pick(0, count - 1))].first;
  if (other != values[0].first) outputs.push_back(other);
  return builder.Build(outputs);
}

bool Loads(const machine::Group& group) {
  return std::any_of(group.body.begin(), group.body.end(),
                     [](const machine::Instruction& i) { return i.op == machine::Opcode::kLoad; });
}

// Also where the group before a prefetch loads nothing, so that no step holds up the load engine.
TEST(Overlap, RandomNeighboursAsPredicted) {
  const uint32_t seed = std::random_device()();
  std::mt19937 random(seed);
  SCOPED_TRACE(Concat("seed ", seed));
  int prefetched = 0, behind_no_load = 0, stored_too = 0;
  for (int i = 0; i < 120; ++i) {
    SCOPED_TRACE(Concat("graph ", i));
    static const char* const kTargets[] = {"edge32", "edge32-unified", "onsram", "meta-df",
                                           "tpu256"};
    CompileOptions options = {.target = kTargets[random() % 5], .fuse = random() % 2 == 0};
    SCOPED_TRACE(options.target);
    if (options.target == "edge32-unified" || options.target == "onsram") {
      options.memories = {Concat("pool=", random() % 40 + 8, "K")};
    }
    options.schedule.objective = scheduler::Objective::kLatency;
    options.schedule.cascades = false;
    const Result<Compiled> compiled = CompileGraph(RandomNeighbours(&random), options);
    if (!compiled.ok() && compiled.status().code() == ErrorCode::kDoesNotFit) continue;
    ASSERT_TRUE(compiled.ok()) << compiled.status().message();
    ExpectRuns(*compiled, random());
    if (HasFailure()) return;
    for (const scheduler::Resident& r : compiled->schedule.residents)
      stored_too += r.through.stored;
    const std::vector<machine::Group>& groups = compiled->program.groups;
    for (size_t g = 1; g < groups.size(); ++g) {
      if (groups[g].prefetch.empty()) continue;
      ++prefetched;
      if (!Loads(groups[g - 1])) ++behind_no_load;
    }
  }
  std::printf("%d prefetches, %d behind groups that load nothing; %d values stay and are stored\n",
              prefetched, behind_no_load, stored_too);
  EXPECT_GT(prefetched, 50);
  EXPECT_GT(behind_no_load, 10);
  EXPECT_GT(stored_too, 10);
}

class WrongOverlap : public ::testing::Test {
 protected:
  WrongOverlap()
      : compiled_(CompileFor(BundledModels()[1], "onsram", true, ResidencyPolicy::kNone)) {
    auto& groups = compiled_.program.groups;
    for (size_t g = 1; g < groups.size(); ++g) {
      if (groups[g].joined && StoredOf(groups[g - 1]) != nullptr) joined_ = g;
      if (!groups[g].prefetch.empty() && !groups[g].loops.empty()) prefetches_ = g;
    }
  }

  static machine::OperandDesc* StoredOf(machine::Group& group) {
    for (const machine::Instruction& i : group.body) {
      if (i.op == machine::Opcode::kStore) return &group.operands[i.operand];
    }
    return nullptr;
  }
  machine::Group& Group(size_t g) { return compiled_.program.groups[g]; }

  void ExpectRefused(const std::string& why) {
    const Status status = machine::VerifyProgram(compiled_.program);
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.message().find(why), std::string::npos) << status.message();
  }

  Compiled compiled_;
  size_t joined_ = 0, prefetches_ = 0;
};

TEST_F(WrongOverlap, TextSaysIt) {
  ASSERT_GT(joined_, 0u);
  ASSERT_GT(prefetches_, 0u);
  const auto again = machine::Assemble(machine::Disassemble(compiled_.program));
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_TRUE(again->groups == compiled_.program.groups);
}

TEST_F(WrongOverlap, PrefetchOverTheGroupBefore) {
  machine::OperandDesc& mine = Group(prefetches_).operands[Group(prefetches_).prefetch[0]];
  for (const machine::OperandDesc& other : Group(prefetches_ - 1).operands) {
    if (other.memory == mine.memory && other.slot_bytes > 0) mine.address = other.address;
  }
  ExpectRefused("is prefetched to where the group before has its");
}

TEST_F(WrongOverlap, PrefetchOfWhatTheGroupBeforeStores) {
  const machine::Program good = compiled_.program;
  int refused = 0;
  for (size_t g = 1; g < good.groups.size(); ++g) {
    for (const uint8_t operand : good.groups[g].prefetch) {
      const uint32_t region = good.groups[g].operands[operand].region;
      if (good.regions[region].kind != machine::RegionKind::kTemporary) continue;
      compiled_.program = good;
      machine::OperandDesc* stored = StoredOf(Group(g - 1));
      if (stored == nullptr) continue;
      stored->region = region;
      const Status status = machine::VerifyProgram(compiled_.program);
      EXPECT_FALSE(status.ok());
      if (status.message().find("is prefetched from where") != std::string::npos) ++refused;
    }
  }
  EXPECT_GT(refused, 0);
}

TEST_F(WrongOverlap, JoinedOverWhatIsStillStored) {
  ASSERT_GT(joined_, 0u);
  const machine::OperandDesc stored = *StoredOf(Group(joined_ - 1));
  for (machine::OperandDesc& mine : Group(joined_).operands) {
    if (mine.memory == stored.memory && mine.slot_bytes > 0) mine.address = stored.address;
  }
  ExpectRefused("lies where the group before may still store its");
}

TEST_F(WrongOverlap, NothingBefore) {
  Group(0).joined = true;
  ExpectRefused("cannot overlap with the group before");
}

TEST_F(WrongOverlap, TwiceTheSame) {
  Group(prefetches_).prefetch.push_back(Group(prefetches_).prefetch[0]);
  ExpectRefused("or twice");
  Group(prefetches_).prefetch.back() = 200;
  ExpectRefused("prefetches operand 200");
}

TEST_F(WrongOverlap, PlaceOnTheBus) {
  for (machine::Instruction& i : Group(prefetches_ - 1).body) {
    if (i.op == machine::Opcode::kBus && i.engine == machine::Engine::kLoad) i.lag = 2;
  }
  ExpectRefused("has the place on the bus of what the next group prefetches");
}

// A group that does not prefetch what its code takes for there reads something else.
TEST_F(WrongOverlap, AForgottenPrefetchIsNoticed) {
  const auto inputs = ReadNpz(BundledPath(BundledModels()[1].name, "inputs.npz"));
  ASSERT_TRUE(inputs.ok());
  Group(prefetches_).prefetch.erase(Group(prefetches_).prefetch.begin());
  const auto outcome = RunCompiled(compiled_, *inputs, {.check = true});
  EXPECT_FALSE(outcome.ok());
}

}  // namespace
}  // namespace dla::testing
