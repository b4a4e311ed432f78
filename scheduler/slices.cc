#include "scheduler/slices.h"

#include <algorithm>
#include <map>
#include <utility>

#include "scheduler/packed_weight.h"
#include "scheduler/value_flow.h"

namespace dla::scheduler {
namespace {

size_t At(int64_t i) { return static_cast<size_t>(i); }

// Indices [begin, end) of a dimension, or lines of a value.
struct Lines {
  int64_t begin = 0, end = 0;
  int64_t count() const { return end - begin; }
};

// Along which axis of its buffer a value is cut: `bound` lines, `stride` elements from one to the
// next; and the lines of each slice.
struct SlicedValue {
  int64_t bound = 0, stride = 0;
  std::vector<Lines> lines;          // by slice
  std::vector<ir::ValueId> replace;  // by slice: the value that stands for these lines

  int64_t plane() const { return bound * stride; }  // elements of all lines
  // The stride or offset in the buffer of slice s, of elements of the whole buffer's.
  int64_t Scaled(int64_t elements, size_t s) const {
    return elements / plane() * stride * lines[s].count() + elements % plane();
  }
};

// A group of the chain: the dimension of its nest that is cut, and its indices in each slice.
struct Member {
  int group = 0;
  int dimension = -1;
  std::vector<Lines> lines;  // by slice
};

const ir::Axis* AxisAlong(const ir::Operand& operand, int dimension) {
  for (const ir::Axis& axis : operand.axes) {
    for (const ir::Term& term : axis.terms) {
      if (term.dimension == dimension) return &axis;
    }
  }
  return nullptr;
}

bool IsPlain(const ir::Axis& axis) {
  return axis.terms.size() == 1 && axis.terms[0].coefficient == 1 && axis.offset == 0;
}

// The lines of the axis that indices of the dimension need.
Lines Window(const ir::Nest& nest, const ir::Axis& axis, int dimension, Lines indices) {
  Lines window = {axis.offset, axis.offset + 1};
  for (const ir::Term& term : axis.terms) {
    if (term.dimension == dimension) {
      window.begin += term.coefficient * indices.begin;
      window.end += term.coefficient * (indices.end - 1);
    } else {
      window.end += term.coefficient * (nest.dimensions[At(term.dimension)].extent - 1);
    }
  }
  return {std::clamp<int64_t>(window.begin, 0, axis.bound),
          std::clamp<int64_t>(window.end, 0, axis.bound)};
}

// Every other axis of the operand lies within a line or steps over whole planes.
bool ConsistsOfLines(const ir::Operand& operand, const ir::Axis* along, const SlicedValue& value) {
  if (operand.base % value.plane() >= value.stride) return false;
  return std::all_of(operand.axes.begin(), operand.axes.end(), [&](const ir::Axis& axis) {
    return &axis == along || axis.bound == 1 || axis.stride % value.plane() == 0 ||
           axis.stride * (axis.bound - 1) < value.stride;
  });
}

class Slicer {
 public:
  Slicer(const GroupGraph& groups, const Slicing& slicing)
      : groups_(groups),
        slicing_(slicing),
        flows_(FlowsOf(groups.graph, groups.nests)),
        result_{.graph = groups.graph} {
    result_.graph.nodes.clear();
  }

  Result<GroupGraph> Run() {
    DLA_RETURN_IF_ERROR(FindMembers());
    DLA_RETURN_IF_ERROR(CutTip());
    for (size_t m = members_.size() - 1; m-- > 0;) DLA_RETURN_IF_ERROR(FollowReaders(m));
    for (const Member& member : members_) DLA_RETURN_IF_ERROR(CanBeCut(member));
    for (auto& [root, value] : values_) AddValues(root, &value);
    for (int g = 0; g < static_cast<int>(groups_.nests.size()); ++g) {
      if (g == members_.back().group) {
        for (size_t s = 0; s < At(slicing_.count); ++s) {
          for (const Member& member : members_) AddSlice(member, s);
        }
      } else if (MemberOf(g) == nullptr) {
        result_.graph.nodes.push_back(groups_.graph.nodes[At(g)]);
        result_.nests.push_back(groups_.nests[At(g)]);
      }
    }
    return std::move(result_);
  }

 private:
  const ir::Nest& NestOf(const Member& member) const { return groups_.nests[At(member.group)]; }
  const std::string& NameOf(const Member& member) const {
    return groups_.graph.nodes[At(member.group)].name;
  }
  ir::ValueId MadeBy(const Member& member) const {
    return RootOf(groups_.graph, NestOf(member).operands.back());
  }
  const Member* MemberOf(int group) const {
    const auto it = std::find_if(members_.begin(), members_.end(),
                                 [&](const Member& m) { return m.group == group; });
    return it == members_.end() ? nullptr : &*it;
  }

