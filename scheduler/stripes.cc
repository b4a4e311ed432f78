#include "scheduler/stripes.h"

#include <algorithm>

#include "scheduler/transfers.h"

namespace dla::scheduler {
namespace {

size_t At(int i) { return static_cast<size_t>(i); }

// Lines of a value that an operand's tile covers, as a function of its group's stripes: from
// coefficient * e + offset to coefficient * e + offset + reach.
struct Window {
  int64_t coefficient = 1, offset = 0, reach = 0;
  int64_t bound = 0, line_stride = 0;
};

std::optional<Window> WindowOf(const ir::Nest& nest, const ir::Operand& operand, int dimension) {
  for (const ir::Axis& axis : operand.axes) {
    Window window = {
        .coefficient = 0, .offset = axis.offset, .bound = axis.bound, .line_stride = axis.stride};
    for (const ir::Term& term : axis.terms) {
      if (term.dimension == dimension) {
        window.coefficient = term.coefficient;
      } else {
        window.reach += term.coefficient * (nest.dimensions[At(term.dimension)].extent - 1);
      }
    }
    if (window.coefficient > 0) return window;
  }
  return std::nullopt;
}

// The whole value in lines: every other axis lies within a line, or steps over whole planes.
bool ConsistsOfLines(const ir::Operand& operand, const Window& window) {
  if (operand.base != 0) return false;
  int64_t line = 1;
  for (const ir::Axis& axis : operand.axes) {
    if (axis.stride == window.line_stride && axis.bound == window.bound) continue;
    if (axis.stride < window.line_stride) {
      line += axis.stride * (axis.bound - 1);
    } else if (axis.bound > 1 && axis.stride % (window.line_stride * window.bound) != 0) {
      return false;
    }
  }
  return line <= window.line_stride;
}

// The dimension that an output's axis of these lines is.
int DimensionOf(const ir::Operand& output, int64_t bound, int64_t line_stride) {
  for (const ir::Axis& axis : output.axes) {
    if (axis.bound != bound || axis.stride != line_stride) continue;
    const bool plain = axis.terms.size() == 1 && axis.terms[0].coefficient == 1 && axis.offset == 0;
    return plain ? axis.terms[0].dimension : -1;
  }
  return -1;
}

class Chain {
 public:
  Chain(const ir::Graph& graph, const std::vector<ir::Nest>& nests, const ValueFlows& flows,
        const std::vector<bool>& whole, StripeGeometry* geometry)
      : graph_(graph), nests_(nests), flows_(flows), whole_(whole), geometry_(*geometry) {}

  bool Run(int64_t lines) {
    if (!StartAtTip(lines)) return false;
    for (int g = geometry_.end_group - 2; g >= geometry_.first_group; --g) {
      if (!FollowConsumers(g)) return false;
    }
    for (int g = geometry_.first_group; g < geometry_.end_group; ++g) {
      if (!IsStriped(g)) return false;
    }
    Normalise();
    for (int g = geometry_.first_group; g < geometry_.end_group; ++g) {
      if (!AddRings(g)) return false;
    }
    return true;
  }

 private:
  struct Use {
    int group = 0;
    Window window;
    int64_t bytes = 0;  // of all that the operand covers: it may be a part of the value
  };

  const ir::Nest& NestOf(int g) const { return nests_[At(g)]; }
  MemberStripes& Member(int g) { return geometry_.members[At(g - geometry_.first_group)]; }
  const MemberStripes& Member(int g) const {
    return geometry_.members[At(g - geometry_.first_group)];
  }
  int64_t Extent(int g) const {
    return NestOf(g).dimensions[At(Member(g).stripe.dimension)].extent;
  }
  bool IsInside(int g) const { return geometry_.first_group <= g && g < geometry_.end_group; }

  bool StartAtTip(int64_t lines) {
    const int tip = geometry_.end_group - 1;
    const ir::Nest& nest = NestOf(tip);
    for (const ir::Axis& axis : nest.operands.back().axes) {
      if (axis.terms.size() != 1 || nest.dimensions[At(axis.terms[0].dimension)].name != "E") {
        continue;
      }
      Member(tip) = {.stripe = {.dimension = axis.terms[0].dimension}, .block = lines};
      return lines < Extent(tip);
    }
    return false;
  }

  // Members that read the root, with their windows; nothing if one reads it in another way.
  std::optional<std::vector<Use>> UsesOf(ir::ValueId root) const {
    std::vector<Use> uses;
    for (const int g : flows_.at(root).readers) {
      if (!IsInside(g)) continue;
      const ir::Nest& nest = NestOf(g);
      for (int o = 0; o < nest.output(); ++o) {
        const ir::Operand& operand = nest.operands[At(o)];
        if (RootOf(graph_, operand) != root) continue;
        const auto window = WindowOf(nest, operand, Member(g).stripe.dimension);
        if (!window || !ConsistsOfLines(operand, *window)) return std::nullopt;
        if (!uses.empty() && (window->bound != uses[0].window.bound ||
                              window->line_stride != uses[0].window.line_stride)) {
          return std::nullopt;
        }
        uses.push_back({g, *window, DenseBytes(operand)});
      }
    }
    return uses;
  }

