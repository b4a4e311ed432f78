#include "scheduler/exact/exact_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <random>
#include <tuple>

#include "scheduler/cycle_model.h"
#include "scheduler/exact/box_bound.h"
#include "scheduler/predict.h"
#include "scheduler/transfers.h"
#include "support/checked.h"
#include "support/status.h"

namespace dla::scheduler {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr int64_t kNoLimit = int64_t{1} << 60;

// Searches that end before so many evaluations need no descents; how many there are of them.
constexpr int64_t kScoutAfter = 2000;
constexpr int kDescents = 4;

// What a walk takes, in evaluations of bounds.
constexpr int64_t kWalkPoints = 8;
constexpr int64_t kStepsAPoint = 8;

// What is minimised, and what decides between equals.
struct Value {
  double first = kInfinite, second = kInfinite;

  bool operator<(const Value& other) const {
    return std::tie(first, second) < std::tie(other.first, other.second);
  }
};

struct Node {
  Value least;
  int depth = 0;
  int64_t number = 0;  // of creation
  Box box{};

  // For a heap with the least on top; of equals the deepest, then the first.
  bool operator<(const Node& other) const {
    if (least < other.least) return false;
    if (other.least < least) return true;
    return std::tie(depth, other.number) < std::tie(other.depth, number);
  }
};

// One objective over one problem.
class Minimiser {
 public:
  // `most_cycles`: mappings that take more do not count.
  Minimiser(const SearchProblem& problem, Objective objective, BoxBounds* bounds, CycleModel* model,
            double most_cycles)
      : problem_(problem),
        nest_(*problem.nest),
        target_(*problem.target),
        objective_(objective),
        bounds_(*bounds),
        model_(*model),
        most_cycles_(most_cycles),
        memories_(nest_, target_, problem.free_bytes, problem.resident_in) {
    for (const machine::Memory& memory : target_.memories) {
      limited_ = limited_ || memory.bytes_per_cycle.has_value();
    }
    places_matter_ = limited_ || objective == Objective::kEnergy || objective == Objective::kEdp;
  }

  // A mapping that is known already.
  void Offer(const Mapping& mapping, const Cost& cost) { Take(mapping, cost, ValueOf(cost)); }

  void Run(int64_t budget) {
    budget_ = budget;
    walked_before_ = model_.steps_walked();
    Push(Box{}, 0);
    Dive();
    bool scouted = false;
    while (!open_.empty()) {
      if (!(open_.top().least < best_)) break;
      if (Used() > kScoutAfter && found_ && !scouted) {
        scouted = true;
        Scout();
        continue;
      }
      if (Used() > budget_ && found_) {
        budget_ += budget / 2;
        Polish();
        least_ = std::min(best_.first, open_.top().least.first);
        return;
      }
      const Node node = open_.top();
      open_.pop();
      Expand(node);
    }
    least_ = best_.first;
  }

  // Random vectors of sizes, each in a random order; proves nothing.
  void Sample(int64_t samples) {
    std::mt19937_64 random(1);
    for (int64_t i = 0; i < samples; ++i) {
      Box box{};
      for (size_t d = 0; d < bounds_.trees().size(); ++d) {
        const std::vector<int64_t>& sizes = bounds_.sizes().of[d];
        box[d] = bounds_.trees()[d].Find(sizes[random() % sizes.size()]);
      }
      Open(box);
      ++spent_;
      if (!bounds_.Fits()) continue;
      std::vector<int> order = CutLoops();
      for (size_t k = order.size(); k > 1; --k) std::swap(order[k - 1], order[random() % k]);
      if (nest_.pass_dimension >= 0) SortPasses(&order);
      TryOrder(order);
    }
  }

  bool found() const { return found_; }
  const Mapping& mapping() const { return mapping_; }
  const Cost& cost() const { return cost_; }
  double least() const { return least_; }
  bool proven() const { return found_ && least_ >= best_.first; }
  int64_t spent() const { return spent_; }
  int64_t walked() const { return walked_; }

