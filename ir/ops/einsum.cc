// Einsum: diagonals, sums over labels that nobody else has, then the operands one after the other
// as products of matrices, or of elements where the array does not multiply their type.
#include <algorithm>
#include <map>

#include "ir/ops/ops.h"
#include "ir/ops/pick.h"
#include "ir/rewriter.h"

namespace dla::ir {
namespace {

constexpr AttributeDef kAttributes[] = {
    {"equation", AttributeKind::kString, "", true, "letters, commas, an ellipsis, ->"}};

// A letter, or -k for the k-th axis from the end of those that an ellipsis stands for.
using Label = int;
using Labels = std::vector<Label>;

struct Equation {
  std::vector<Labels> operands;
  Labels result;
  std::map<Label, int64_t> extents;
};

// Labels of one term; `ellipsis`: how many axes it stands for (an operand's rank decides), or, of
// the result, how many there are at most.
Result<Labels> ParseTerm(const std::string& term, int64_t ellipsis) {
  Labels labels;
  bool seen = false;
  for (size_t i = 0; i < term.size(); ++i) {
    if (term.compare(i, 3, "...") == 0) {
      if (seen) return Malformed("the equation has two ellipses in '", term, "'");
      seen = true;
      for (int64_t k = ellipsis; k > 0; --k) labels.push_back(-static_cast<Label>(k));
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(term[i])) != 0) {
      labels.push_back(term[i]);
    } else {
      return Malformed("the equation has '", std::string(1, term[i]), "' in '", term, "'");
    }
  }
  return labels;
}

bool Has(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

std::vector<std::string> SplitText(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char letter : text) {
    if (letter == separator) {
      parts.emplace_back();
    } else {
      parts.back() += letter;
    }
  }
  return parts;
}

// Without an arrow: what the ellipsis stands for, then the letters that occur once, in order.
Labels ImplicitResult(const Equation& equation, int64_t ellipsis) {
  std::map<Label, int> times;
  for (const Labels& labels : equation.operands) {
    for (const Label label : labels) ++times[label];
  }
  Labels result;
  for (int64_t k = ellipsis; k > 0; --k) result.push_back(-static_cast<Label>(k));
  for (const auto& [label, count] : times) {
    if (label > 0 && count == 1) result.push_back(label);
  }
  return result;
}

Status AddExtents(const Shape& shape, const Labels& labels, Equation* equation) {
  for (size_t i = 0; i < labels.size(); ++i) {
    auto [entry, is_new] = equation->extents.emplace(labels[i], shape[i]);
    if (is_new || entry->second == shape[i]) continue;
    const bool repeats = labels[i] < 0 && (entry->second == 1 || shape[i] == 1);
    if (!repeats) {
      return Malformed("a label of the equation has the extents ", entry->second, " and ",
                       shape[i]);
    }
    entry->second = std::max(entry->second, shape[i]);
  }
  return {};
}

Result<Equation> Parse(const Graph& graph, const Node& node) {
  std::string text = GetString(node.attributes, "equation", "");
  std::erase(text, ' ');
  const size_t arrow = text.find("->");
  const std::vector<std::string> terms = SplitText(text.substr(0, arrow), ',');
  if (terms.size() != node.inputs.size()) {
    return Malformed("the equation has ", terms.size(), " operands, the node ", node.inputs.size());
  }
  Equation equation;
  int64_t widest = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    const Value& value = InputValue(graph, node, static_cast<int>(i));
    const auto rank = static_cast<int64_t>(value.shape.size());
    const bool open = terms[i].find("...") != std::string::npos;
    const int64_t letters = static_cast<int64_t>(terms[i].size()) - (open ? 3 : 0);
    if (letters > rank || (!open && letters != rank)) {
      return Malformed("operand '", value.name, "' has rank ", rank, ", the equation says '",
                       terms[i], "'");
    }
    widest = open ? std::max(widest, rank - letters) : widest;
    DLA_ASSIGN_OR_RETURN(Labels labels, ParseTerm(terms[i], rank - letters));
    DLA_RETURN_IF_ERROR(AddExtents(value.shape, labels, &equation));
    equation.operands.push_back(std::move(labels));
  }
  equation.result = ImplicitResult(equation, widest);
  if (arrow != std::string::npos) {
    DLA_ASSIGN_OR_RETURN(equation.result, ParseTerm(text.substr(arrow + 2), widest));
  }
  for (size_t i = 0; i < equation.result.size(); ++i) {
    const Label label = equation.result[i];
    const bool again = std::count(equation.result.begin(), equation.result.end(), label) > 1;
    if (again || !equation.extents.contains(label)) {
      return Malformed("a label of the result is ", again ? "there twice" : "in no operand");
    }
  }
  return equation;
}

