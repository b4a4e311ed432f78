#include "tests/ir/nest_interpreter.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "ir/kernels/micro.h"
#include "ir/op.h"
#include "ir/vector_form.h"

namespace dla::ir {
namespace {

using Point = std::vector<int64_t>;

// Calls `visit` with every setting of the chosen dimensions, in order, last one fastest.
template <typename Visit>
void ForAll(const Nest& nest, const std::vector<size_t>& chosen, size_t at, Point* point,
            const Visit& visit) {
  if (at == chosen.size()) return visit();
  for (int64_t i = 0; i < nest.dimensions[chosen[at]].extent; ++i) {
    (*point)[chosen[at]] = i;
    ForAll(nest, chosen, at + 1, point, visit);
  }
}

class Interpreter {
 public:
  Interpreter(const Graph& graph, const Nest& nest, NestBuffers* buffers)
      : graph_(graph), nest_(nest), buffers_(buffers), point_(nest.dimensions.size()) {
    for (size_t d = 0; d < nest.dimensions.size(); ++d) {
      const bool reduced = nest.reduce_mask != 0 ? (nest.reduce_mask >> d & 1) != 0
                                                 : nest.IsReduction(static_cast<int>(d));
      (reduced ? reduced_ : outer_).push_back(d);
    }
    for (const Operand& operand : nest.operands) pointers_.push_back(Buffer(operand));
  }

  void Run() {
    ForAll(nest_, outer_, 0, &point_, [&] {
      if (nest_.anchor == Anchor::kContraction) {
        RunContraction();
      } else if (nest_.anchor == Anchor::kMove) {
        std::memcpy(Place(nest_.output()), Place(0), Idx(Bytes(0)));
      } else {
        RunVector();
      }
    });
  }

 private:
  int64_t Bytes(int k) const { return TypeBytes(nest_.operands[Idx(k)].type, 1); }

  // The root's buffer; new ones are filled with bytes that are a NaN in every float type.
  uint8_t* Buffer(const Operand& operand) {
    const ValueId root = graph_.values[Idx(operand.value)].storage.root;
    auto [it, is_new] = buffers_->try_emplace(root);
    if (is_new) {
      const Value& value = graph_.values[Idx(root)];
      it->second.assign(Idx(TypeBytes(value.type, ElementCount(value.shape))), 0xff);
      if (value.constant != nullptr) {
        std::memcpy(it->second.data(), value.constant->bytes, Idx(value.constant->size_bytes));
      }
    }
    return it->second.data();
  }

  // Where the operand's element of this point lies; null if it is clipped.
  uint8_t* Place(int k) {
    const Operand& operand = nest_.operands[Idx(k)];
    int64_t at = operand.base;
    for (const Axis& axis : operand.axes) {
      int64_t index = axis.offset;
      for (const Term& term : axis.terms) index += term.coefficient * point_[Idx(term.dimension)];
      if (index < 0 || index >= axis.bound) return nullptr;
      at += index * axis.stride;
    }
    if (operand.gather) at += Entry(*operand.gather) * operand.gather->stride;
    return pointers_[Idx(k)] + at * Bytes(k);
  }

  // The entry that a gathered operand's indices name at this point.
  int64_t Entry(const Gather& gather) {
    const TensorView one{nest_.operands[Idx(gather.indices)].type, {1}, Place(gather.indices)};
    const int64_t index = ReadInt(one, 0);
    DLA_CHECK(index >= -gather.bound && index < gather.bound, "index ", index);
    return index < 0 ? index + gather.bound : index;
  }

  // A column of one value: what the operand's element is to a program.
  MicroColumn Read(int k) {
    const Operand& operand = nest_.operands[Idx(k)];
    MicroColumn value(ValueType(operand.type), 1);
    const uint8_t* place = Place(k);
    if (place == nullptr) {
      FillColumn(operand.pad_value, &value);
    } else {
      LoadColumn(operand.type, place, 1, 1, &value);
    }
    return value;
  }
  float ReadFloat(int k) { return *Read(k).As<float>(); }

  void Write(const MicroColumn& value) {
    const int k = nest_.output();
    StoreColumn(value, 0, 1, nest_.operands[Idx(k)].type, Place(k), 1);
  }

  void RunContraction() {
    float accumulator = nest_.bias < 0 ? 0.0f : ReadFloat(nest_.bias);
    ForAll(nest_, reduced_, 0, &point_, [&] {
      if (Place(Nest::kInput) == nullptr) return;  // adds 0 times a weight
      accumulator += ReadFloat(Nest::kInput) * ReadFloat(Nest::kWeight);
    });
    std::vector<MicroColumn> values;
    for (const MicroInstruction& op : nest_.program.ops) {
      values.push_back(Apply(op, accumulator, values));
    }
    Write(values.back());
  }

  MicroColumn Apply(const MicroInstruction& op, float accumulator,
                    const std::vector<MicroColumn>& values) {
    if (op.op == MicroOp::kLoad) return Read(op.operand);
    MicroColumn value(op.type, 1);
    if (op.op == MicroOp::kAccumulator) {
      *value.As<float>() = accumulator;
    } else if (op.op == MicroOp::kConst) {
      FillColumn(op.immediate[0], &value);
    } else if (op.op == MicroOp::kIndex) {
      *value.As<int64_t>() = point_[op.operand];
    } else {
      std::array<const MicroColumn*, 3> arguments{};
      for (size_t a = 0; a < 3; ++a) arguments[a] = &values[op.argument[a]];
      ApplyMicroOp(op, arguments, &value);
    }
    return value;
  }