  // Stripes of a producer: as far as every consumer in the chain needs it.
  bool FollowConsumers(int g) {
    const ir::Operand& output = NestOf(g).operands.back();
    const ir::ValueId root = RootOf(graph_, output);
    const auto uses = UsesOf(root);
    if (!uses || uses->empty()) return false;
    const Window& first = uses->front().window;
    const int dimension = DimensionOf(output, first.bound, first.line_stride);
    if (dimension < 0) return false;
    int64_t block = 0, lead = 0;
    for (const Use& use : *uses) {
      const MemberStripes& consumer = Member(use.group);
      const int64_t needs = use.window.coefficient * consumer.block;
      if (block != 0 && needs != block) return false;
      block = needs;
      lead = std::max(lead, use.window.offset + use.window.reach + 1 +
                                use.window.coefficient * (consumer.stripe.lead - 1));
    }
    Member(g) = {.stripe = {.dimension = dimension, .lead = lead}, .block = block};
    LeadOtherReaders(g);
    return true;
  }

  // The first reader of a value from outside loads its lines for all of them (AddRead): it goes as
  // far ahead as brings every line there before another reads it.
  void LeadOtherReaders(int g) {
    MemberStripes& member = Member(g);
    for (const ir::Operand& operand : NestOf(g).operands) {
      const ir::ValueId root = RootOf(graph_, operand);
      if (root == ir::kNoValue || operand.is_constant || whole_[At(root)]) continue;
      const std::vector<int>& writers = flows_.at(root).writers;
      const std::vector<int>& readers = flows_.at(root).readers;
      const auto first = std::find_if(readers.begin(), readers.end(),
                                      [&](int reader) { return IsInside(reader); });
      if (first == readers.end() || *first != g) continue;
      if (!writers.empty() && IsInside(writers.front())) continue;
      const auto uses = UsesOf(root);
      if (!uses || uses->empty()) continue;
      const Window& mine = uses->front().window;
      for (const Use& use : *uses) {
        const MemberStripes& other = Member(use.group);
        const Window& w = use.window;
        if (w.coefficient * other.block != mine.coefficient * member.block) continue;
        const int64_t ahead =
            w.coefficient * (other.stripe.lead - 1) + w.offset + w.reach - mine.offset - mine.reach;
        if (ahead > mine.coefficient * (member.stripe.lead - 1)) {
          member.stripe.lead = (ahead + mine.coefficient - 1) / mine.coefficient + 1;
        }
      }
    }
  }

  // Can the group run in such stripes at all?
  bool IsStriped(int g) const {
    const ir::Nest& nest = NestOf(g);
    const int d = Member(g).stripe.dimension;
    for (const ir::Operand& operand : nest.operands) {
      if (operand.gather) return false;
    }
    // What lies in a ring is all that its maker makes; the last group's output may be a part.
    const ir::ValueId root = RootOf(graph_, nest.operands.back());
    const bool is_all = flows_.at(root).writers.size() == 1 && nest.operands.back().base == 0;
    return (is_all || g == geometry_.end_group - 1) && nest.anchor != ir::Anchor::kMove &&
           nest.phases.empty() && nest.pass_dimension < 0 && !nest.IsReduction(d) &&
           (nest.reduce_mask >> d & 1u) == 0;
  }

  // Where the first stripe has everything there is but one.
  void Normalise() {
    for (int g = geometry_.first_group; g < geometry_.end_group; ++g) {
      MemberStripes& member = Member(g);
      if (member.block + member.stripe.lead < Extent(g)) continue;
      member.block = Extent(g);
      member.stripe.lead = 0;
    }
  }

  int64_t CountOf(int g) const {
    const MemberStripes& m = Member(g);
    return (Extent(g) - m.stripe.lead + m.block - 1) / m.block;
  }
  int64_t StartOf(int g, int64_t stripe) const {
    return stripe == 0 ? 0 : stripe * Member(g).block + Member(g).stripe.lead;
  }
  int64_t EndOf(int g, int64_t stripe) const {
    return std::min(Extent(g), (stripe + 1) * Member(g).block + Member(g).stripe.lead);
  }

