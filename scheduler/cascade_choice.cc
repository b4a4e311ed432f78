#include "scheduler/cascade_choice.h"

#include <algorithm>

#include "support/checked.h"

namespace dla::scheduler {
namespace {

size_t At(int i) { return static_cast<size_t>(i); }

// Up to so many lines, stripes of every height are tried.
constexpr int64_t kFewLines = 16;

constexpr size_t kMany = 1000;  // groups

int64_t LinesOf(const ir::Nest& nest) {
  int64_t lines = 0;
  for (const ir::Dimension& d : nest.dimensions) {
    if (d.name == "E") lines = d.extent;
  }
  return lines;
}

class Chooser {
 public:
  explicit Chooser(const CascadeChoice& choice) : choice_(choice) {}

  std::vector<Segment> Run() {
    const int groups = static_cast<int>(choice_.nests.size());
    best_.assign(At(groups) + 1, 0);
    last_.resize(At(groups) + 1);
    for (int end = 1; end <= groups; ++end) {
      const GroupSpan alone = {end - 1, end};
      best_[At(end)] = best_[At(end - 1)] + choice_.group_cost(end - 1, HeldAcross(alone));
      last_[At(end)] = {.groups = alone};
      if (CanBeMember(end - 1)) TryCascadesTo(end);
    }
    std::vector<Segment> chosen;
    for (int end = groups; end > 0; end = last_[At(end)].groups.first) {
      if (last_[At(end)].lines != 0) chosen.push_back(last_[At(end)]);
    }
    return chosen;
  }

 private:
  // Every chain that ends before group `end`.
  void TryCascadesTo(int end) {
    // Long chains of large graphs take long to try.
    const int most_members = choice_.nests.size() > kMany ? 6 : 24;
    for (int first = end - 2; first >= std::max(0, end - most_members); --first) {
      if (!CanBeMember(first) || !IsReadIn(first, end)) break;
      Segment segment = {.groups = {first, end}};
      if (!IsWorthTrying(segment.groups) || !choice_.planner.IsChain(segment.groups)) continue;
      const double cost = best_[At(first)] + BestLines(&segment);
      if (cost >= best_[At(end)]) continue;
      best_[At(end)] = cost;
      last_[At(end)] = segment;
    }
  }

  bool CanBeMember(int g) const {
    const ir::Nest& nest = choice_.nests[At(g)];
    return nest.anchor != ir::Anchor::kMove && nest.pass_dimension < 0 && choice_.may_be_member(g);
  }

  ir::ValueId MadeBy(int g) const {
    return RootOf(choice_.graph, choice_.nests[At(g)].operands.back());
  }

  // Does a later group of the chain read what this one makes? (The last one need not be read.)
  bool IsReadIn(int g, int end) const {
    const auto& readers = choice_.flows.at(MadeBy(g)).readers;
    return std::any_of(readers.begin(), readers.end(), [&](int r) { return g < r && r < end; });
  }

  // Is there something to win at one of the ends: a value that does not stay whole today, or one
  // that the first group moves more than once (a cascade loads each line once)?
  bool IsWorthTrying(GroupSpan groups) const {
    if (choice_.try_every_chain) return true;
    const auto is_lost = [&](int writer, int reader) {
      const std::vector<Held>& held = choice_.held[At(reader)];
      return std::none_of(held.begin(), held.end(), [&](const Held& h) {
        return choice_.items[At(h.item)].root == MadeBy(writer);
      });
    };
    const auto& readers = choice_.flows.at(MadeBy(groups.first)).readers;
    const bool begins = std::any_of(readers.begin(), readers.end(), [&](int r) {
      return groups.first < r && r < groups.end && is_lost(groups.first, r);
    });
    bool ends = choice_.moves_again(groups.first, HeldAcross({groups.first, groups.first + 1}));
    for (int g = groups.first; g < groups.end - 1 && !begins && !ends; ++g) {
      const auto& of = choice_.flows.at(MadeBy(g)).readers;
      ends =
          std::find(of.begin(), of.end(), groups.end - 1) != of.end() && is_lost(g, groups.end - 1);
    }
    return begins || ends;
  }

