// Vector micro-programs: straight-line arithmetic on tiles.
//
// A program is a list of operations in static single assignment form: operation i defines value i
// and may use only values with smaller numbers. It runs over the points of a tile's iteration
// space. A value is `full` (one element for each point) or `reduced` (one element for each point of
// the space without the reduction dimensions); a full operation may use reduced values, which are
// repeated along the reduction dimensions. The last value is the program's result.
//
// Each value has one of five types: f32, f64, i64, u64 or bool. A load converts the operand's
// elements to the value type of their kind (ValueType), exactly; storing converts back: floats
// round to nearest even, integers wrap, bool is 0 or 1. The arguments of an operation have the type
// of its result unless the table below says otherwise.
//
// The same program is an epilogue in the IR's nests and the operand of the machine's array and
// vector instructions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/element_type.h"

namespace dla {

enum class MicroOp : uint8_t {
  kAccumulator,  // the drained accumulator (array drain programs only); first operation
  kLoad,         // element of operand `operand`
  kConst,        // immediate[0]; NaN is allowed
  kAdd,
  kSub,
  kMul,
  kDiv,  // integers: towards zero; by zero gives 0
  kMin,
  kMax,  // NaN in either argument gives NaN
  kPow,  // argument 0 to the power of argument 1
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
  kRound,      // ties to even
  kRelu,       // max(x, 0); like kClamp, keeps NaN
  kLeakyRelu,  // x < 0 ? immediate[0] * x : x
  kClamp,      // min(max(x, immediate[0]), immediate[1])
  kCopy,       // x
  kReduceSum,
  kReduceMax,
  kReduceMin,  // over the reduction dimensions
  // Two arguments of one type, result bool; NaN compares false.
  kEqual,
  kLess,
  kLessOrEqual,
  kSelect,  // argument 0 (bool) ? argument 1 : argument 2
  // Argument of any type. Float to integer truncates, saturates at the ends of i64 or u64, NaN
  // becomes 0; between integers the bits stay; to bool is "not zero".
  kCast,
  kWrap,  // i64: the low immediate[0] bits (8, 16 or 32), signed if immediate[1] is not 0
  kAnd,
  kOr,
  kXor,
  kNot,  // of bools
  kBitAnd,
  kBitOr,
  kBitXor,
  kBitNot,
  kShiftLeft,
  kShiftRight,  // of integers; i64 keeps its sign; by 64 or more (or less than 0) shifts all out
  kMod,         // x - y * floor(x / y), has the sign of y; integers by zero give 0
  kRemainder,   // x - y * trunc(x / y), has the sign of x; integers by zero give 0
  kSign,        // -1, 0, 1; NaN stays
  // Argument f32 or f64, result bool.
  kIsNaN,
  kIsInf,  // immediate[0]: is minus infinity one? immediate[1]: is plus infinity one?
  kSin,
  kCos,
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kSinh,
  kCosh,
  kAsinh,
  kAcosh,
  kAtanh,
  kReduceProduct,  // over the reduction dimensions
  kIndex,          // i64: the index of dimension `operand` at this point
  kReduceDot,      // the sum of products of two arguments over the reduction dimensions
};
inline constexpr int kMicroOpCount = 64;

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
  uint8_t results;  // value types of the result: bit t for type t of ValueTypeIndex
};
const MicroOpInfo& Info(MicroOp op);
// What joins two results of the reduction: kAdd for kReduceSum, ...
MicroOp CombiningOp(MicroOp reduction);
bool NamesOperand(MicroOp op);  // does it have a meaning for MicroInstruction::operand?
std::string_view OpClassName(OpClass op_class);
std::optional<MicroOp> ParseMicroOp(std::string_view name);
std::optional<OpClass> ParseOpClass(std::string_view name);

struct MicroInstruction {
  MicroOp op = MicroOp::kCopy;
  ElementType type = ElementType::kF32;  // of the value that it defines
  // Done by the output stage as the result leaves, at no cost; only in an unbroken run of
  // operations at the end of a program (or, in an array's drain program, the whole of it).
  bool stage = false;
  uint8_t operand = 0;  // kLoad: which operand of the group; kIndex: which dimension
  std::array<uint8_t, 3> argument = {0, 0, 0};  // numbers of earlier values
  // In operations of type f32 each is the value of an f32; integer ones take whole numbers.
  std::array<double, 2> immediate = {0, 0};

  bool operator==(const MicroInstruction&) const = default;
};

struct MicroProgram {
  std::vector<MicroInstruction> ops;

  bool operator==(const MicroProgram&) const = default;
};
inline constexpr int kMaxMicroOps = 64;

// The type of values that elements of type `stored` are loaded as: f16, bf16 and f32 as f32, u64 as
// u64, the other integers as i64; f64 and bool as they are.
ElementType ValueType(ElementType stored);
inline bool IsValueType(ElementType type) { return ValueType(type) == type; }
// 0 to 4 for f32, f64, i64, u64, bool.
int ValueTypeIndex(ElementType value_type);

// Do the types of operation `index` and of its arguments (earlier operations) fit its kind?
bool TypesFit(const MicroProgram& program, size_t index);

// For each value of the program: is it `full`? `operand_is_full[k]` says whether operand k depends
// on a reduction dimension (where there are none, nothing is full and nothing differs); bit d of
// `reduced_dims` whether dimension d is one.
std::vector<bool> FullValues(const MicroProgram& program, const std::vector<bool>& operand_is_full,
                             uint32_t reduced_dims);

// One line, e.g. "v0 = load 3; v1 = accumulator; v2 = add v0 v1; v3 = relu v2 !" ('!': output
// stage). The type follows the name where it is not f32: "v3 = less.bool v1 v2". Numbers are
// printed so that they read back to the same bits.
std::string ToText(const MicroProgram& program);
// The program of that text, or nothing; `error` then says what is wrong.
std::optional<MicroProgram> ParseMicroProgram(std::string_view text, std::string* error);

}  // namespace dla
