#include "runtime/kernels/vector_program.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include "runtime/kernels/convert.h"
#include "runtime/kernels/vector_ops.h"
#include "support/checked.h"

namespace dla::runtime {
namespace {

// Elements of one value that are worked on together, where the reduction is not longer.
constexpr int64_t kChunk = 2048;

// Walks points [first, first + count) of the dimensions (last fastest), as segments that advance
// by a constant stride: visit(offset, stride, length).
template <typename F>
void ForSegments(const std::vector<int64_t>& lengths, const int64_t* strides, int64_t first,
                 int64_t count, F visit) {
  const size_t dims = lengths.size();
  if (dims == 0) {
    visit(0, 0, count);
    return;
  }
  const int64_t inner = lengths[dims - 1];
  while (count > 0) {
    int64_t rest = first;
    int64_t offset = 0;
    for (size_t d = dims; d-- > 0;) {
      offset += rest % lengths[d] * strides[d];
      rest /= lengths[d];
    }
    const int64_t length = std::min(count, inner - first % inner);
    visit(offset, strides[dims - 1], length);
    first += length;
    count -= length;
  }
}

void Gather(const VectorSource& source, int64_t offset, int64_t stride, int64_t count,
            uint8_t* to) {
  const int64_t size = TypeBytes(source.type, 1);
  const uint8_t* from = source.data + offset * size;
  if (stride == 1) return LoadValues(source.type, from, count, to);
  if (stride == 0) {
    LoadValues(source.type, from, 1, to);
    const int64_t bytes = count * ValueBytes(ValueType(source.type));
    for (int64_t done = bytes / count; done < bytes; done *= 2) {
      std::memcpy(to + done, to, static_cast<size_t>(std::min(done, bytes - done)));
    }
    return;
  }
  if (source.type == ElementType::kF32) {
    for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * 4, from + i * stride * 4, 4);
    return;
  }
  const int64_t value_size = ValueBytes(ValueType(source.type));
  for (int64_t i = 0; i < count; ++i) {
    LoadValues(source.type, from + i * stride * size, 1, to + i * value_size);
  }
}

void Scatter(ElementType type, const uint8_t* from, int64_t stride, int64_t count, uint8_t* to) {
  if (stride == 1) return StoreValues(type, from, count, to);
  const int64_t size = TypeBytes(type, 1);
  const int64_t value_size = ValueBytes(ValueType(type));
  for (int64_t i = 0; i < count; ++i) {
    StoreValues(type, from + i * value_size, 1, to + i * stride * size);
  }
}

// Evaluates the program for the kept points [first, first + count). A full value is a matrix of
// `rows` (reduced points) by `count` kept points, a reduced one a row.
class Chunk {
 public:
  Chunk(const VectorJob& job, VectorWorkspace* workspace, int64_t rows, int64_t capacity)
      : job_(job), ops_(job.program->ops), rows_(rows) {
    // A plane for each value and for each of a full operation's reduced arguments, repeated. They
    // are as wide as the widest type of the program.
    int64_t width = 1;
    for (const MicroInstruction& op : ops_) width = std::max(width, ValueBytes(op.type));
    plane_ = RoundUp(rows * capacity * width, 64);
    const auto planes = static_cast<int64_t>(ops_.size() + kRepeated);
    double* storage = workspace->values.Get(planes * plane_ / 8);
    values_ = reinterpret_cast<uint8_t*>(storage);
    sums_ = workspace->sums.Get(capacity);
  }

  void Run(int64_t first, int64_t count) {
    first_ = first;
    count_ = count;
    for (size_t i = 0; i < ops_.size(); ++i) Evaluate(i);
    Store(ops_.size() - 1);
  }

  int64_t overflows() const { return overflows_; }

 private:
  static constexpr size_t kRepeated = 3;

  uint8_t* Value(size_t i) { return values_ + static_cast<int64_t>(i) * plane_; }
  template <typename T>
  T* ValueAs(size_t i) {
    return reinterpret_cast<T*>(Value(i));
  }
  int64_t RowsOf(size_t i) const { return job_.full[i] ? rows_ : 1; }
  int64_t RowBytes(size_t i) const { return count_ * ValueBytes(ops_[i].type); }