  Status FindMembers() {
    for (const std::string& name : slicing_.groups) {
      const auto& nodes = groups_.graph.nodes;
      const auto is_named = [&](const ir::Node& n) { return n.name == name; };
      const auto node = std::find_if(nodes.begin(), nodes.end(), is_named);
      if (node == nodes.end()) return Usage("there is no group '", name, "'");
      if (std::find_if(node + 1, nodes.end(), is_named) != nodes.end()) {
        return Usage("there are several groups '", name, "'");
      }
      const int g = static_cast<int>(node - nodes.begin());
      if (MemberOf(g) != nullptr) return Usage("group '", name, "' is listed twice");
      members_.push_back({.group = g});
    }
    if (members_.empty()) return Usage("no groups are named");
    return Status();
  }

  // The last group's output in slices that differ by one line at most.
  Status CutTip() {
    Member& tip = members_.back();
    const ir::Nest& nest = NestOf(tip);
    for (const ir::Axis& axis : nest.operands.back().axes) {
      if (!IsPlain(axis)) continue;
      const int d = axis.terms[0].dimension;
      if (nest.dimensions[At(d)].name == slicing_.dimension) tip.dimension = d;
    }
    if (tip.dimension < 0) {
      return Usage("the output of '", NameOf(tip), "' has no dimension '", slicing_.dimension, "'");
    }
    const int64_t extent = nest.dimensions[At(tip.dimension)].extent;
    if (slicing_.count < 2 || slicing_.count > extent) {
      return Usage("'", slicing_.dimension, "' of '", NameOf(tip), "' is ", extent,
                   " long: it can be cut into 2 to ", extent, " slices, not ", slicing_.count);
    }
    for (int64_t s = 0; s < slicing_.count; ++s) {
      tip.lines.push_back({s * extent / slicing_.count, (s + 1) * extent / slicing_.count});
    }
    return Status();
  }

  // What the members behind it need of the value that member m makes.
  Status FollowReaders(size_t m) {
    Member& member = members_[m];
    const ir::ValueId root = MadeBy(member);
    const ir::Value& made = groups_.graph.values[At(root)];
    const ValueFlow& flow = flows_.at(root);
    if (flow.is_graph_output || flow.writers.size() != 1 || flow.readers.empty() ||
        made.storage.strides != ir::DenseStrides(made.shape)) {
      return Usage("'", made.name, "' is an output or has parts that others make");
    }
    SlicedValue value;
    value.lines.assign(At(slicing_.count), {-1, -1});
    for (const int reader : flow.readers) {
      const Member* by = MemberOf(reader);
      if (by == nullptr || by <= &member) {
        return Usage("'", made.name, "' is read by '", groups_.graph.nodes[At(reader)].name,
                     "', which is not behind '", NameOf(member), "' in the chain");
      }
      DLA_RETURN_IF_ERROR(AddUses(*by, root, &value));
    }
    CloseGaps(&value);
    for (const ir::Axis& axis : NestOf(member).operands.back().axes) {
      if (axis.bound != value.bound || axis.stride != value.stride || !IsPlain(axis)) continue;
      member.dimension = axis.terms[0].dimension;
    }
    if (member.dimension < 0) return NotLines(member.group, root);
    member.lines = value.lines;
    values_[root] = std::move(value);
    return Status();
  }

  Status AddUses(const Member& reader, ir::ValueId root, SlicedValue* value) const {
    const ir::Nest& nest = NestOf(reader);
    for (int o = 0; o < nest.output(); ++o) {
      const ir::Operand& operand = nest.operands[At(o)];
      if (RootOf(groups_.graph, operand) != root) continue;
      const ir::Axis* axis = AxisAlong(operand, reader.dimension);
      if (axis == nullptr || axis->stride < 1 || axis->bound < 1) {  // one line is read as many
        return NotLines(reader.group, root);
      }
      if (value->bound == 0) value->bound = axis->bound, value->stride = axis->stride;
      if (axis->bound != value->bound || axis->stride != value->stride ||
          !ConsistsOfLines(operand, axis, *value)) {
        return NotLines(reader.group, root);
      }
      for (size_t s = 0; s < value->lines.size(); ++s) {
        const Lines needs = Window(nest, *axis, reader.dimension, reader.lines[s]);
        Lines& lines = value->lines[s];
        lines.begin = lines.begin < 0 ? needs.begin : std::min(lines.begin, needs.begin);
        lines.end = std::max(lines.end, needs.end);
      }
    }
    return Status();
  }

  // Every line belongs to some slice, and every slice has one; lines that no reader needs go to the
  // slice before.
  static void CloseGaps(SlicedValue* value) {
    int64_t end = 0;  // of all slices so far
    for (Lines& lines : value->lines) {
      lines.begin = std::min({lines.begin, end, value->bound - 1});
      lines.end = std::max({lines.end, end, lines.begin + 1});
      end = lines.end;
    }
    value->lines.back().end = value->bound;
  }

  Status NotLines(int group, ir::ValueId root) const {
    return Usage("'", groups_.graph.nodes[At(group)].name, "' does not take '",
                 groups_.graph.values[At(root)].name, "' line by line along '", slicing_.dimension,
                 "'");
  }