Status Infer(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const ElementType type = InputValue(graph, node, 0).type;
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    const Value& other = InputValue(graph, node, static_cast<int>(i));
    if (other.type != type) {
      return Malformed("the operands have types ", TypeName(type), " and ", TypeName(other.type));
    }
  }
  DLA_ASSIGN_OR_RETURN(const Equation equation, Parse(graph, node));
  Shape shape;
  for (const Label label : equation.result) shape.push_back(equation.extents.at(label));
  outputs->push_back({type, std::move(shape)});
  return {};
}

// A value whose axes have labels, all different.
struct Term {
  ValueId value = kNoValue;
  Labels labels;
};

class Lowering {
 public:
  Lowering(Rewriter* rewriter, const Node& node, Equation equation)
      : rewriter_(*rewriter), node_(node), equation_(std::move(equation)) {}

  Status Run() {
    Term term;
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      DLA_ASSIGN_OR_RETURN(Term next, Operand(i));
      if (i > 0) {
        DLA_ASSIGN_OR_RETURN(next, Product(std::move(term), std::move(next), i));
      }
      term = std::move(next);
    }
    DLA_ASSIGN_OR_RETURN(const ValueId value, Arranged(term, {&equation_.result}));
    return Reshaped(&rewriter_, value, ShapeOf(equation_.result), node_.outputs[0]).status();
  }

 private:
  int64_t Extent(Label label) const { return equation_.extents.at(label); }
  Shape ShapeOf(const Labels& labels) const {
    Shape shape;
    for (const Label label : labels) shape.push_back(Extent(label));
    return shape;
  }
  int64_t Count(const Labels& labels) const { return ElementCount(ShapeOf(labels)); }
  // Does the result or an operand behind `i` have it?
  bool NeededBehind(size_t i, Label label) const {
    bool needed = Has(equation_.result, label);
    for (size_t k = i + 1; k < equation_.operands.size(); ++k) {
      needed = needed || Has(equation_.operands[k], label);
    }
    return needed;
  }

  // The operand without repeated labels, axes that are only repeated, and labels of its own.
  Result<Term> Operand(size_t i) {
    Term term = {node_.inputs[i], equation_.operands[i]};
    Shape shape = rewriter_.value(term.value).shape;
    for (size_t a = shape.size(); a-- > 0;) {
      if (shape[a] != 1 || Extent(term.labels[a]) == 1) continue;
      shape.erase(shape.begin() + static_cast<int64_t>(a));
      term.labels.erase(term.labels.begin() + static_cast<int64_t>(a));
    }
    DLA_ASSIGN_OR_RETURN(term.value, Reshaped(&rewriter_, term.value, shape));
    for (size_t a = 0; a < term.labels.size(); ++a) {
      const auto same = std::find(term.labels.begin() + static_cast<int64_t>(a) + 1,
                                  term.labels.end(), term.labels[a]);
      if (same == term.labels.end()) continue;
      DLA_ASSIGN_OR_RETURN(
          term, Diagonal(std::move(term), a, static_cast<size_t>(same - term.labels.begin())));
      --a;  // there may be a third
    }
    Labels kept;
    for (const Label label : term.labels) {
      bool used = NeededBehind(i, label);
      for (size_t k = 0; k < i; ++k) used = used || Has(equation_.operands[k], label);
      if (used) kept.push_back(label);
    }
    return Summed(std::move(term), kept);
  }

  // Both axes last and joined, of which every (extent + 1)-th entry stays.
  Result<Term> Diagonal(Term term, size_t first, size_t second) {
    std::vector<int64_t> perm;
    Labels rest;
    for (size_t a = 0; a < term.labels.size(); ++a) {
      if (a == first || a == second) continue;
      perm.push_back(static_cast<int64_t>(a));
      rest.push_back(term.labels[a]);
    }
    const Label label = term.labels[first];
    perm.insert(perm.end(), {static_cast<int64_t>(first), static_cast<int64_t>(second)});
    DLA_ASSIGN_OR_RETURN(ValueId value, rewriter_.Add("Transpose", {term.value}, {{"perm", perm}}));
    const Shape all = rewriter_.value(value).shape;
    const int64_t extent = Extent(label);
    Shape joined(all.begin(), all.end() - 2);
    joined.push_back(extent * extent);
    DLA_ASSIGN_OR_RETURN(value, Reshaped(&rewriter_, value, joined));
    Shape steps(joined.size(), 1), sizes = joined;
    steps.back() = extent + 1;
    sizes.back() = extent;
    DLA_ASSIGN_OR_RETURN(
        value,
        rewriter_.Add("StridedSlice", {value},
                      {{"starts", Shape(joined.size(), 0)}, {"steps", steps}, {"sizes", sizes}}));
    rest.push_back(label);
    return Term{value, rest};
  }

  Result<Term> Summed(Term term, const Labels& kept) {
    std::vector<int64_t> axes;
    for (size_t a = 0; a < term.labels.size(); ++a) {
      if (!Has(kept, term.labels[a])) axes.push_back(static_cast<int64_t>(a));
    }
    if (axes.empty()) return term;
    DLA_ASSIGN_OR_RETURN(const ValueId sum,
                         rewriter_.Add("ReduceSum", {term.value}, {{"axes", axes}}));
    DLA_ASSIGN_OR_RETURN(const ValueId value, Reshaped(&rewriter_, sum, ShapeOf(kept)));
    return Term{value, kept};
  }

  // The value with its axes in that order, each group of labels as one axis.
  Result<ValueId> Arranged(const Term& term, const std::vector<const Labels*>& groups) {
    std::vector<int64_t> perm;
    Shape shape;
    for (const Labels* group : groups) {
      shape.push_back(Count(*group));
      for (const Label label : *group) {
        const auto at = std::find(term.labels.begin(), term.labels.end(), label);
        perm.push_back(at - term.labels.begin());
      }
    }
    ValueId value = term.value;
    if (!std::is_sorted(perm.begin(), perm.end())) {
      DLA_ASSIGN_OR_RETURN(value, rewriter_.Add("Transpose", {value}, {{"perm", perm}}));
    }
    return Reshaped(&rewriter_, value, shape);
  }

  // The product of what the operands before `i` came to and operand `i`.
  Result<Term> Product(Term a, Term b, size_t i) {
    Labels batch, only_a, only_b, sums;
    for (const Label label : a.labels) {
      const bool shared = Has(b.labels, label), needed = NeededBehind(i, label);
      (shared ? (needed ? batch : sums) : only_a).push_back(label);
    }
    for (const Label label : b.labels) {
      if (!Has(a.labels, label)) only_b.push_back(label);
    }
    const ElementType type = rewriter_.value(a.value).type;
    const bool on_array =
        type == ElementType::kF32 || type == ElementType::kF16 || type == ElementType::kBF16;
    ValueId value = kNoValue;
    if (on_array && !sums.empty()) {
      DLA_ASSIGN_OR_RETURN(const ValueId left, Arranged(a, {&batch, &only_a, &sums}));
      DLA_ASSIGN_OR_RETURN(const ValueId right, Arranged(b, {&batch, &sums, &only_b}));
      DLA_ASSIGN_OR_RETURN(value, rewriter_.Add("MatMul", {left, right}));
    } else {
      const Labels none;
      DLA_ASSIGN_OR_RETURN(const ValueId left, Arranged(a, {&batch, &only_a, &none, &sums}));
      DLA_ASSIGN_OR_RETURN(const ValueId right, Arranged(b, {&batch, &none, &only_b, &sums}));
      DLA_ASSIGN_OR_RETURN(value, rewriter_.Add("Mul", {left, right}));
      if (!sums.empty()) {
        DLA_ASSIGN_OR_RETURN(value, rewriter_.Add("ReduceSum", {value}, {{"axes", Shape{3}}}));
      }
    }
    Labels labels = batch;
    labels.insert(labels.end(), only_a.begin(), only_a.end());
    labels.insert(labels.end(), only_b.begin(), only_b.end());
    DLA_ASSIGN_OR_RETURN(value, Reshaped(&rewriter_, value, ShapeOf(labels)));
    Labels kept;
    for (const Label label : labels) {
      if (NeededBehind(i, label)) kept.push_back(label);
    }
    return Summed({value, labels}, kept);
  }

  Rewriter& rewriter_;
  const Node& node_;
  const Equation equation_;
};

Status Lower(Rewriter* rewriter, const Node& node) {
  DLA_ASSIGN_OR_RETURN(Equation equation, Parse(rewriter->graph(), node));
  return Lowering(rewriter, node, std::move(equation)).Run();
}

}  // namespace

const OpDef kEinsumOp = {
    .name = "Einsum",
    .first_opset = 12,
    .max_inputs = OpDef::kVariadic,
    .attributes = kAttributes,
    .infer = Infer,
    .lower = Lower,
};

}  // namespace dla::ir