  // Each value has one element for each setting of the reduced dimensions (all equal where the
  // value does not depend on them).
  void RunVector() {
    int64_t points = 0;
    ForAll(nest_, reduced_, 0, &point_, [&] { ++points; });
    std::vector<MicroColumn> values;
    for (const MicroInstruction& op : nest_.program.ops) {
      MicroColumn value(op.type, points);
      if (Info(op.op).reduces) {
        const std::array<const MicroColumn*, 2> arguments = {&values[op.argument[0]],
                                                             &values[op.argument[1]]};
        ApplyMicroOp(op, arguments, &value);
        values.push_back(std::move(value));
        continue;
      }
      int64_t i = 0;
      ForAll(nest_, reduced_, 0, &point_, [&] {
        std::vector<MicroColumn> scalars;
        for (const MicroColumn& earlier : values) scalars.push_back(At(earlier, i));
        Set(Apply(op, 0, scalars), i++, &value);
      });
      values.push_back(std::move(value));
    }
    int64_t i = 0;
    ForAll(nest_, reduced_, 0, &point_, [&] { Write(At(values.back(), i++)); });
  }

  // One value of a column, and back.
  static size_t SizeOf(ElementType type) { return Idx(TypeBytes(type, 1)); }
  static MicroColumn At(const MicroColumn& column, int64_t i) {
    MicroColumn value(column.type(), 1);
    const size_t size = SizeOf(column.type());
    std::memcpy(value.As<uint8_t>(), column.As<uint8_t>() + Idx(i) * size, size);
    return value;
  }
  static void Set(const MicroColumn& value, int64_t i, MicroColumn* column) {
    const size_t size = SizeOf(column->type());
    std::memcpy(column->As<uint8_t>() + Idx(i) * size, value.As<uint8_t>(), size);
  }

  const Graph& graph_;
  const Nest& nest_;
  NestBuffers* buffers_;
  Point point_;
  std::vector<size_t> outer_, reduced_;
  std::vector<uint8_t*> pointers_;
};

// The lowest and highest index of an axis over all points.
std::pair<int64_t, int64_t> Range(const Nest& nest, const Axis& axis) {
  int64_t high = axis.offset;
  for (const Term& term : axis.terms) {
    high += term.coefficient * (nest.dimensions[Idx(term.dimension)].extent - 1);
  }
  return {axis.offset, high};
}

}  // namespace

std::vector<std::string> NestFaults(const Graph& graph, const Nest& nest) {
  std::vector<std::string> faults;
  std::set<std::string> names;
  std::set<int> used;
  for (const Dimension& dimension : nest.dimensions) {
    if (!names.insert(dimension.name).second) faults.push_back("two dimensions " + dimension.name);
    if (dimension.extent < 1) faults.push_back("dimension " + dimension.name + " is empty");
  }
  for (size_t k = 0; k < nest.operands.size(); ++k) {
    const Operand& operand = nest.operands[k];
    const bool is_output = static_cast<int>(k) == nest.output();
    std::set<int> own;
    int64_t low = operand.base, high = operand.base;
    if (operand.axes.empty()) faults.push_back(Concat("operand ", k, " has no axes"));
    for (const Axis& axis : operand.axes) {
      for (const Term& term : axis.terms) {
        if (!own.insert(term.dimension).second) faults.push_back(Concat("operand ", k, " twice"));
        if (term.coefficient < 1) faults.push_back(Concat("operand ", k, " coefficient"));
        used.insert(term.dimension);
      }
      const auto [first, last] = Range(nest, axis);
      if (is_output && (first < 0 || last >= axis.bound)) faults.push_back("the output is clipped");
      low += std::min<int64_t>(0, (axis.bound - 1) * axis.stride);
      high += std::max<int64_t>(0, (axis.bound - 1) * axis.stride);
    }
    if (operand.gather) {
      high += (operand.gather->bound - 1) * operand.gather->stride;
      if (operand.gather->indices < 0 || operand.gather->indices >= nest.output()) {
        faults.push_back(Concat("operand ", k, " is gathered by no operand"));
      }
    }
    const Value& root = graph.values[Idx(graph.values[Idx(operand.value)].storage.root)];
    if (low < 0 || high >= ElementCount(root.shape)) {
      faults.push_back(Concat("operand ", k, " leaves the buffer of '", root.name, "'"));
    }
  }
  if (used.size() != nest.dimensions.size()) faults.push_back("a dimension is not used");
  return faults;
}

void RunNest(const Graph& graph, const Nest& nest, NestBuffers* buffers) {
  Interpreter(graph, nest, buffers).Run();
}

std::map<std::string, Tensor> EvaluateNests(const Graph& graph,
                                            const std::map<std::string, Tensor>& inputs,
                                            std::vector<std::string>* faults, bool on_vector) {
  NestBuffers buffers;
  for (const ValueId id : graph.inputs) {
    buffers[id] = inputs.at(graph.values[Idx(id)].name).bytes;
  }
  for (const Node& node : graph.nodes) {
    Result<Nest> nest = BuildNest(graph, node);
    if (!nest.ok()) {
      faults->push_back(nest.status().message());
      continue;
    }
    if (std::optional<Nest> form = on_vector ? VectorForm(*nest) : std::nullopt) {
      *nest = std::move(*form);
    }
    for (const std::string& fault : NestFaults(graph, *nest)) {
      faults->push_back("node '" + node.name + "': " + fault);
    }
    if (faults->empty()) RunNest(graph, *nest, &buffers);
  }
  std::map<std::string, Tensor> results;
  for (const ValueId id : graph.outputs) {
    if (!faults->empty()) break;
    const Value& value = graph.values[Idx(id)];
    results[value.name] = {value.type, value.shape, {}};
    if (ElementCount(value.shape) > 0) results[value.name].bytes = buffers.at(id);
  }
  return results;
}

}  // namespace dla::ir