 private:
  Value ValueOf(const Cost& cost) const {
    switch (objective_) {
      case Objective::kLatency:
        return {cost.cycles, cost.bytes};
      case Objective::kTraffic:
        return {cost.bytes, cost.cycles};
      case Objective::kEnergy:
        return {cost.energy, cost.cycles};
      case Objective::kEdp:
        return {cost.energy * cost.cycles, cost.cycles};
      case Objective::kBalanced:
        break;
    }
    return cost.cycles <= most_cycles_ ? Value{cost.bytes, cost.cycles} : Value{};
  }

  // A lower bound in whole cycles; the slack is for sums of fractions.
  static double Whole(double cycles) { return std::ceil(cycles - 1e-6); }

  Value LeastOf(Cost cost) const {
    cost.cycles = Whole(cost.cycles);
    return ValueOf(cost);
  }

  // The bound of the box that bounds_ holds.
  Value BoundOfBox() {
    ++spent_;
    Value least;
    bounds_.ForEachClass([&](const Cost& cost) { least = std::min(least, LeastOf(cost)); });
    return least;
  }

  // Keeps the box if it may hold something better.
  void Push(const Box& box, int depth) {
    bounds_.SetBox(box);
    if (problem_.options.rules.Has(Rule::kCapacity) && !bounds_.Fits()) {
      ++spent_;
      return;
    }
    const Value least = BoundOfBox();
    if (least < best_) open_.push({least, depth, spent_, box});
  }

  // ---- descents to good vectors of sizes ----
  //
  // The best of the boxes first says little about where a good mapping is as long as the boxes are
  // large, and walking bad ones takes the budget. Bounds of single vectors are close to their
  // costs, so these are followed down, from the best mapping so far and from random vectors; then
  // the best one is by its exact cost, and once more where the budget ends.

  void Scout() {
    std::mt19937_64 random(1);
    for (int i = 0; i < kDescents; ++i) {
      std::vector<int64_t> block = i == 0 ? mapping_.block : RandomBlock(&random);
      Descend(&block);
      TryBestOrder(BoxOf(block));
    }
    Polish();
  }

  // One vector in the order whose bound is least.
  void TryBestOrder(const Box& box) {
    Open(box);
    std::vector<int> order = CutLoops();
    if (nest_.pass_dimension >= 0) {
      TryOrder(order);
      return;
    }
    std::vector<int> best = order;
    Value least;
    do {
      ++spent_;
      const Value value = LeastOf(bounds_.Bound(bounds_.RepeatsIn(order), 0));
      if (value < least) least = value, best = order;
    } while (std::next_permutation(order.begin(), order.end()));
    TryOrder(best);
  }

  Box BoxOf(const std::vector<int64_t>& block) const {
    Box box{};
    for (size_t d = 0; d < block.size(); ++d) box[d] = bounds_.trees()[d].Find(block[d]);
    return box;
  }

  // Infinite if it does not fit.
  Value ValueAt(const std::vector<int64_t>& block) {
    bounds_.SetBox(BoxOf(block));
    return bounds_.Fits() ? BoundOfBox() : Value();
  }

  // One that fits if there is one by halving.
  std::vector<int64_t> RandomBlock(std::mt19937_64* random) {
    std::vector<int64_t> block;
    for (const std::vector<int64_t>& sizes : bounds_.sizes().of) {
      block.push_back(sizes[(*random)() % sizes.size()]);
    }
    for (int tries = 0; tries < 64 && !(ValueAt(block) < Value()); ++tries) {
      const size_t d = (*random)() % block.size();
      block[d] = SizeAtMost(d, block[d] / 2);
    }
    return block;
  }

  // The largest size of the space that is at most this, else the smallest.
  int64_t SizeAtMost(size_t d, int64_t size) const {
    const std::vector<int64_t>& sizes = bounds_.sizes().of[d];
    const auto above = std::upper_bound(sizes.begin(), sizes.end(), size);
    return above == sizes.begin() ? sizes.front() : *(above - 1);
  }

