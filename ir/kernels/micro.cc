#include "ir/kernels/micro.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "ir/kernels/micro_arithmetic.h"
#include "support/half.h"
#include "support/status.h"

namespace dla::ir {
namespace {

template <typename Stored, typename Value, typename Convert>
void LoadAs(const uint8_t* from, int64_t stride, int64_t count, Value* to, Convert convert) {
  const int64_t step = stride * static_cast<int64_t>(sizeof(Stored));
  for (int64_t i = 0; i < count; ++i) {
    Stored element;
    std::memcpy(&element, from + i * step, sizeof(Stored));
    to[i] = convert(element);
  }
}

template <typename Stored, typename Value, typename Convert>
void StoreAs(const Value* from, int64_t count, uint8_t* to, int64_t stride, Convert convert) {
  const int64_t step = stride * static_cast<int64_t>(sizeof(Stored));
  for (int64_t i = 0; i < count; ++i) {
    const Stored element = convert(from[i]);
    std::memcpy(to + i * step, &element, sizeof(Stored));
  }
}

}  // namespace

void LoadColumn(ElementType stored, const uint8_t* from, int64_t stride, int64_t count,
                MicroColumn* column, int64_t at) {
  const auto same = [](auto x) { return x; };
  const auto wide = [](auto x) { return static_cast<int64_t>(x); };
  int64_t* integers = column->As<int64_t>() + at;
  switch (stored) {
    case ElementType::kF32:
      return LoadAs<float>(from, stride, count, column->As<float>() + at, same);
    case ElementType::kF16:
      return LoadAs<uint16_t>(from, stride, count, column->As<float>() + at, HalfToFloat);
    case ElementType::kBF16:
      return LoadAs<uint16_t>(from, stride, count, column->As<float>() + at, BFloat16ToFloat);
    case ElementType::kF64:
      return LoadAs<double>(from, stride, count, column->As<double>() + at, same);
    case ElementType::kI8:
      return LoadAs<int8_t>(from, stride, count, integers, wide);
    case ElementType::kU8:
      return LoadAs<uint8_t>(from, stride, count, integers, wide);
    case ElementType::kI16:
      return LoadAs<int16_t>(from, stride, count, integers, wide);
    case ElementType::kU16:
      return LoadAs<uint16_t>(from, stride, count, integers, wide);
    case ElementType::kI32:
      return LoadAs<int32_t>(from, stride, count, integers, wide);
    case ElementType::kU32:
      return LoadAs<uint32_t>(from, stride, count, integers, wide);
    case ElementType::kI64:
      return LoadAs<int64_t>(from, stride, count, integers, same);
    case ElementType::kU64:
      return LoadAs<uint64_t>(from, stride, count, column->As<uint64_t>() + at, same);
    case ElementType::kBool:
      return LoadAs<uint8_t>(from, stride, count, column->As<bool>() + at,
                             [](uint8_t x) { return x != 0; });
    default:
      DLA_CHECK(false, "values of ", TypeName(stored), " are not computed with");
  }
}

void StoreColumn(const MicroColumn& column, int64_t at, int64_t count, ElementType stored,
                 uint8_t* to, int64_t stride) {
  DLA_CHECK(column.type() == ValueType(stored), TypeName(column.type()), " for ", TypeName(stored));
  const int64_t* integers = column.As<int64_t>() + at;
  const float* floats = column.As<float>() + at;
  const auto same = [](auto x) { return x; };
  switch (TypeBits(stored)) {
    case 8:
      if (stored == ElementType::kBool) {
        return StoreAs<uint8_t>(column.As<bool>() + at, count, to, stride,
                                [](bool x) { return static_cast<uint8_t>(x ? 1 : 0); });
      }
      return StoreAs<uint8_t>(integers, count, to, stride,
                              [](int64_t x) { return static_cast<uint8_t>(x); });
    case 16:
      if (stored == ElementType::kF16) {
        return StoreAs<uint16_t>(floats, count, to, stride, FloatToHalf);
      }
      if (stored == ElementType::kBF16) {
        return StoreAs<uint16_t>(floats, count, to, stride, FloatToBFloat16);
      }
      return StoreAs<uint16_t>(integers, count, to, stride,
                               [](int64_t x) { return static_cast<uint16_t>(x); });
    case 32:
      if (stored == ElementType::kF32) return StoreAs<float>(floats, count, to, stride, same);
      return StoreAs<uint32_t>(integers, count, to, stride,
                               [](int64_t x) { return static_cast<uint32_t>(x); });
    default:  // f64, i64, u64: as they are
      return StoreAs<int64_t>(integers, count, to, stride, same);
  }
}

void FillColumn(double number, MicroColumn* column) {
  const auto fill = [&](auto* values) {
    using T = std::remove_pointer_t<decltype(values)>;
    std::fill_n(values, column->count(), FromDouble<T>(number));
  };
  switch (column->type()) {
    case ElementType::kF32:
      return fill(column->As<float>());
    case ElementType::kF64:
      return fill(column->As<double>());
    case ElementType::kU64:
      return fill(column->As<uint64_t>());
    case ElementType::kBool:
      return fill(column->As<bool>());
    default:
      return fill(column->As<int64_t>());
  }
}

namespace {

// Axes of the space: those that are looped over one point at a time, and those of a column.
struct Walk {
  Shape extents;
  std::vector<size_t> axes;  // of the whole space