  Status CanBeCut(const Member& member) const {
    const ir::Nest& nest = NestOf(member);
    const bool counts = std::any_of(
        nest.program.ops.begin(), nest.program.ops.end(), [&](const MicroInstruction& op) {
          return op.op == MicroOp::kIndex && op.operand == member.dimension;
        });
    bool can = !counts && nest.phases.empty() && nest.pass_dimension < 0 &&
               (nest.reduce_mask >> member.dimension & 1u) == 0;
    for (int o = 0; o <= nest.output() && can; ++o) {
      const ir::Operand& operand = nest.operands[At(o)];
      const ir::Axis* axis = AxisAlong(operand, member.dimension);
      can = !operand.gather && !operand.is_local;
      if (axis != nullptr && IsPackedWeight(nest, o))
        can = can && !operand.diagonal && IsPlain(*axis);
    }
    const ir::Operand& output = nest.operands.back();
    const auto value = values_.find(MadeBy(member));
    if (value != values_.end()) {
      const ir::Axis* axis = AxisAlong(output, member.dimension);
      can = can && output.base == 0 && ConsistsOfLines(output, axis, value->second);
    }
    if (can) return Status();
    return Usage("'", NameOf(member), "' cannot be cut along '", slicing_.dimension, "'");
  }

  std::string Suffix(Lines lines) const {
    return Concat(" [", slicing_.dimension, " ", lines.begin, ":", lines.end, "]");
  }

  void AddValues(ir::ValueId root, SlicedValue* value) {
    for (const Lines& lines : value->lines) {
      ir::Value slice = groups_.graph.values[At(root)];
      const ir::Shape strides = ir::DenseStrides(slice.shape);
      for (size_t a = 0; a < slice.shape.size(); ++a) {
        if (slice.shape[a] != value->bound || strides[a] != value->stride) continue;
        slice.shape[a] = lines.count();
        break;
      }
      slice.name += Suffix(lines);
      slice.storage.root = static_cast<ir::ValueId>(result_.graph.values.size());
      slice.storage.strides = ir::DenseStrides(slice.shape);
      value->replace.push_back(slice.storage.root);
      result_.graph.values.push_back(std::move(slice));
    }
  }

  void AddSlice(const Member& member, size_t s) {
    const Lines lines = member.lines[s];
    ir::Nest nest = NestOf(member);
    ir::Dimension& dimension = nest.dimensions[At(member.dimension)];
    const int64_t before = s == 0 ? 0 : member.lines[s - 1].end;  // computed by earlier slices
    dimension.repeated =
        std::clamp<int64_t>(std::max(dimension.repeated, before) - lines.begin, 0, lines.count());
    dimension.extent = lines.count();
    for (int o = 0; o <= nest.output(); ++o) CutOperand(member, s, o, &nest);
    ir::Node node = groups_.graph.nodes[At(member.group)];
    node.name += Suffix(lines);
    for (std::vector<ir::ValueId>* values : {&node.inputs, &node.outputs}) {
      for (ir::ValueId& v : *values) {
        if (const auto it = values_.find(v); it != values_.end()) v = it->second.replace[s];
      }
    }
    result_.graph.nodes.push_back(std::move(node));
    result_.nests.push_back(std::move(nest));
  }

  // Indices of the nest's dimension count from the slice's first one now.
  void CutOperand(const Member& member, size_t s, int o, ir::Nest* nest) const {
    const Lines indices = member.lines[s];
    ir::Operand& operand = nest->operands[At(o)];
    const auto value = values_.find(RootOf(groups_.graph, operand));
    if (value != values_.end()) operand.base = value->second.Scaled(operand.base, s);
    for (ir::Axis& axis : operand.axes) {
      int64_t coefficient = 0;
      for (const ir::Term& term : axis.terms) {
        if (term.dimension == member.dimension) coefficient = term.coefficient;
      }
      if (value != values_.end()) {
        if (coefficient == 0) {
          axis.stride = value->second.Scaled(axis.stride, s);
        } else if (o == nest->output()) {
          axis.bound = indices.count();
        } else {
          axis.offset += coefficient * indices.begin - value->second.lines[s].begin;
          axis.bound = value->second.lines[s].count();
        }
      } else if (coefficient != 0 && IsPlain(axis) && axis.bound >= indices.end) {
        operand.base += axis.stride * indices.begin;
        axis.bound = indices.count();
      } else {
        axis.offset += coefficient * indices.begin;
      }
    }
    if (value != values_.end()) operand.value = value->second.replace[s];
  }

  const GroupGraph& groups_;
  const Slicing& slicing_;
  const ValueFlows flows_;
  std::vector<Member> members_;
  std::map<ir::ValueId, SlicedValue> values_;  // by root: what the members before the last one make
  GroupGraph result_;
};

}  // namespace

Result<GroupGraph> Slice(const GroupGraph& groups, const Slicing& slicing) {
  return Slicer(groups, slicing).Run();
}

}  // namespace dla::scheduler