  // Sizes with other numbers of blocks, and the neighbours.
  std::vector<int64_t> Moves(size_t d, int64_t size) const {
    const int64_t extent = bounds_.trees()[d].extent();
    const int64_t count = CeilDiv(extent, size);
    std::vector<int64_t> moves;
    for (const int64_t to : {size - 1, size + 1, size / 2, 2 * size, CeilDiv(extent, count + 1),
                             CeilDiv(extent, std::max<int64_t>(count - 1, 1)), extent}) {
      const int64_t there = SizeAtMost(d, to);
      if (there != size && std::find(moves.begin(), moves.end(), there) == moves.end()) {
        moves.push_back(there);
      }
    }
    return moves;
  }

  // Down by bounds.
  void Descend(std::vector<int64_t>* block) {
    Value value = ValueAt(*block);
    Improve(block, [&](const std::vector<int64_t>& other) {
      const Value there = ValueAt(other);
      if (!(there < value)) return false;
      value = there;
      return true;
    });
  }

  // Down from the best mapping by costs, in every order: stalls that the bounds do not see decide
  // between neighbours.
  void Polish() {
    std::vector<int64_t> block = mapping_.block;
    Improve(&block, [&](const std::vector<int64_t>& other) {
      if (Used() > budget_ || !(ValueAt(other) < best_)) return false;
      const Value before = best_;
      Try(BoxOf(other));
      return best_ < before;
    });
  }

  // Changes one size, or one down and another one up, as long as that helps.
  template <typename IsBetter>
  void Improve(std::vector<int64_t>* block, const IsBetter& is_better) {
    for (bool better = true; better;) {
      better = false;
      for (size_t d = 0; d < block->size(); ++d) {
        for (const int64_t size : Moves(d, (*block)[d])) {
          std::vector<int64_t> other = *block;
          other[d] = size;
          if (!is_better(other)) continue;
          *block = other;
          better = true;
        }
      }
      better = better || Exchange(block, is_better);
    }
  }

  template <typename IsBetter>
  bool Exchange(std::vector<int64_t>* block, const IsBetter& is_better) {
    const std::vector<int64_t> from = *block;
    for (size_t down = 0; down < from.size(); ++down) {
      for (const int64_t less : Moves(down, from[down])) {
        if (less > from[down]) continue;
        for (size_t up = 0; up < from.size(); ++up) {
          for (const int64_t more : up == down ? std::vector<int64_t>() : Moves(up, from[up])) {
            if (more < from[up]) continue;
            std::vector<int64_t> other = from;
            other[down] = less;
            other[up] = more;
            if (!is_better(other)) continue;
            *block = other;
            return true;
          }
        }
      }
    }
    return false;
  }

  // Straight down from the root to one mapping, so that there is something to compare with.
  void Dive() {
    std::vector<Node> aside;
    while (!open_.empty() && !found_) {
      Node node = open_.top();
      open_.pop();
      // The rest waits.
      while (!open_.empty()) {
        aside.push_back(open_.top());
        open_.pop();
      }
      Expand(node);
      if (open_.empty() && !aside.empty()) {  // a dead end: the next best
        const auto next = std::max_element(aside.begin(), aside.end());
        open_.push(*next);
        aside.erase(next);
      }
    }
    for (const Node& node : aside) {
      if (node.least < best_) open_.push(node);
    }
  }

  void Expand(const Node& node) {
    const int d = SplitOf(node.box);
    if (d < 0) {
      Try(node.box);
      return;
    }
    const SizeNode& sizes = bounds_.trees()[At(d)].node(node.box[At(d)]);
    Box child = node.box;
    child[At(d)] = sizes.left;
    Push(child, node.depth + 1);
    child[At(d)] = sizes.right;
    Push(child, node.depth + 1);
  }

  // Of the budget: walks count by their steps, too.
  int64_t Used() const { return spent_ + (model_.steps_walked() - walked_before_) / kStepsAPoint; }

  static size_t At(int i) { return static_cast<size_t>(i); }

