// The program container: one little-endian file that can be memory-mapped.
//
//   0   magic "DLA1"
//   4   u16 major version, u16 minor version
//   8   u32 number of sections
//   12  u32 CRC32C of header and section table, computed with this field zero
//   16  u64 bytes of the file
//   24  u64 zero
//   32  section table: u32 id, u32 flags (1: required), u64 offset, u64 bytes, u32 CRC32C, u32 zero
//
// Sections follow in the table's order, each at the next multiple of 64, zeros between them. A
// reader refuses another major version, a newer minor one, and required sections that it does not
// know; it skips other unknown ones. docs/MACHINE.md lists the sections.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "machine/program.h"
#include "support/status.h"

namespace dla::machine {

// Takes the next bytes; kIo where they cannot be written.
using ByteSink = std::function<Status(std::span<const uint8_t> bytes)>;
// Gives the sink the bytes of the constant region with this index, in pieces of any size; exactly
// `Region::bytes` of them.
using ConstantBytes = std::function<Status(size_t region, const ByteSink& append)>;

// Constant regions start at multiples of this in their space.
inline constexpr int64_t kConstantAlignBytes = 64;

// Writes the program (whose `constants` are ignored) under a temporary name and renames it.
// Constants are asked for in address order, one region at a time, and go to the file as they come.
// Same program and constants: same bytes. kIo, or what `constant_bytes` answers.
Status WriteProgram(const Program& program, const std::string& path,
                    const ConstantBytes& constant_bytes);
// The same with the constants taken from program.constants.
Status WriteProgram(const Program& program, const std::string& path);

// Reads a program; its constants are a view of the mapped file. kMalformed with offset and reason
// if the container is damaged. What the program says is proved by VerifyProgram (verifier.h).
Result<Program> ReadProgram(const std::string& path);
// The same from bytes that `owner` keeps alive; `name` is what messages call them.
Result<Program> ParseProgram(std::span<const uint8_t> bytes, std::shared_ptr<const void> owner,
                             const std::string& name);

// Bytes of the constant space: where its last constant region ends.
int64_t ConstantSpaceBytes(const Program& program);

}  // namespace dla::machine
