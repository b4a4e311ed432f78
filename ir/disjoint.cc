#include "ir/disjoint.h"

#include <numeric>
#include <optional>

namespace dla::ir {
namespace {

// The entries begin, begin + step, ... (count of them) along one axis.
struct Progression {
  int64_t begin = 0, step = 1, count = 1;
  int64_t last() const { return begin + step * (count - 1); }
};
using Box = std::vector<Progression>;

bool Meet(const Progression& a, const Progression& b) {
  if (a.last() < b.begin || b.last() < a.begin) return false;
  return (a.begin - b.begin) % std::gcd(a.step, b.step) == 0;  // may meet
}

bool Meet(const Box& a, const Box& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (!Meet(a[i], b[i])) return false;
  }
  return true;
}

// One progression for each axis of the root; nothing where the view is not of that form.
std::optional<Box> BoxOf(const Value& view, const Value& root, const Shape& root_strides) {
  Box box(root.shape.size());
  int64_t offset = view.storage.offset;
  for (size_t r = 0; r < box.size(); ++r) {
    box[r].begin = offset / root_strides[r];
    offset %= root_strides[r];
  }
  for (size_t i = 0; i < view.shape.size(); ++i) {
    if (view.shape[i] == 1) continue;
    const int64_t stride = view.storage.strides[i];
    size_t r = 0;
    while (r < box.size() && (root.shape[r] == 1 || root_strides[r] > stride)) ++r;
    if (r == box.size() || stride % root_strides[r] != 0 || box[r].count != 1) return std::nullopt;
    box[r].step = stride / root_strides[r];
    // An axis of the view may be several of the root's: all of the inner ones, entries of the
    // outer.
    int64_t count = view.shape[i];
    while (box[r].step == 1 && box[r].begin == 0 && count > root.shape[r] &&
           count % root.shape[r] == 0 && r > 0) {
      box[r].count = root.shape[r];
      count /= root.shape[r];
      if (box[--r].count != 1) return std::nullopt;
    }
    box[r].count = count;
    if (box[r].last() >= root.shape[r]) return std::nullopt;
  }
  return box;
}

}  // namespace

bool AreDisjointBoxes(const Value& root, const std::vector<const Value*>& views) {
  constexpr size_t kMostViews = 1024;  // every pair is compared
  if (views.size() > kMostViews || ElementCount(root.shape) == 0) return false;
  const Shape strides = DenseStrides(root.shape);
  std::vector<Box> boxes;
  for (const Value* view : views) {
    if (ElementCount(view->shape) == 0) continue;
    const std::optional<Box> box = BoxOf(*view, root, strides);
    if (!box) return false;
    for (const Box& other : boxes) {
      if (Meet(*box, other)) return false;
    }
    boxes.push_back(*box);
  }
  return true;
}

}  // namespace dla::ir