  // The dimension with the widest interval; whole or not comes first. -1: one vector of sizes.
  int SplitOf(const Box& box) const {
    int widest = -1;
    double most = 0;
    for (size_t d = 0; d < bounds_.trees().size(); ++d) {
      const SizeNode& node = bounds_.trees()[d].node(box[d]);
      if (node.IsPoint()) continue;
      double width = static_cast<double>(node.hi) / static_cast<double>(node.lo);
      if (box[d] == SizeTree::kRoot) width *= 1e6;
      if (width > most) most = width, widest = static_cast<int>(d);
    }
    return widest;
  }

  // ---- one vector of block sizes ----

  // Buffers and scratchpads with which it fits.
  struct Config {
    uint32_t single = 0;  // as BoxBounds::SerialOf has it
    std::vector<OperandPlace> operands;
    OperandPlace accumulator;
  };

  // The box of one vector, of which no configuration is known yet.
  void Open(const Box& box) {
    bounds_.SetBox(box);
    configs_.clear();
    configs_known_ = false;
  }

  void Try(const Box& box) {
    Open(box);
    ++spent_;
    std::vector<int> order = CutLoops();
    if (nest_.pass_dimension >= 0) {
      TryOrder(order);
      return;
    }
    do {
      TryOrder(order);
    } while (std::next_permutation(order.begin(), order.end()));
  }

  // In the first order; reductions in passes have no other.
  std::vector<int> CutLoops() const {
    std::vector<int> order;
    for (size_t d = 0; d < bounds_.trees().size(); ++d) {
      if (bounds_.cut() >> d & 1U) order.push_back(static_cast<int>(d));
    }
    if (nest_.pass_dimension >= 0) SortPasses(&order);
    return order;
  }

  // The passes outside of what is reduced over.
  void SortPasses(std::vector<int>* order) const {
    const auto rank = [&](int d) {
      if (d == nest_.pass_dimension) return 1;
      return (nest_.reduce_mask >> d & 1U) != 0 ? 2 : 0;
    };
    std::stable_sort(order->begin(), order->end(), [&](int a, int b) { return rank(a) < rank(b); });
  }

  void TryOrder(const std::vector<int>& order) {
    ++spent_;
    const Repeats repeats = bounds_.RepeatsIn(order);
    const bool bounded = problem_.options.rules.Has(Rule::kOrders);
    const Cost least = bounds_.Bound(repeats, 0);
    if (bounded && !(LeastOf(least) < best_)) return;
    if (!configs_known_) ListConfigs();
    for (const Config& config : configs_) {
      const Cost bound = bounds_.Bound(repeats, bounds_.SerialOf(repeats, config.single));
      if (bounded && !(LeastOf(bound) < best_)) continue;
      Evaluate(order, config, least.bytes);
    }
  }

  void ListConfigs() {
    configs_known_ = true;
    bounds_.ForEachSingles([&](uint32_t single) {
      memories_.ForEach(bounds_.Needs(single),
                        [&] { return AddConfig(single) && !places_matter_; });
      return false;
    });
  }

  // False if the same buffers have another set of bits.
  bool AddConfig(uint32_t single) {
    Mapping mapping;
    mapping.operands.resize(nest_.operands.size());
    for (size_t o = 0; o < nest_.operands.size(); ++o) {
      mapping.operands[o].is_double = (single >> o & 1U) == 0;
    }
    mapping.accumulator.is_double = (single >> nest_.operands.size() & 1U) == 0;
    memories_.Write(&mapping);
    const uint32_t output = uint32_t{1} << nest_.output();
    mapping.block = bounds_.block();
    if (DrainsInPlace(nest_, mapping)) {
      // One buffer for both: its bit is the accumulators'.
      const bool is_single = !mapping.accumulator.is_double;
      if (((single & output) != 0) != is_single) return false;
    }
    configs_.push_back({single, mapping.operands, mapping.accumulator});
    return true;
  }