  // What is held during the groups and not only within them.
  std::vector<Held> HeldAcross(GroupSpan groups) const {
    std::vector<Held> across;
    for (int g = groups.first; g < groups.end; ++g) {
      for (const Held& h : choice_.held[At(g)]) {
        const GroupSpan life = choice_.items[At(h.item)].groups;
        const bool within =
            groups.end - groups.first > 1 && life.first >= groups.first && life.end <= groups.end;
        if (!within && std::find(across.begin(), across.end(), h) == across.end()) {
          across.push_back(h);
        }
      }
    }
    return across;
  }

  // The stripes at which the cascade costs least, and that cost.
  double BestLines(Segment* segment) const {
    constexpr int kFitting = 3;  // that are compared, where there are many lines
    const ir::Nest& last = choice_.nests[At(segment->groups.end - 1)];
    const std::vector<Held> held = HeldAcross(segment->groups);
    double best = kImpossible;
    Segment tried = *segment;
    int fitting = 0;
    const bool is_few = LinesOf(last) <= kFewLines;
    for (const int64_t lines : HeightsOf(last)) {
      tried.lines = lines;
      const double cost = choice_.cascade_cost(tried, held);
      if (cost == kImpossible) continue;
      if (cost < best) best = cost, *segment = tried;
      if (++fitting == kFitting && !is_few) break;
    }
    return best;
  }

  const CascadeChoice& choice_;
  std::vector<double> best_;   // cost of the groups before that end
  std::vector<Segment> last_;  // that ends there
};

}  // namespace

std::vector<int64_t> HeightsOf(const ir::Nest& last) {
  std::vector<int64_t> heights;
  const int64_t extent = LinesOf(last);
  for (int64_t count = 2; count <= extent; ++count) {
    const int64_t lines = extent <= kFewLines ? extent + 1 - count : CeilDiv(extent, count);
    if (heights.empty() || heights.back() != lines) heights.push_back(lines);
  }
  return heights;
}

Result<std::vector<Segment>> SplitIntoSegments(std::vector<Segment> cascades, int groups) {
  std::sort(cascades.begin(), cascades.end(),
            [](const Segment& a, const Segment& b) { return a.groups.first < b.groups.first; });
  std::vector<Segment> segments;
  size_t next = 0;
  for (int g = 0; g < groups; g = segments.back().groups.end) {
    Segment segment = {.groups = {g, g + 1}};
    if (next < cascades.size() && cascades[next].groups.first <= g) segment = cascades[next++];
    if (segment.groups.first != g || segment.groups.end <= g) {
      return Usage(
          "cascades: each needs the names of groups that follow one another, and no group ",
          "can be in two");
    }
    segments.push_back(segment);
  }
  return segments;
}

std::vector<Segment> GivenCascades(const ir::Graph& graph, const GivenSchedule* given) {
  std::vector<Segment> cascades;
  if (given == nullptr || !given->cascades) return cascades;
  for (const GivenCascade& cascade : *given->cascades) {
    Segment segment = {.groups = {-1, -1}, .lines = cascade.lines};
    for (size_t i = 0; i < cascade.groups.size(); ++i) {
      const auto node =
          std::find_if(graph.nodes.begin(), graph.nodes.end(),
                       [&](const ir::Node& n) { return n.name == cascade.groups[i]; });
      const int g = static_cast<int>(node - graph.nodes.begin());
      if (node == graph.nodes.end() || (i > 0 && g != segment.groups.end)) {
        segment.groups = {-1, -1};
        break;
      }
      if (i == 0) segment.groups.first = g;
      segment.groups.end = g + 1;
    }
    cascades.push_back(segment);
  }
  return cascades;
}

std::vector<Segment> ChooseCascades(const CascadeChoice& choice) { return Chooser(choice).Run(); }

}  // namespace dla::scheduler
