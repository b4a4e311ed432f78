#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>

#include "machine/verifier.h"
#include "runtime/emulator.h"
#include "tests/codegen/mutants.h"

namespace dla::testing {
namespace {

constexpr int kDelayRuns = 1000;
constexpr int kOtherInputs = 5;

bool SameOutputs(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].bytes != b[i].bytes) return false;
  }
  return a.size() == b.size();
}

}  // namespace

MutantJudge::MutantJudge(const machine::Program& program, const std::vector<Tensor>& inputs)
    : program_(program), inputs_(inputs), trace_(TraceOf(program)) {
  const Status verified = machine::VerifyProgram(program);
  EXPECT_TRUE(verified.ok()) << verified.message();
  const auto result = runtime::Run(program, {.check = true}, inputs);
  EXPECT_TRUE(result.ok()) << result.status().message();
  if (!result.ok()) return;
  outputs_ = result->outputs;
  counters_ = result->groups[0].counters;
  EXPECT_TRUE(counters_ == program.predicted[0]);
  EXPECT_EQ(trace_.fault, "");
}

Fate MutantJudge::Judge(const Mutant& mutant, std::mt19937* random) const {
  machine::Program program = program_;
  program.groups[0] = mutant.group;
  if (!machine::VerifyProgram(program).ok()) return Fate::kRefused;
  const auto result = runtime::Run(program, {.check = true}, inputs_);
  if (!result.ok()) return Fate::kFault;
  if (!(result->groups[0].counters == counters_)) return Fate::kCounters;
  if (!SameOutputs(result->outputs, outputs_)) return Fate::kOutputs;
  const Trace trace = TraceOf(program);
  if (SameEffect(trace_, trace)) return Fate::kEquivalent;
  if (!SameFunction(program, random)) return Fate::kOutputs;
  if (mutant.kind == "block" && trace.fault.empty()) return Fate::kRecut;
  for (uint64_t seed = 1; seed <= kDelayRuns; ++seed) {
    const auto delayed = runtime::Run(program, {.check = true, .jitter = seed}, inputs_);
    if (!delayed.ok() || !SameOutputs(delayed->outputs, outputs_)) return Fate::kDelays;
  }
  return Fate::kUnnoticed;
}

std::string MutantJudge::FaultOf(const Mutant& mutant) const {
  machine::Program program = program_;
  program.groups[0] = mutant.group;
  return TraceOf(program).fault;
}

bool MutantJudge::SameFunction(const machine::Program& mutant, std::mt19937* random) const {
  for (int run = 0; run < kOtherInputs; ++run) {
    std::vector<Tensor> inputs = inputs_;
    for (Tensor& tensor : inputs) {
      for (size_t at = 0; at + sizeof(float) <= tensor.bytes.size(); at += sizeof(float)) {
        // Multiples of 1/8: their sums are exact, in whatever order.
        const float value = static_cast<float>((*random)() % 65) / 8 - 4;
        std::memcpy(tensor.bytes.data() + at, &value, sizeof(float));
      }
    }
    const auto expected = runtime::Run(program_, {}, inputs);
    const auto actual = runtime::Run(mutant, {}, inputs);
    if (!expected.ok() || !actual.ok()) return false;
    if (!SameOutputs(expected->outputs, actual->outputs)) return false;
  }
  return true;
}

void FateTable::Print() const {
  const auto print = [](const std::string& kind, const std::array<int, kFateCount>& fates) {
    std::printf("%-22s", kind.c_str());
    for (const int count : fates) std::printf(" %10d", count);
    std::printf("\n");
  };
  std::printf("%-22s %10s %10s %10s %10s %10s %10s %10s %10s\n", "mutant", "refused", "fault",
              "counters", "outputs", "delays", "equivalent", "recut", "unnoticed");
  std::array<int, kFateCount> total{};
  for (const auto& [kind, fates] : rows_) {
    print(kind, fates);
    for (size_t f = 0; f < fates.size(); ++f) total[f] += fates[f];
  }
  print("all", total);
}

void FateTable::ExpectEachKindNoticed() const {
  EXPECT_FALSE(rows_.empty());
  for (const auto& [kind, fates] : rows_) {
    const auto end = fates.begin() + static_cast<int>(Fate::kEquivalent);
    EXPECT_GT(std::accumulate(fates.begin(), end, 0), 0)
        << "no mutant of the kind '" << kind << "' was noticed";
  }
}

void JudgeMutants(const machine::Program& program, const std::vector<Tensor>& inputs,
                  size_t per_kind, std::mt19937* random, FateTable* table) {
  const MutantJudge judge(program, inputs);
  if (::testing::Test::HasFailure()) return;
  for (const Mutant& mutant : MutantsOf(program, per_kind, random)) {
    const Fate fate = judge.Judge(mutant, random);
    table->Add(mutant.kind, fate);
    EXPECT_NE(static_cast<int>(fate), static_cast<int>(Fate::kUnnoticed))
        << mutant.kind << ": " << mutant.text << "\n"
        << judge.FaultOf(mutant);
  }
}

}  // namespace dla::testing
