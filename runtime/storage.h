// The bytes of the emulated machine: DRAM, one space for each kind of region, and the scratchpads.
//
// Only DMA touches DRAM, only engines touch scratchpads. Addresses were proved to be in bounds by
// the program verifier; what is not proved there is checked here before it is used.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "machine/program.h"
#include "runtime/tile.h"
#include "support/status.h"

namespace dla::runtime {

class Storage {
 public:
  explicit Storage(const machine::Program& program);

  // Reads a region of any kind; writes one that is not constant.
  const uint8_t* ReadRegion(uint32_t region) const;
  uint8_t* WriteRegion(uint32_t region);
  int64_t RegionBytes(uint32_t region) const { return program_->regions[region].bytes; }

  // Overwrites what does not stay for another run: scratchpads but for what was loaded once,
  // outputs and temporaries.
  void ForgetRun();

  uint8_t* Scratchpad(int memory) { return scratchpads_[static_cast<size_t>(memory)].data(); }

  // Moves the tile of a descriptor; `tile` is not empty.
  Status Load(const machine::OperandDesc& operand, const Tile& tile);
  Status Store(const machine::OperandDesc& operand, const Tile& tile);
  // Loads the tile of a gathered operand (machine/program.h) in this step; the tile of its indices
  // lies on chip. Fails with kMalformed where an index names no entry.
  Status Gather(const machine::Group& group, const machine::OperandDesc& operand, const Tile& tile,
                const Step& step);
  // Copies on chip, between two buffers that hold the same tile.
  Status Move(const machine::OperandDesc& from, const Tile& from_tile,
              const machine::OperandDesc& to, const Tile& to_tile);

 private:
  // Of a piece that does not go round the end of a ring.
  Status LoadPiece(const machine::OperandDesc& operand, const Tile& tile);
  Status StorePiece(const machine::OperandDesc& operand, const Tile& tile);
  // What to say of an index that names no entry of a gathered operand.
  Status NoEntry(const machine::OperandDesc& operand, const machine::OperandDesc& indices,
                 const uint8_t* at) const;
  Status CheckBounds(const machine::OperandDesc& operand, const Tile& tile, bool dram) const;

  const machine::Program* program_;
  std::array<std::vector<uint8_t>, 4> dram_;  // by RegionKind; constants stay in the program
  std::vector<std::vector<uint8_t>> scratchpads_;
};

}  // namespace dla::runtime