  // Calls visit(row, offset of the row's first reduced index) for each row of the value.
  template <typename F>
  void ForRows(int64_t rows, const std::vector<int64_t>& strides, F visit) {
    const int64_t* reduced = strides.data() + job_.kept.size();
    int64_t row = 0;
    ForSegments(job_.reduced, reduced, 0, rows,
                [&](int64_t offset, int64_t stride, int64_t length) {
                  for (int64_t j = 0; j < length; ++j) visit(row++, offset + j * stride);
                });
  }

  void Load(size_t i) {
    const VectorSource& source = job_.sources[i];
    const int64_t size = ValueBytes(ops_[i].type);
    ForRows(RowsOf(i), source.strides, [&](int64_t row, int64_t base) {
      uint8_t* to = Value(i) + row * RowBytes(i);
      ForSegments(job_.kept, source.strides.data(), first_, count_,
                  [&](int64_t offset, int64_t stride, int64_t length) {
                    Gather(source, base + offset, stride, length, to);
                    to += length * size;
                  });
    });
  }

  void Index(size_t i) {
    const VectorSource& source = job_.sources[i];
    ForRows(RowsOf(i), source.strides, [&](int64_t row, int64_t base) {
      int64_t* to = ValueAs<int64_t>(i) + row * count_;
      ForSegments(job_.kept, source.strides.data(), first_, count_,
                  [&](int64_t offset, int64_t stride, int64_t length) {
                    int64_t index = source.start + base + offset;
                    for (int64_t j = 0; j < length; ++j, index += stride) *to++ = index;
                  });
    });
  }

  void Store(size_t i) {
    overflows_ += CountOverflows(job_.type, Value(i), RowsOf(i) * count_);
    const int64_t size = TypeBytes(job_.type, 1);
    const int64_t value_size = ValueBytes(ops_[i].type);
    ForRows(RowsOf(i), job_.output_strides, [&](int64_t row, int64_t base) {
      const uint8_t* from = Value(i) + row * RowBytes(i);
      ForSegments(job_.kept, job_.output_strides.data(), first_, count_,
                  [&](int64_t offset, int64_t stride, int64_t length) {
                    Scatter(job_.type, from, stride, length, job_.output + (base + offset) * size);
                    from += length * value_size;
                  });
    });
  }

  // Argument `a` with as many rows as value `i`.
  const uint8_t* Argument(size_t i, size_t a) {
    if (static_cast<int>(a) >= Info(ops_[i].op).arguments) return nullptr;
    const size_t from = ops_[i].argument[a];
    if (RowsOf(from) == RowsOf(i)) return Value(from);
    uint8_t* repeated = Value(ops_.size() + a);
    for (int64_t row = 0; row < rows_; ++row) {
      std::memcpy(repeated + row * RowBytes(from), Value(from),
                  static_cast<size_t>(RowBytes(from)));
    }
    return repeated;
  }

  void Evaluate(size_t i) {
    const MicroInstruction& op = ops_[i];
    if (op.op == MicroOp::kLoad || op.op == MicroOp::kAccumulator) return Load(i);
    if (op.op == MicroOp::kIndex) return Index(i);
    if (Info(op.op).reduces) return Reduce(i);
    const VectorArguments arguments = {.a = Argument(i, 0),
                                       .b = Argument(i, 1),
                                       .c = Argument(i, 2),
                                       .argument_type = ops_[op.argument[0]].type};
    ApplyOp(op, arguments, RowsOf(i) * count_, Value(i));
  }

  void Reduce(size_t i) {
    const MicroOp op = ops_[i].op;
    if (IsFloat(ops_[i].type) && (op == MicroOp::kReduceSum || op == MicroOp::kReduceProduct)) {
      if (ops_[i].type == ElementType::kF32) return CollectAs<float>(i, sums_);
      std::vector<long double> sums(static_cast<size_t>(count_));
      return CollectAs<double>(i, sums.data());
    }
    Combine(i);
  }

