#include "ir/ops/pick.h"

namespace dla::ir {
namespace {

// Each piece is a copy, which the scheduler plans as a group of its own. More than these are left
// to the load engine, one index after the other.
constexpr size_t kMostPieces = 64;

struct Piece {
  int64_t start = 0, step = 1, size = 1;  // step 0: one entry, repeated
};

std::vector<Piece> PiecesOf(const std::vector<int64_t>& indices) {
  std::vector<Piece> pieces;
  for (size_t i = 0; i < indices.size();) {
    Piece piece{indices[i]};
    const int64_t step = i + 1 < indices.size() ? indices[i + 1] - indices[i] : -1;
    size_t end = i + 1;
    if (step >= 0) {
      while (end < indices.size() && indices[end] - indices[end - 1] == step) ++end;
      piece.step = step;
    }
    piece.size = static_cast<int64_t>(end - i);
    pieces.push_back(piece);
    i = end;
  }
  return pieces;
}

AttributeMap SliceOf(const Shape& shape, size_t axis, const Piece& piece) {
  Shape starts(shape.size(), 0), steps(shape.size(), 1), sizes = shape;
  starts[axis] = piece.start;
  steps[axis] = piece.step == 0 ? 1 : piece.step;
  sizes[axis] = piece.step == 0 ? 1 : piece.size;
  return {{"sizes", sizes}, {"starts", starts}, {"steps", steps}};
}

Result<ValueId> AddPiece(Rewriter* rewriter, ValueId value, size_t axis, const Piece& piece) {
  const Shape shape = rewriter->value(value).shape;
  DLA_ASSIGN_OR_RETURN(const ValueId slice,
                       rewriter->Add("StridedSlice", {value}, SliceOf(shape, axis, piece)));
  if (piece.step != 0) return slice;
  Shape repeated = shape;
  repeated[axis] = piece.size;
  return rewriter->Add("Broadcast", {slice}, {{"shape", repeated}});
}

// The value as the operand of a Take along `axis`.
Result<ValueId> AsTaken(Rewriter* rewriter, ValueId value, size_t axis) {
  const Shape shape = rewriter->value(value).shape;
  const auto at = shape.begin() + static_cast<int64_t>(axis);
  return Reshaped(rewriter, value,
                  {ElementCount({shape.begin(), at}), *at, ElementCount({at + 1, shape.end()})});
}

Result<ValueId> TakeListed(Rewriter* rewriter, ValueId value, size_t axis,
                           const std::vector<int64_t>& indices, ValueId output) {
  Tensor list = Tensor::Zeros({ElementType::kI32, {static_cast<int64_t>(indices.size())}});
  for (size_t i = 0; i < indices.size(); ++i) {
    WriteInt(&list, static_cast<int64_t>(i), indices[i]);
  }
  Shape shape = rewriter->value(value).shape;
  shape[axis] = static_cast<int64_t>(indices.size());
  if (output != kNoValue) shape = rewriter->value(output).shape;
  return TakeEntries(rewriter, value, axis, rewriter->AddConstant(std::move(list), "indices"),
                     shape, output);
}

}  // namespace

Result<ValueId> TakeEntries(Rewriter* rewriter, ValueId value, size_t axis, ValueId indices,
                            const Shape& shape, ValueId output) {
  DLA_ASSIGN_OR_RETURN(const ValueId data, AsTaken(rewriter, value, axis));
  const int64_t count = ElementCount(rewriter->value(indices).shape);
  DLA_ASSIGN_OR_RETURN(const ValueId list, Reshaped(rewriter, indices, {1, count, 1}));
  DLA_ASSIGN_OR_RETURN(const ValueId taken, rewriter->Add("Take", {data, list}));
  return Reshaped(rewriter, taken, shape, output);
}

Status CheckPicked(int64_t count) {
  if (count <= kMostPicked) return {};
  return Unsupported("its pattern has ", count, " entries; ", kMostPicked, " are supported");
}

Result<ValueId> Reshaped(Rewriter* rewriter, ValueId value, const Shape& shape, ValueId output) {
  if (output == kNoValue) return rewriter->Add("View", {value}, {{"shape", shape}});
  rewriter->Finish("View", {value}, {{"shape", shape}}, output);
  return output;
}

Result<ValueId> Pick(Rewriter* rewriter, ValueId value, size_t axis,
                     const std::vector<int64_t>& indices, ValueId output) {
  const std::vector<Piece> pieces = PiecesOf(indices);
  if (pieces.size() > kMostPieces) return TakeListed(rewriter, value, axis, indices, output);
  std::vector<ValueId> parts;
  for (const Piece& piece : pieces) {
    DLA_ASSIGN_OR_RETURN(parts.emplace_back(), AddPiece(rewriter, value, axis, piece));
  }
  if (parts.size() == 1) {
    if (output == kNoValue) return parts[0];
    const Shape shape = rewriter->value(output).shape;
    return Reshaped(rewriter, parts[0], shape, output);
  }
  const AttributeMap attributes = {{"axis", static_cast<int64_t>(axis)}};
  if (output == kNoValue) return rewriter->Add("Concat", parts, attributes);
  rewriter->Finish("Concat", parts, attributes, output);
  return output;
}

}  // namespace dla::ir
