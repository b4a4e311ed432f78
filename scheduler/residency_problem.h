// Residency as a plain problem: which things stay in which memory during which steps.
//
// It knows nothing of graphs, tensors or targets: a caller describes what can be held, over which
// steps, and answers what a step costs while certain things are held. The compiler does
// (scheduler/residency.h), and so does `dlac plan` for problems of other compilers
// (scheduler/plan_file.h). Theory: docs/RESIDENCY.md.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dla::scheduler {

// Something that can be held on chip, as a whole and in one memory, during [first_step, end_step).
struct Holdable {
  std::string name;
  int64_t bytes = 0;  // what it takes in every memory
  int first_step = 0;
  int end_step = 0;
  std::vector<int> memories;  // that may hold it
  // For each step that touches it (whose cost depends on whether and where it is held, apart from
  // the room it takes), in order: an upper bound of what it saves there, whatever else is held.
  // Their sum is the value's gain.
  std::vector<std::pair<int, double>> gains;
  // Only kOneStep asks: made by one step and used by the next one alone.
  bool is_one_step = false;
  // An item of as many bytes whose last step is the first one of this: if both are held in one
  // memory, this one takes the other's place in that step, and they take room once. -1: none.
  int over = -1;
  // Of kBest: looked at when a plan without such items stands, which it then betters.
  bool is_extra = false;
};

struct Held {
  int item = 0;
  int memory = 0;
  bool operator==(const Held&) const = default;
  auto operator<=>(const Held&) const = default;
};

// What a step is asked about.
struct Holding {
  std::span<const Held> touched;   // the held items that the step touches, by increasing number
  std::span<const int64_t> bytes;  // by memory: that the items held during the step take
};

constexpr double kImpossible = std::numeric_limits<double>::infinity();

struct ResidencyProblem {
  std::vector<int64_t> capacity_bytes;  // by memory
  int steps = 0;
  std::vector<Holdable> items;
  // What a step costs while that is held in it; kImpossible if it does not fit beside it. Costs add
  // up over the steps. The solver remembers, and asks only for what the capacities allow.
  std::function<double(int step, const Holding& holding)> cost;
};

enum class ResidencyPolicy : uint8_t {
  kNone,      // nothing is held
  kOneStep,   // only what is made by one step and used by the next one
  kOnsram,    // greedily by gain / (bytes x steps), first memory that fits, smallest first
  kBest,      // sweep over time with a limited number of states, then local search
  kExact,     // the sweep with all states; ends early (complete = false) beyond its limit
  kInfinite,  // kBest, for a caller that gives memories without limits
};
std::optional<ResidencyPolicy> ParseResidencyPolicy(std::string_view name);
std::string_view ResidencyPolicyName(ResidencyPolicy policy);

struct ResidencyOptions {
  ResidencyPolicy policy = ResidencyPolicy::kBest;
  size_t states = 24;            // kBest: kept after each step
  size_t exact_states = 200000;  // kExact: more than these at one step end it
  int rounds = 3;                // kBest: passes of the local search
};

struct ResidencyResult {
  std::vector<int> memory;  // by item; -1: not held
  double cost = 0;          // sum over all steps; kImpossible: some step does not even fit alone
  double cost_of_none = 0;
  int failed_step = -1;     // the first that does not fit alone
  bool complete = false;    // kExact: no solution is cheaper
  int64_t evaluations = 0;  // steps asked for their cost
};

// Solves the problem; deterministic. Never dearer than holding nothing; kBest is never dearer than
// kOneStep or kOnsram.
ResidencyResult SolveResidency(const ResidencyProblem& problem, const ResidencyOptions& options);

// The most that any choice can save, and what a further byte would.
struct ResidencyBound {
  double savings = 0;
  std::vector<double> price;  // by step: cost saved by one further byte there
  std::vector<double> held;   // by item: the share of it that the flow holds
};

// The linear relaxation with all memories pooled, which is a flow: `capacity` units pass through
// all steps, an item carries up to `bytes` of them past its steps at gain / bytes each. Solved by
// successive longest paths; the value is that of its dual prices, so that it is a bound even where
// rounding or an early end (after `most_paths`) left the flow short of its optimum.
ResidencyBound BoundResidency(const ResidencyProblem& problem, int most_paths = 4000);

}  // namespace dla::scheduler