  void Evaluate(const std::vector<int>& order, const Config& config, double bytes) {
    Mapping mapping;
    mapping.block = bounds_.block();
    mapping.order = order;
    mapping.operands = config.operands;
    mapping.accumulator = config.accumulator;
    if (!GatherFault(nest_, mapping).empty()) return;
    Cost cost = {.bytes = bytes};
    if (objective_ == Objective::kEnergy || objective_ == Objective::kEdp) {
      cost.energy =
          EnergyPj(PredictCounts(nest_, mapping, target_), target_, nest_.operands[0].ReadType());
      spent_ += kWalkPoints;
    }
    ++walked_;
    spent_ += kWalkPoints;
    cost.cycles =
        static_cast<double>(model_.Cycles(mapping, CyclesThatHelp(cost), bounds_.compute_cycles()));
    Take(mapping, cost, ValueOf(cost));
  }

  // A mapping of this cost with at least so many cycles is no better than the best.
  int64_t CyclesThatHelp(const Cost& cost) const {
    double limit = kInfinite;
    switch (objective_) {
      case Objective::kLatency:
        limit = best_.first + 1;
        break;
      case Objective::kEdp:
        limit = best_.first / std::max(cost.energy, 1e-9) + 2;
        break;
      case Objective::kBalanced:
        limit = std::min(most_cycles_ + 1, cost.bytes < best_.first ? kInfinite : best_.second);
        break;
      case Objective::kTraffic:
        if (cost.bytes >= best_.first) limit = best_.second;
        break;
      case Objective::kEnergy:
        if (cost.energy >= best_.first) limit = best_.second;
        break;
    }
    return limit < static_cast<double>(kNoLimit) ? static_cast<int64_t>(std::ceil(limit))
                                                 : kNoLimit;
  }

  void Take(const Mapping& mapping, const Cost& cost, const Value& value) {
    if (!(value < best_)) return;
    found_ = true;
    best_ = value;
    mapping_ = mapping;
    cost_ = cost;
  }

  const SearchProblem& problem_;
  const ir::Nest& nest_;
  const machine::Target& target_;
  const Objective objective_;
  BoxBounds& bounds_;
  CycleModel& model_;
  const double most_cycles_;
  MemoryChoices memories_;
  bool limited_ = false;        // some scratchpad has a rate
  bool places_matter_ = false;  // for the cost
  std::vector<Config> configs_;
  bool configs_known_ = false;

  std::priority_queue<Node> open_;
  bool found_ = false;
  Value best_;
  Mapping mapping_;
  Cost cost_;
  double least_ = 0;
  int64_t spent_ = 0, walked_ = 0;
  int64_t budget_ = 0;
  int64_t walked_before_ = 0;  // steps
};

}  // namespace

std::optional<ExactResult> ExactSearch(const SearchProblem& problem) {
  if (problem.nest->dimensions.size() > kMostDims ||
      problem.nest->operands.size() >= kMostOperands) {
    return std::nullopt;
  }
  BoxBounds bounds(problem);
  CycleModel model(*problem.nest, *problem.target);
  const bool balanced = problem.objective == Objective::kBalanced;
  Minimiser first(problem, balanced ? Objective::kLatency : problem.objective, &bounds, &model,
                  kInfinite);
  const auto run = [&](Minimiser* minimiser, int64_t budget) {
    if (problem.options.way == SearchWay::kRandom) {
      minimiser->Sample(problem.options.samples);
    } else {
      minimiser->Run(budget);
    }
  };
  run(&first, balanced ? problem.options.budget / 2 : problem.options.budget);
  if (!first.found()) return std::nullopt;
  ExactResult result = {.mapping = first.mapping(),
                        .cost = first.cost(),
                        .least = first.least(),
                        .proven = first.proven(),
                        .all_sizes = bounds.sizes().all,
                        .points = first.spent(),
                        .walked = first.walked()};
  if (!balanced) return result;
  Minimiser second(problem, Objective::kBalanced, &bounds, &model,
                   std::floor(kBalance * first.cost().cycles));
  second.Offer(first.mapping(), first.cost());
  run(&second, problem.options.budget - problem.options.budget / 2);
  result.mapping = second.mapping();
  result.cost = second.cost();
  result.least = second.least();
  result.least_cycles = first.least();
  result.proven = first.proven() && second.proven();
  result.points += second.spent();
  result.walked += second.walked();
  return result;
}

}  // namespace dla::scheduler