  int64_t Points() const { return ElementCount(extents); }
  void Add(const Shape& shape, size_t axis) {
    extents.push_back(shape[axis]);
    axes.push_back(axis);
  }
  // Moves `index` to the next point.
  void Next(std::vector<int64_t>* index) const {
    for (size_t i = axes.size(); i-- > 0;) {
      if (++(*index)[axes[i]] < extents[i]) return;
      (*index)[axes[i]] = 0;
    }
  }
};

int64_t OffsetOf(const std::vector<int64_t>& index, const Shape& strides) {
  int64_t offset = 0;
  for (size_t i = 0; i < index.size(); ++i) offset += index[i] * strides[i];
  return offset;
}

class MicroRun {
 public:
  MicroRun(const MicroProgram& program, const Shape& shape, uint32_t reduced,
           std::span<const MicroArray> operands, std::span<const uint8_t* const> sources,
           const MicroArray& result, uint8_t* target)
      : program_(program),
        operands_(operands),
        sources_(sources),
        result_(result),
        target_(target),
        index_(shape.size(), 0) {
    const bool reduces = std::any_of(program.ops.begin(), program.ops.end(),
                                     [](const auto& op) { return Info(op.op).reduces; });
    for (size_t i = 0; i < shape.size(); ++i) {
      // Without reductions a column is a run along the last axis.
      const bool column = reduces ? (reduced >> i & 1) != 0 : i + 1 == shape.size();
      (column ? column_ : outer_).Add(shape, i);
    }
    // A column of no points still has one value: what reductions of nothing give.
    const int64_t points = std::max<int64_t>(1, column_.Points());
    for (const MicroInstruction& op : program.ops) values_.emplace_back(op.type, points);
  }

  void Run() {
    for (int64_t point = 0; point < outer_.Points(); ++point) {
      for (size_t i = 0; i < program_.ops.size(); ++i) Compute(i);
      Store();
      outer_.Next(&index_);
    }
  }

 private:
  // Calls `visit` with the place in the column, its length and the index of runs along the column's
  // last axis.
  template <typename Visit>
  void ForRuns(const Shape& strides, const Visit& visit) {
    const int64_t run = column_.extents.empty() ? 1 : column_.extents.back();
    const int64_t step = column_.axes.empty() ? 0 : strides[column_.axes.back()];
    for (int64_t at = 0; at < column_.Points(); at += run) {
      visit(at, run, OffsetOf(index_, strides), step);
      Advance(run);
    }
  }

  // The next run of the column (its last axis is whole).
  void Advance(int64_t run) {
    if (column_.axes.empty()) return;
    index_[column_.axes.back()] = run - 1;
    column_.Next(&index_);
  }

  // What a reduction of nothing gives.
  static double Neutral(MicroOp op) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (op == MicroOp::kReduceMax) return -kInfinity;
    if (op == MicroOp::kReduceMin) return kInfinity;
    return op == MicroOp::kReduceProduct ? 1 : 0;
  }