  // Rings for what the group makes and for what it is the first to read.
  bool AddRings(int g) {
    const ir::Nest& nest = NestOf(g);
    for (int o = 0; o <= nest.output(); ++o) {
      const ir::Operand& operand = nest.operands[At(o)];
      const ir::ValueId root = RootOf(graph_, operand);
      if (root == ir::kNoValue || operand.is_constant || whole_[At(root)]) continue;
      const bool known = std::any_of(geometry_.rings.begin(), geometry_.rings.end(),
                                     [&](const RingValue& r) { return r.root == root; });
      if (known) continue;
      if (!(o == nest.output() ? AddMade(g, root) : AddRead(g, root))) return false;
    }
    return true;
  }

  bool AddMade(int g, ir::ValueId root) {
    const auto uses = UsesOf(root);
    if (!uses) return false;
    if (uses->empty()) return true;  // it leaves the chip, or stays whole
    const ValueFlow& flow = flows_.at(root);
    const bool leaves = flow.is_graph_output || flow.readers.back() >= geometry_.end_group;
    AddRing(
        root, *uses, [&](int64_t stripe) { return EndOf(g, stripe); }, -1, leaves);
    return true;
  }

  // A value from outside: lines that several tiles or members read are loaded once, by the first
  // reader, if the others do not read ahead of it (only it runs before all of them). What has no
  // such lines needs no ring.
  bool AddRead(int g, ir::ValueId root) {
    const auto writers = flows_.at(root).writers;
    if (!writers.empty() && IsInside(writers.front())) return false;  // read before it is made
    const auto uses = UsesOf(root);
    if (!uses || uses->empty() || uses->front().group != g) return true;
    const Window& mine = uses->front().window;
    const auto loaded = [&](int64_t stripe) {
      const int64_t last = EndOf(g, std::min(stripe, CountOf(g) - 1)) - 1;
      const int64_t end = mine.coefficient * last + mine.offset + mine.reach + 1;
      return std::clamp<int64_t>(end, 0, mine.bound);
    };
    if (mine.reach + 1 < mine.coefficient) return true;  // it leaves lines out
    if (uses->size() == 1 && mine.reach + 1 == mine.coefficient) return true;
    for (const Use& use : *uses) {
      if (use.bytes != uses->front().bytes) return true;
      for (int64_t s = 0; s < CountOf(use.group); ++s) {
        const Window& w = use.window;
        const int64_t end = w.coefficient * (EndOf(use.group, s) - 1) + w.offset + w.reach + 1;
        if (std::min(end, w.bound) > loaded(s)) return true;
      }
    }
    AddRing(root, *uses, loaded, g, false);
    return true;
  }

  // The most lines that are in use at a time: from the first that a consumer still reads to the
  // last that is there.
  template <typename F>
  void AddRing(ir::ValueId root, const std::vector<Use>& uses, F there, int filler, bool stored) {
    int64_t stripes = 0;
    for (const Use& use : uses) stripes = std::max(stripes, CountOf(use.group));
    int64_t lines = 1;
    const int64_t bound = uses[0].window.bound;
    for (int64_t s = 0; s < stripes; ++s) {
      int64_t begin = bound;
      for (const Use& use : uses) {
        if (s >= CountOf(use.group)) continue;
        const int64_t first = use.window.coefficient * StartOf(use.group, s) + use.window.offset;
        begin = std::min(begin, std::max<int64_t>(first, 0));
      }
      lines = std::max(lines, std::min(there(s), bound) - begin);
    }
    const ir::Value& value = graph_.values[At(root)];
    const int64_t bytes = TypeBytes(value.StoredType(), ir::ElementCount(value.shape));
    RingValue ring = {.root = root, .filler = filler, .stored = stored};
    ring.bytes = bytes;
    ring.ring = {.lines = lines, .bound = bound, .line_stride = uses[0].window.line_stride};
    if (lines < bound) {
      ring.bytes = bytes / bound * lines;
    } else {
      ring.ring.lines = 0;
    }
    geometry_.rings.push_back(ring);
  }

  const ir::Graph& graph_;
  const std::vector<ir::Nest>& nests_;
  const ValueFlows& flows_;
  const std::vector<bool>& whole_;
  StripeGeometry& geometry_;
};

}  // namespace

std::optional<StripeGeometry> PlanStripes(const ir::Graph& graph,
                                          const std::vector<ir::Nest>& nests,
                                          const ValueFlows& flows, GroupSpan groups, int64_t lines,
                                          const std::vector<bool>& whole) {
  if (groups.end - groups.first < 2 || lines < 1) return std::nullopt;
  StripeGeometry geometry = {.first_group = groups.first, .end_group = groups.end};
  geometry.members.resize(At(groups.end - groups.first));
  if (!Chain(graph, nests, flows, whole, &geometry).Run(lines)) return std::nullopt;
  return geometry;
}

}  // namespace dla::scheduler
