// Vector micro-programs: straight-line arithmetic on tiles.
//
// A program is a list of operations in static single assignment form: operation i defines value i
// and may use only values with smaller numbers. It runs over the points of a tile's iteration
// space. A value is `full` (one element for each point) or `reduced` (one element for each point of
// the space without the reduction dimensions); a full operation may use reduced values, which are
// repeated along the reduction dimensions. The last value is the program's result.
//
// The same program is an epilogue in the IR's nests and the operand of the machine's array and
// vector instructions. All arithmetic is in f32; a result is rounded once where it is stored.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dla {

enum class MicroOp : uint8_t {
  kAccumulator,  // the drained accumulator (array drain programs only); first operation
  kLoad,         // element of operand `operand`
  kConst,        // immediate[0]
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMin,
  kMax,
  kPow,  // arguments 0 and 1
  kNeg,
  kAbs,
  kExp,
  kLog,
  kSqrt,
  kReciprocal,
  kTanh,
  kSigmoid,
  kErf,
  kFloor,
  kCeil,
  kRound,
  kRelu,       // max(x, 0)
  kLeakyRelu,  // x < 0 ? immediate[0] * x : x
  kClamp,      // min(max(x, immediate[0]), immediate[1])
  kCopy,       // x
  kReduceSum,
  kReduceMax,
  kReduceMin,  // over the reduction dimensions
};
inline constexpr int kMicroOpCount = 29;

// The classes whose cycles a target states ("op_cycles").
enum class OpClass : uint8_t {
  kFree,  // loads and constants take no time
  kMultiplyAdd,
  kAdd,
  kMultiply,
  kMin,
  kMax,
  kCompare,
  kSelect,
  kAbs,
  kNegate,
  kCast,
  kCopy,
  kClip,
  kRound,
  kShift,
  kLogic,
  kDivide,
  kReciprocal,
  kSquareRoot,
  kRemainder,
  kExp,
  kLog,
  kTanh,
  kSigmoid,
  kErf,
  kPower,
  kSine,
};
inline constexpr int kOpClassCount = 27;

// What one operation is: its name in text forms, how many values it uses, whose cycles it takes.
struct MicroOpInfo {
  std::string_view name;
  int arguments;   // values used
  int immediates;  // of immediate[]
  OpClass op_class;
  bool reduces;
};
const MicroOpInfo& Info(MicroOp op);
std::string_view OpClassName(OpClass op_class);
std::optional<MicroOp> ParseMicroOp(std::string_view name);
std::optional<OpClass> ParseOpClass(std::string_view name);

struct MicroInstruction {
  MicroOp op = MicroOp::kCopy;
  // Done by the output stage as the result leaves, at no cost; only in an unbroken run of
  // operations at the end of a program (or, in an array's drain program, the whole of it).
  bool stage = false;
  uint8_t operand = 0;                       // kLoad: which operand of the group
  std::array<uint8_t, 2> argument = {0, 0};  // numbers of earlier values
  std::array<float, 2> immediate = {0, 0};

  bool operator==(const MicroInstruction&) const = default;
};

struct MicroProgram {
  std::vector<MicroInstruction> ops;

  bool operator==(const MicroProgram&) const = default;
};
inline constexpr int kMaxMicroOps = 64;

// For each value of the program: is it `full`? `operand_is_full[k]` says whether operand k depends
// on a reduction dimension (where there are none, nothing is full and nothing differs).
std::vector<bool> FullValues(const MicroProgram& program, const std::vector<bool>& operand_is_full);

// One line, e.g. "v0 = load 3; v1 = accumulator; v2 = add v0 v1; v3 = relu v2 !" ('!': output
// stage). Floats are printed so that they read back to the same bits.
std::string ToText(const MicroProgram& program);
// The program of that text, or nothing; `error` then says what is wrong.
std::optional<MicroProgram> ParseMicroProgram(std::string_view text, std::string* error);

}  // namespace dla
