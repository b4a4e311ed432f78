#include "codegen/pack.h"

#include <algorithm>
#include <cstring>

#include "machine/program.h"
#include "scheduler/transfers.h"
#include "support/element_type.h"

namespace dla::codegen {
namespace {

size_t At(int i) { return static_cast<size_t>(i); }

// One axis of the weight: its dimension is a group, an output channel or a reduction dimension.
enum class Role { kGroup, kChannel, kDepth };

class Packer {
 public:
  Packer(const ir::Nest& nest, const scheduler::Mapping& mapping, std::span<const uint8_t> source)
      : operand_(nest.operands[ir::Nest::kWeight]),
        source_(source),
        element_bytes_(TypeBytes(operand_.type, 1)) {
    const uint32_t input = scheduler::DependenceMask(nest, ir::Nest::kInput);
    const uint32_t output = scheduler::DependenceMask(nest, nest.output());
    for (const ir::Axis& axis : operand_.axes) {
      const int d = axis.terms.empty() ? -1 : axis.terms[0].dimension;
      const uint32_t bit = d < 0 ? 0 : uint32_t{1} << d;
      block_.push_back(d < 0 ? 1 : mapping.block[At(d)]);
      const bool group = (input & output & bit) != 0;
      role_.push_back(group ? Role::kGroup : (output & bit) != 0 ? Role::kChannel : Role::kDepth);
    }
    int64_t elements = 1;
    for (const ir::Axis& axis : operand_.axes) elements *= axis.bound;
    packed_.reserve(static_cast<size_t>(elements * element_bytes_));
  }

  std::vector<uint8_t> Run() {
    begin_.assign(operand_.axes.size(), 0);
    length_.assign(operand_.axes.size(), 1);
    Tiles(0);
    return std::move(packed_);
  }

 private:
  // All tiles, the first axis outermost: in this order each starts where the one before it ends.
  void Tiles(size_t axis) {
    if (axis == operand_.axes.size()) {
      PackTile();
      return;
    }
    for (int64_t begin = 0; begin < operand_.axes[axis].bound; begin += block_[axis]) {
      begin_[axis] = begin;
      length_[axis] = std::min(block_[axis], operand_.axes[axis].bound - begin);
      Tiles(axis + 1);
    }
  }

  // Where the elements of an index lie: source offset without `base`, and the block of the
  // diagonal.
  struct Place {
    int64_t offset = 0, block = 0;
  };

  Place PlaceOf(size_t axis, int64_t index) const {
    const int64_t stride = operand_.axes[axis].stride;
    const std::vector<ir::Term>& terms = operand_.axes[axis].terms;
    if (!operand_.diagonal || terms.empty()) return {index * stride, 0};
    const ir::Diagonal& diagonal = *operand_.diagonal;
    const int dimension = terms[0].dimension;
    if (dimension == diagonal.channel_dimension) return {index * stride, index / diagonal.channels};
    if (dimension != diagonal.depth_dimension) return {index * stride, 0};
    return {index % diagonal.depths * stride, index / diagonal.depths};
  }

  // Of all indices of the tile along the axes of one role, in axis order.
  std::vector<Place> Places(Role role) const {
    std::vector<Place> places = {{}};
    for (size_t a = 0; a < role_.size(); ++a) {
      if (role_[a] != role) continue;
      std::vector<Place> longer;
      for (const Place& place : places) {
        for (int64_t i = begin_[a]; i < begin_[a] + length_[a]; ++i) {
          const Place along = PlaceOf(a, i);
          longer.push_back({place.offset + along.offset, place.block + along.block});
        }
      }
      places = std::move(longer);
    }
    return places;
  }

  void PackTile() {
    const std::vector<Place> groups = Places(Role::kGroup);
    const std::vector<Place> channels = Places(Role::kChannel);
    const std::vector<Place> depth = Places(Role::kDepth);
    constexpr size_t kWidth = static_cast<size_t>(machine::kPanelWidth);
    for (const Place& g : groups) {
      for (size_t panel = 0; panel < channels.size(); panel += kWidth) {
        const size_t end = std::min(panel + kWidth, channels.size());
        for (const Place& k : depth) {
          for (size_t m = panel; m < end; ++m) {
            if (k.block == channels[m].block) {
              Append(operand_.base + g.offset + k.offset + channels[m].offset);
            } else {
              packed_.resize(packed_.size() + static_cast<size_t>(element_bytes_), 0);
            }
          }
        }
      }
    }
  }

  void Append(int64_t element) {
    const uint8_t* from = source_.data() + element * element_bytes_;
    packed_.insert(packed_.end(), from, from + element_bytes_);
  }

  const ir::Operand& operand_;
  std::span<const uint8_t> source_;
  int64_t element_bytes_;
  std::vector<int64_t> block_;
  std::vector<Role> role_;
  std::vector<int64_t> begin_, length_;
  std::vector<uint8_t> packed_;
};

}  // namespace

std::vector<uint8_t> PackWeights(const ir::Nest& nest, const scheduler::Mapping& mapping,
                                 std::span<const uint8_t> source) {
  return Packer(nest, mapping, source).Run();
}

}  // namespace dla::codegen
