// Placement: addresses for buffers with known sizes and lifetimes.
//
// Plain data in, plain data out; the solver knows nothing of tensors, the validator nothing of the
// solver. Used for every scratchpad (times are groups) and for the temporaries in DRAM.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace dla::scheduler {

struct PlacedBuffer {
  int64_t first = 0;  // lives at times [first, end)
  int64_t end = 0;
  int64_t bytes = 0;
  int64_t align_bytes = 1;
  int64_t fixed_offset = -1;  // where it must lie, or -1
};

struct PlacementProblem {
  int64_t capacity_bytes = INT64_MAX;
  std::vector<PlacedBuffer> buffers;
};

// Byte offsets, one a buffer.
struct PlacementSolution {
  std::vector<int64_t> offsets;
};

enum class PlacementFault { kNone, kOutside, kMoved, kMisaligned, kOverlap };

// Checks a solution from first principles.
PlacementFault Validate(const PlacementProblem& problem, const PlacementSolution& solution);

// Largest offset + bytes.
int64_t Height(const PlacementProblem& problem, const PlacementSolution& solution);

// Largest sum of the bytes that live at one time: no solution is lower.
int64_t LoadBound(const PlacementProblem& problem);

// --place. kColor knows no fixed offsets and finds nothing where there are some.
enum class PlaceMethod : uint8_t {
  kColor,      // clusters of lifetimes that do not meet, one partition each (TOpLib)
  kBestFit,    // greedy rules, one after the other
  kHillClimb,  // greedy over an order that is improved by swaps (Vela)
  kExact,      // greedy rules, then systematic search (placement_exact.h)
};

struct PlacementOptions {
  PlaceMethod method = PlaceMethod::kExact;
  int64_t node_budget = 1'000'000;  // kExact: search nodes
  int climb_rounds = 500;           // kHillClimb: orders tried
};

struct PlacementResult {
  std::optional<PlacementSolution> solution;  // within the capacity
  bool complete = false;  // nothing left to try: without a solution, none exists
  int64_t nodes = 0;      // search nodes or orders tried
};

// Looks for a solution within the capacity; deterministic for equal input and options.
PlacementResult Place(const PlacementProblem& problem, const PlacementOptions& options);

// The lowest solution that the method finds, whatever the capacity; kExact asks for less and less
// until LoadBound or until its budget for one question is used up.
PlacementSolution PlaceLow(const PlacementProblem& problem, const PlacementOptions& options);

std::optional<PlaceMethod> ParsePlaceMethod(std::string_view name);
std::string_view PlaceMethodName(PlaceMethod method);

}  // namespace dla::scheduler
