#include "codegen/pack.h"

#include <algorithm>
#include <cstring>

#include "machine/program.h"
#include "scheduler/packed_weight.h"
#include "support/element_type.h"

namespace dla::codegen {
namespace {

using scheduler::PackedWeight;

class Packer {
 public:
  Packer(const PackedWeight& weight, std::span<const uint8_t> source,
         const machine::ByteSink& append)
      : weight_(weight),
        source_(source),
        append_(append),
        element_bytes_(TypeBytes(weight.type, 1)) {}

  Status Run() {
    begin_.assign(weight_.axes.size(), 0);
    length_.assign(weight_.axes.size(), 1);
    return Tiles(0);
  }

 private:
  // All tiles, the first axis outermost: in this order each starts where the one before it ends.
  Status Tiles(size_t axis) {
    if (axis == weight_.axes.size()) {
      packed_.clear();
      PackTile();
      return append_(packed_);
    }
    for (int64_t begin = 0; begin < weight_.axes[axis].bound; begin += weight_.axes[axis].block) {
      begin_[axis] = begin;
      length_[axis] = std::min(weight_.axes[axis].block, weight_.axes[axis].bound - begin);
      DLA_RETURN_IF_ERROR(Tiles(axis + 1));
    }
    return {};
  }

  // Where the elements of an index lie: source offset without `base`, and the block of the
  // diagonal.
  struct Place {
    int64_t offset = 0, block = 0;
  };

  static Place PlaceOf(const PackedWeight::Axis& axis, int64_t index) {
    if (axis.in_diagonal_block == 0) return {index * axis.stride, 0};
    const int64_t stored = axis.restarts ? index % axis.in_diagonal_block : index;
    return {stored * axis.stride, index / axis.in_diagonal_block};
  }

  // Of all indices of the tile along the axes of one role, in axis order.
  std::vector<Place> Places(PackedWeight::Role role) const {
    std::vector<Place> places = {{}};
    for (size_t a = 0; a < weight_.axes.size(); ++a) {
      if (weight_.axes[a].role != role) continue;
      std::vector<Place> longer;
      for (const Place& place : places) {
        for (int64_t i = begin_[a]; i < begin_[a] + length_[a]; ++i) {
          const Place along = PlaceOf(weight_.axes[a], i);
          longer.push_back({place.offset + along.offset, place.block + along.block});
        }
      }
      places = std::move(longer);
    }
    return places;
  }

  void PackTile() {
    using Role = PackedWeight::Role;
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
              Append(weight_.base + g.offset + k.offset + channels[m].offset);
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

  const PackedWeight weight_;
  std::span<const uint8_t> source_;
  const machine::ByteSink& append_;
  int64_t element_bytes_;
  std::vector<int64_t> begin_, length_;
  std::vector<uint8_t> packed_;  // of one tile
};

}  // namespace

Status PackWeights(const ir::Nest& nest, const scheduler::Mapping& mapping,
                   std::span<const uint8_t> source, const machine::ByteSink& append) {
  return Packer(scheduler::PackedWeightOf(nest, mapping), source, append).Run();
}

}  // namespace dla::codegen