  // A reduced argument is the same at every reduced point.
  int64_t StepOf(size_t argument) const { return job_.full[argument] ? 1 : 0; }

  template <typename T, typename Wide>
  void CollectAs(size_t i, Wide* sums) {
    if (ops_[i].op == MicroOp::kReduceSum) return Collect<T>(i, sums, Wide{0}, std::plus<Wide>());
    Collect<T>(i, sums, Wide{1}, std::multiplies<Wide>());
  }

  // A reduction of floats in a wider type: of f32 in f64, of f64 in what the evaluator uses.
  template <typename T, typename Wide, typename F>
  void Collect(size_t i, Wide* sums, Wide start, F f) {
    std::fill(sums, sums + count_, start);
    const size_t argument = ops_[i].argument[0];
    for (int64_t row = 0; row < rows_; ++row) {
      const T* from = ValueAs<T>(argument) + row * StepOf(argument) * count_;
      for (int64_t j = 0; j < count_; ++j) sums[j] = f(sums[j], static_cast<Wide>(from[j]));
    }
    T* to = ValueAs<T>(i);
    for (int64_t j = 0; j < count_; ++j) to[j] = static_cast<T>(sums[j]);
  }

  // A reduction as a chain of the operation on two values.
  void Combine(size_t i) {
    const size_t argument = ops_[i].argument[0];
    const int64_t step = StepOf(argument) * RowBytes(argument);
    MicroInstruction pick = ops_[i];
    pick.op = CombiningOp(pick.op);
    uint8_t* to = Value(i);
    std::memcpy(to, Value(argument), static_cast<size_t>(RowBytes(argument)));
    for (int64_t row = 1; row < rows_; ++row) {
      ApplyOp(pick, {.a = to, .b = Value(argument) + row * step, .argument_type = pick.type},
              count_, to);
    }
  }

  const VectorJob& job_;
  const std::vector<MicroInstruction>& ops_;
  int64_t rows_;
  int64_t plane_ = 0;  // bytes
  int64_t first_ = 0, count_ = 0;
  int64_t overflows_ = 0;
  uint8_t* values_;
  double* sums_;
};

int64_t Product(const std::vector<int64_t>& lengths) {
  int64_t product = 1;
  for (const int64_t length : lengths) product *= length;
  return product;
}

// Joins neighbouring kept dimensions that every operand passes through without a jump.
void JoinKept(VectorJob* job) {
  std::vector<std::vector<int64_t>*> all = {&job->output_strides};
  for (VectorSource& source : job->sources) {
    if (!source.strides.empty()) all.push_back(&source.strides);
  }
  for (size_t d = job->kept.size(); d-- > 1;) {
    const bool unit = job->kept[d] == 1 || job->kept[d - 1] == 1;
    bool joins = true;
    for (const auto* strides : all) {
      joins = joins && (*strides)[d - 1] == (*strides)[d] * job->kept[d];
    }
    if (!joins && !unit) continue;
    const bool drop_inner = job->kept[d] == 1 && !joins;
    job->kept[d - 1] *= job->kept[d];
    job->kept.erase(job->kept.begin() + static_cast<std::ptrdiff_t>(d));
    for (auto* strides : all) {
      const size_t drop = drop_inner ? d : d - 1;
      strides->erase(strides->begin() + static_cast<std::ptrdiff_t>(drop));
    }
  }
}

}  // namespace

int64_t RunVectorProgram(const VectorJob& original, VectorWorkspace* workspace) {
  VectorJob job = original;
  JoinKept(&job);
  const int64_t kept = Product(job.kept);
  const int64_t rows = Product(job.reduced);
  const int64_t capacity = std::min(kept, std::max<int64_t>(kChunk / rows, 16));
  Chunk chunk(job, workspace, rows, capacity);
  for (int64_t first = 0; first < kept; first += capacity) {
    chunk.Run(first, std::min(capacity, kept - first));
  }
  return chunk.overflows();
}

}  // namespace dla::runtime
