// Mutants of an emitted group: one small damage each, and what becomes of it.
//
// A mutant is noticed if the program verifier refuses it, if running it with --check reports a
// fault, if a counter differs from the prediction, or if an output differs; some races show only
// under delays. A mutant that is none of these must be equivalent, by one rule: in its unrolled
// trace (trace.h) nothing races, and the same work is done on the same data.
#pragma once

#include <array>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "machine/program.h"
#include "support/tensor.h"
#include "tests/codegen/trace.h"

namespace dla::testing {

struct Mutant {
  std::string kind;  // "load dropped", ...
  std::string text;  // which one
  machine::Group group;
};

// At most `per_kind` random mutants of each kind; all differ from the group.
std::vector<Mutant> MutantsOf(const machine::Program& program, size_t per_kind,
                              std::mt19937* random);

enum class Fate : uint8_t {
  kRefused,     // by the verifier
  kFault,       // reported by --check
  kCounters,    // differ from the prediction
  kOutputs,     // differ, for the given inputs or for random ones
  kDelays,      // a fault or other outputs under delays
  kEquivalent,  // the same effect
  kRecut,       // another mapping of the same layer
  kUnnoticed,
};
inline constexpr int kFateCount = 8;

// Judges the mutants of one program with one group.
class MutantJudge {
 public:
  // Failures of gtest if the program itself is not sound.
  MutantJudge(const machine::Program& program, const std::vector<Tensor>& inputs);
  // `random` draws further inputs.
  Fate Judge(const Mutant& mutant, std::mt19937* random) const;
  std::string FaultOf(const Mutant& mutant) const;  // of its trace

 private:
  bool SameFunction(const machine::Program& mutant, std::mt19937* random) const;

  machine::Program program_;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> outputs_;
  machine::Counters counters_;
  Trace trace_;
};

// How many mutants of each kind met which fate.
class FateTable {
 public:
  void Add(const std::string& kind, Fate fate) { ++rows_[kind][static_cast<size_t>(fate)]; }
  void Print() const;
  // gtest failures for kinds of which no mutant was noticed.
  void ExpectEachKindNoticed() const;

 private:
  std::map<std::string, std::array<int, kFateCount>> rows_;
};

// Makes, judges and counts the mutants of a program; gtest failures for unnoticed ones.
void JudgeMutants(const machine::Program& program, const std::vector<Tensor>& inputs,
                  size_t per_kind, std::mt19937* random, FateTable* table);

}  // namespace dla::testing
