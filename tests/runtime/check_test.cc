// --check and --jitter: sound programs run silently and give the same values under any delays;
// each planted fault is reported with the place and what was expected.
#include <gtest/gtest.h>

#include <functional>

#include "runtime/emulator.h"
#include "tests/runtime/conv_program.h"

namespace dla::runtime::test {
namespace {

TEST(Check, IsSilentOnSoundPrograms) {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const ConvCase c = MakeConv(RandomConv(&random), &random);
    const auto result = runtime::Run(c.program, {.check = true}, c.inputs);
    ASSERT_TRUE(result.ok()) << result.status().message();
    ASSERT_EQ(FloatsOf(result->outputs[0].bytes), c.expected);
  }
}

TEST(Jitter, ChangesTimesButNoValues) {
  int longer = 0;
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const ConvCase c = MakeConv(RandomConv(&random), &random);
    const auto calm = runtime::Run(c.program, {}, c.inputs);
    const auto shaken = runtime::Run(c.program, {.check = true, .jitter = seed}, c.inputs);
    ASSERT_TRUE(calm.ok() && shaken.ok()) << shaken.status().message();
    ASSERT_EQ(shaken->outputs[0].bytes, calm->outputs[0].bytes);
    machine::Counters counted = shaken->total.counters;
    longer += counted.cycles > calm->total.counters.cycles ? 1 : 0;
    counted.cycles = calm->total.counters.cycles;
    ASSERT_EQ(counted, calm->total.counters);
  }
  EXPECT_GT(longer, 100);
}

// Eight steps and more in M, E and C; everything double-buffered; drained to a buffer of its own.
ConvCase Sound() {
  std::mt19937 random(1);
  ConvSpec s;
  s.extent = {1, 8, 4, 6, 6, 3, 3};
  s.block = {1, 4, 2, 3, 6, 3, 3};
  s.loops = {kM, kE, kC};
  s.height = s.width = 6;
  s.padding = 1;
  s.bias = s.relu = s.drain_apart = true;
  s.input_slots = s.weight_slots = s.output_slots = 2;
  return MakeConv(s, &random);
}

using machine::Instruction;
using machine::Opcode;

Instruction& Find(machine::Group* group, Opcode op, uint8_t operand) {
  for (Instruction& i : group->body) {
    if (i.op == op && i.operand == operand) return i;
  }
  ADD_FAILURE() << "no such instruction";
  return group->body.front();
}

size_t Position(const machine::Group& group, const std::function<bool(const Instruction&)>& is) {
  for (size_t i = 0; i < group.body.size(); ++i) {
    if (is(group.body[i])) return i;
  }
  ADD_FAILURE() << "no such instruction";
  return 0;
}

// The program with a fault: refused, with a message that has all these parts.
void ExpectFault(ConvCase c, const std::function<void(machine::Group*)>& plant,
                 const std::vector<std::string>& parts) {
  plant(&c.program.groups[0]);
  const auto result = runtime::Run(c.program, {.check = true}, c.inputs);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), ErrorCode::kMalformed);
  for (const std::string& part : parts) {
    EXPECT_NE(result.status().message().find(part), std::string::npos)
        << "'" << part << "' is not in: " << result.status().message();
  }
}

TEST(Check, SoundProgramOfTheFaultsIsSound) {
  const ConvCase c = Sound();
  const auto result = runtime::Run(c.program, {.check = true}, c.inputs);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(FloatsOf(result->outputs[0].bytes), c.expected);
}

TEST(Check, ReportsADroppedLoadAsUninitialised) {
  ExpectFault(Sound(),
              [](machine::Group* g) {
                const size_t at = Position(*g, [](const Instruction& i) {
                  return i.op == Opcode::kLoad && i.operand == kWeight;
                });
                g->body.erase(g->body.begin() + static_cast<std::ptrdiff_t>(at));
              },
              {"group 'conv': step 0: array instruction reads operand 'w' at 'weight' 0x0",
               "expected byte 0 of region 'w'", "found nothing (never written)"});
}

TEST(Check, ReportsAStaleTile) {
  // The input is loaded at the first block of C only: step 1 finds what lay in its slot, or
  // nothing.
  ExpectFault(Sound(),
              [](machine::Group* g) {
                Find(g, Opcode::kLoad, kInput).predicate.first |= 1u << kC;
                g->operands[kInput].ring_slots = 1;
              },
              {"step 1: array instruction reads operand 'x' at 'input'",
               "expected byte 288 of region 'x'", "found byte 0 of region 'x'"});
}

TEST(Check, ReportsAnOverwrittenTile) {
  // One slot, but tokens for two: the next load overwrites what the array has not read yet.
  ExpectFault(Sound(), [](machine::Group* g) { g->operands[kInput].ring_slots = 1; },
              {"step 0: array instruction reads operand 'x' at 'input' 0x0", "found byte 288"});
}

TEST(Check, ReportsABufferThatAnotherOneOverwrites) {
  // The drained tile lies where the bias does, which the next tile of E needs again.
  ExpectFault(Sound(),
              [](machine::Group* g) {
                g->operands[kOutput].memory = 1;
                g->operands[kOutput].address = g->operands[kBias].address;
                g->operands[kOutput].ring_slots = 1;
              },
              {"step 2: array instruction reads operand 'b' at 'weight'",
               "expected byte 0 of region 'b'", "found byte 0 of region 'y'"});
}

