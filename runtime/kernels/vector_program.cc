#include "runtime/kernels/vector_program.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/kernels/convert.h"
#include "runtime/kernels/vector_ops.h"

namespace dla::runtime {
namespace {

// Floats of one value that are worked on together, where the reduction is not longer.
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

void Gather(const VectorSource& source, int64_t offset, int64_t stride, int64_t count, float* to) {
  const int64_t size = TypeBytes(source.type, 1);
  const uint8_t* from = source.data + offset * size;
  if (stride == 1) {
    ToF32(source.type, from, count, to);
  } else if (stride == 0) {
    ToF32(source.type, from, 1, to);
    std::fill(to, to + count, to[0]);
  } else if (source.type == ElementType::kF32) {
    for (int64_t i = 0; i < count; ++i) std::memcpy(to + i, from + i * stride * 4, 4);
  } else {
    for (int64_t i = 0; i < count; ++i) ToF32(source.type, from + i * stride * size, 1, to + i);
  }
}

void Scatter(ElementType type, const float* from, int64_t stride, int64_t count, uint8_t* to) {
  const int64_t size = TypeBytes(type, 1);
  if (stride == 1) return FromF32(type, from, count, to);
  for (int64_t i = 0; i < count; ++i) FromF32(type, from + i, 1, to + i * stride * size);
}

// Evaluates the program for the kept points [first, first + count). A full value is a matrix of
// `rows` (reduced points) by `count` kept points, a reduced one a row.
class Chunk {
 public:
  Chunk(const VectorJob& job, VectorWorkspace* workspace, int64_t rows, int64_t capacity)
      : job_(job), rows_(rows), plane_(rows * capacity) {
    const auto values = static_cast<int64_t>(job.program->ops.size());
    // Two more planes: reduced arguments of full operations, repeated.
    values_ = workspace->values.Get((values + 2) * plane_);
    sums_ = workspace->sums.Get(capacity);
  }

  void Run(int64_t first, int64_t count) {
    first_ = first;
    count_ = count;
    const auto& ops = job_.program->ops;
    for (size_t i = 0; i < ops.size(); ++i) Evaluate(i, ops[i]);
    Store(ops.size() - 1);
  }

 private:
  float* Value(size_t i) { return values_ + static_cast<int64_t>(i) * plane_; }
  int64_t RowsOf(size_t i) const { return job_.full[i] ? rows_ : 1; }

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
    ForRows(RowsOf(i), source.strides, [&](int64_t row, int64_t base) {
      float* to = Value(i) + row * count_;
      ForSegments(job_.kept, source.strides.data(), first_, count_,
                  [&](int64_t offset, int64_t stride, int64_t length) {
                    Gather(source, base + offset, stride, length, to);
                    to += length;
                  });
    });
  }

  void Store(size_t i) {
    const int64_t size = TypeBytes(job_.type, 1);
    ForRows(RowsOf(i), job_.output_strides, [&](int64_t row, int64_t base) {
      const float* from = Value(i) + row * count_;
      ForSegments(job_.kept, job_.output_strides.data(), first_, count_,
                  [&](int64_t offset, int64_t stride, int64_t length) {
                    Scatter(job_.type, from, stride, length, job_.output + (base + offset) * size);
                    from += length;
                  });
    });
  }

  // Argument `a` with as many rows as value `i`.
  const float* Argument(size_t i, const MicroInstruction& op, int a) {
    if (a >= Info(op.op).arguments) return nullptr;
    const size_t from = op.argument[static_cast<size_t>(a)];
    if (RowsOf(from) == RowsOf(i)) return Value(from);
    float* repeated = Value(job_.program->ops.size() + static_cast<size_t>(a));
    for (int64_t row = 0; row < rows_; ++row) {
      std::copy(Value(from), Value(from) + count_, repeated + row * count_);
    }
    return repeated;
  }

  void Evaluate(size_t i, const MicroInstruction& op) {
    if (op.op == MicroOp::kLoad || op.op == MicroOp::kAccumulator) return Load(i);
    if (Info(op.op).reduces) return Reduce(i, op);
    const float* a = Argument(i, op, 0);
    const float* b = Argument(i, op, 1);
    ApplyOp(op, a, b, RowsOf(i) * count_, Value(i));
  }

  void Reduce(size_t i, const MicroInstruction& op) {
    const size_t argument = op.argument[0];
    // A reduced argument is the same at every reduced point.
    const int64_t step = job_.full[argument] ? count_ : 0;
    const float* from = Value(argument);
    float* to = Value(i);
    if (op.op == MicroOp::kReduceSum) {
      std::fill(sums_, sums_ + count_, 0.0);
      for (int64_t row = 0; row < rows_; ++row, from += step) {
        for (int64_t j = 0; j < count_; ++j) sums_[j] += static_cast<double>(from[j]);
      }
      for (int64_t j = 0; j < count_; ++j) to[j] = static_cast<float>(sums_[j]);
      return;
    }
    MicroInstruction pick;
    pick.op = op.op == MicroOp::kReduceMax ? MicroOp::kMax : MicroOp::kMin;
    std::copy(from, from + count_, to);
    for (int64_t row = 1; row < rows_; ++row) ApplyOp(pick, to, from + row * step, count_, to);
  }

  const VectorJob& job_;
  int64_t rows_, plane_;
  int64_t first_ = 0, count_ = 0;
  float* values_;
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
    if (source.data != nullptr) all.push_back(&source.strides);
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

void RunVectorProgram(const VectorJob& original, VectorWorkspace* workspace) {
  VectorJob job = original;
  JoinKept(&job);
  const int64_t kept = Product(job.kept);
  const int64_t rows = Product(job.reduced);
  const int64_t capacity = std::min(kept, std::max<int64_t>(kChunk / rows, 16));
  Chunk chunk(job, workspace, rows, capacity);
  for (int64_t first = 0; first < kept; first += capacity) {
    chunk.Run(first, std::min(capacity, kept - first));
  }
}

}  // namespace dla::runtime