  void Compute(size_t i) {
    const MicroInstruction& op = program_.ops[i];
    MicroColumn& value = values_[i];
    if (column_.Points() == 0) {
      if (op.op == MicroOp::kLoad || op.op == MicroOp::kIndex) return;
      if (Info(op.op).reduces) return FillColumn(Neutral(op.op), &value);
    }
    if (op.op == MicroOp::kLoad) {
      const MicroArray& operand = operands_[op.operand];
      const int64_t bytes = TypeBytes(operand.type, 1);
      return ForRuns(operand.strides, [&](int64_t at, int64_t run, int64_t offset, int64_t step) {
        LoadColumn(operand.type, sources_[op.operand] + offset * bytes, step, run, &value, at);
      });
    }
    if (op.op == MicroOp::kIndex) {
      Shape strides(index_.size(), 0);
      strides[op.operand] = 1;
      return ForRuns(strides, [&](int64_t at, int64_t run, int64_t offset, int64_t step) {
        for (int64_t p = 0; p < run; ++p) value.As<int64_t>()[at + p] = offset + p * step;
      });
    }
    if (op.op == MicroOp::kConst) return FillColumn(op.immediate[0], &value);
    std::array<const MicroColumn*, 3> arguments{};
    for (size_t a = 0; a < arguments.size(); ++a) arguments[a] = &values_[op.argument[a]];
    ApplyMicroOp(op, arguments, &value);
  }

  void Store() {
    const int64_t bytes = TypeBytes(result_.type, 1);
    if (column_.Points() == 0) {
      const int64_t offset = OffsetOf(index_, result_.strides) * bytes;
      return StoreColumn(values_.back(), 0, 1, result_.type, target_ + offset, 1);
    }
    ForRuns(result_.strides, [&](int64_t at, int64_t run, int64_t offset, int64_t step) {
      StoreColumn(values_.back(), at, run, result_.type, target_ + offset * bytes, step);
    });
  }

  const MicroProgram& program_;
  std::span<const MicroArray> operands_;
  std::span<const uint8_t* const> sources_;
  const MicroArray& result_;
  uint8_t* target_;
  std::vector<int64_t> index_;
  Walk outer_, column_;
  std::vector<MicroColumn> values_;
};

// Makes one axis of neighbours that all arrays walk contiguously, so that columns are long.
void MergeAxes(Shape* shape, std::vector<MicroArray>* arrays) {
  for (size_t i = shape->size(); i-- > 1;) {
    const bool fits = std::all_of(arrays->begin(), arrays->end(), [&](const MicroArray& array) {
      return array.strides[i - 1] == array.strides[i] * (*shape)[i];
    });
    if (!fits) continue;
    (*shape)[i] *= (*shape)[i - 1];
    shape->erase(shape->begin() + static_cast<int64_t>(i) - 1);
    for (MicroArray& array : *arrays) {
      array.strides.erase(array.strides.begin() + static_cast<int64_t>(i) - 1);
    }
  }
}

}  // namespace

void RunMicroProgram(const MicroProgram& program, const Shape& shape, uint32_t reduced,
                     std::span<const MicroArray> operands, std::span<const uint8_t* const> sources,
                     const MicroArray& result, uint8_t* target) {
  const bool plain = std::none_of(program.ops.begin(), program.ops.end(), [](const auto& op) {
    return Info(op.op).reduces || op.op == MicroOp::kIndex;
  });
  if (!plain) {
    return MicroRun(program, shape, reduced, operands, sources, result, target).Run();
  }
  Shape merged = shape;
  std::vector<MicroArray> arrays(operands.begin(), operands.end());
  arrays.push_back(result);
  MergeAxes(&merged, &arrays);
  const MicroArray to = arrays.back();
  arrays.pop_back();
  if (merged.empty() || merged.back() <= kLongestColumn) {
    return MicroRun(program, merged, 0, arrays, sources, to, target).Run();
  }
  // A long column in pieces, so that values stay in the cache.
  const int64_t whole = merged.back();
  for (int64_t begin = 0; begin < whole; begin += kLongestColumn) {
    merged.back() = std::min(kLongestColumn, whole - begin);
    std::vector<const uint8_t*> places(sources.begin(), sources.end());
    for (size_t k = 0; k < arrays.size(); ++k) {
      places[k] += begin * arrays[k].strides.back() * TypeBytes(arrays[k].type, 1);
    }
    uint8_t* place = target + begin * to.strides.back() * TypeBytes(to.type, 1);
    MicroRun(program, merged, 0, arrays, places, to, place).Run();
  }
}

}  // namespace dla::ir