TEST(Check, ReportsAWrongTile) {
  // The array takes channels one further on than the load brought.
  ExpectFault(Sound(),
              [](machine::Group* g) {
                g->operands.push_back(g->operands[kInput]);
                g->operands.back().axes[1].offset += 1;
                Find(g, Opcode::kArray, kInput).operand =
                    static_cast<uint8_t>(g->operands.size() - 1);
              },
              {"step 0: array instruction reads operand 'x'", "expected byte 144 of region 'x'",
               "found byte 0 of region 'x'"});
}

TEST(Check, ReportsAStoreBeforeTheDrain) {
  ExpectFault(Sound(),
              [](machine::Group* g) {
                machine::Predicate& p = Find(g, Opcode::kStore, kOutput).predicate;
                std::swap(p.first, p.last);
              },
              {"step 0: store reads operand 'y' at 'output'", "expected byte 0 of region 'y'",
               "found nothing (never written)"});
}

TEST(Check, ReportsSwappedStores) {
  // The store reads the slots in the wrong order.
  ExpectFault(Sound(),
              [](machine::Group* g) {
                g->operands.push_back(g->operands[kOutput]);
                auto& swapped = g->operands.back();
                swapped.ring_slots = 1;
                swapped.address += swapped.slot_bytes;
                Find(g, Opcode::kStore, kOutput).operand =
                    static_cast<uint8_t>(g->operands.size() - 1);
              },
              {"store reads operand 'y' at 'output'", "expected byte 0 of region 'y'"});
}

TEST(Check, ReportsADroppedStore) {
  ExpectFault(
      Sound(),
      [](machine::Group* g) { Find(g, Opcode::kStore, kOutput).predicate.not_last = 1u << kM; },
      {"output 'y': byte 576 of 1152 was never stored"});
}

TEST(Check, ReportsAnExtentOffByOne) {
  ExpectFault(Sound(), [](machine::Group* g) { g->dims[kE].extent = 5; },
              {"output 'y': byte 120 of 1152 was never stored"});
}

// Moves the engine's signal of `token` before everything else that the engine does in a step.
void SignalFirst(machine::Group* g, machine::Engine engine, int token) {
  const size_t from = Position(*g, [&](const Instruction& i) {
    return i.op == Opcode::kSignal && i.engine == engine && i.token == token;
  });
  const Instruction signal = g->body[from];
  g->body.erase(g->body.begin() + static_cast<std::ptrdiff_t>(from));
  g->body.insert(g->body.begin(), signal);
}

TEST(Check, ReportsTokensSignalledTooEarly) {
  // `loaded` before the load, `done` before the array instruction. (The credits need no such test:
  // the order of the bus protects the buffers without them.) Whether anybody gets in between
  // depends on who runs first, so several orders are tried.
  const std::pair<machine::Engine, int> moves[] = {{machine::Engine::kLoad, 2},
                                                   {machine::Engine::kArray, 5}};
  for (const auto& [engine, token] : moves) {
    ConvCase c = Sound();
    SignalFirst(&c.program.groups[0], engine, token);
    int reported = 0;
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      const auto result = runtime::Run(c.program, {.check = true, .jitter = seed}, c.inputs);
      if (result.ok()) continue;
      ++reported;
      EXPECT_NE(result.status().message().find("expected"), std::string::npos)
          << result.status().message();
    }
    EXPECT_GT(reported, 0) << "token " << token;
  }
}

TEST(Check, ReportsAccumulatorsThatMissProducts) {
  // The array skips the middle block of C.
  ConvCase c = Sound();
  machine::Group& g = c.program.groups[0];
  g.dims[kC].block = 1;  // four blocks; tiles are smaller than their buffers
  Find(&g, Opcode::kArray, kInput).predicate = {.not_first = 1u << kC};
  const auto result = runtime::Run(c.program, {.check = true}, c.inputs);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().message().find("expected a partial sum of 9 products"),
            std::string::npos)
      << result.status().message();
}

TEST(Mutants, BreakTheAgreementOfPredictedAndCounted) {
  const auto counted = [](const ConvCase& c) {
    const auto result = runtime::Run(c.program, {.mode = Mode::kTimed}, {});
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result.ok() ? result->total.counters : machine::Counters{};
  };
  const machine::Counters sound = counted(Sound());
  ConvCase c = Sound();
  Find(&c.program.groups[0], Opcode::kLoad, kWeight).predicate.not_first = 1u << kC;
  EXPECT_LT(counted(c).dram_bytes(), sound.dram_bytes()) << "a dropped load";
  c = Sound();
  c.program.groups[0].operands[kInput].axes[2].bound -= 1;
  EXPECT_LT(counted(c).dram_bytes(), sound.dram_bytes()) << "a bound off by one";
  c = Sound();
  c.program.groups[0].dims[kM].extent += 1;
  EXPECT_GT(counted(c).macs_array, sound.macs_array) << "an extent off by one";
  c = Sound();
  SignalFirst(&c.program.groups[0], machine::Engine::kLoad, 2);
  EXPECT_LT(counted(c).cycles, sound.cycles) << "a token signalled too early";
}

TEST(Tokens, ADeadlockIsAnError) {
  ConvCase c = Sound();
  c.program.groups[0].prologue.clear();
  const auto result = runtime::Run(c.program, {}, c.inputs);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().message().find("engines wait for each other for ever: load at step 0"),
            std::string::npos)
      << result.status().message();
}

}  // namespace
}  // namespace dla::runtime::test
