#include "frontend/import.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <new>
#include <set>

#include "frontend/attributes.h"
#include "frontend/input_shapes.h"
#include "frontend/onnx_proto.h"
#include "frontend/tensors.h"
#include "ir/fold.h"
#include "ir/op.h"
#include "ir/rewriter.h"
#include "support/file.h"

namespace dla::frontend {
namespace {

using ir::Idx;
using ir::kNoValue;
using ir::ValueId;

// Of a value that is computed when the model runs, in elements.
constexpr int64_t kMostElements = int64_t{1} << 31;
// Lines of one report.
constexpr size_t kMostProblems = 50;

// Problems of many nodes, reported together.
class Problems {
 public:
  void Add(const Status& status) {
    malformed_ = malformed_ || status.code() != ErrorCode::kUnsupported;
    if (++count_ <= kMostProblems) text_ += (text_.empty() ? "" : "\n") + status.message();
  }
  Status ToStatus() const {
    if (count_ == 0) return {};
    std::string text = text_;
    if (count_ > kMostProblems) text += Concat("\nand ", count_ - kMostProblems, " more");
    return Status(malformed_ ? ErrorCode::kMalformed : ErrorCode::kUnsupported, text);
  }

 private:
  size_t count_ = 0;
  bool malformed_ = false;
  std::string text_;
};

class Importer {
 public:
  Importer(const onnx::ModelProto& model, const std::string& path,
           std::shared_ptr<const void> owner, const ImportOptions& options)
      : model_(model), options_(options), tensors_(path, std::move(owner)), rewriter_(&graph_) {}

  Result<ir::Graph> Run() {
    DLA_RETURN_IF_ERROR(CheckModel());
    graph_.name = model_.graph().name();
    DLA_RETURN_IF_ERROR(AddInitializers());
    DLA_RETURN_IF_ERROR(AddInputs());
    for (const onnx::NodeProto& node : model_.graph().node()) AddNode(node);
    AddOutputs();
    DLA_RETURN_IF_ERROR(problems_.ToStatus());
    DLA_RETURN_IF_ERROR(ir::DetachOutputs(&graph_));
    ir::RemoveDeadNodes(&graph_);
    ir::CompactValues(&graph_);
    return std::move(graph_);
  }

 private:
  Status CheckModel() {
    if (!model_.has_graph()) return Malformed("the file holds no graph; is it an ONNX model?");
    bool found = false;
    for (const auto& import : model_.opset_import()) {
      if (!IsDefaultDomain(import.domain())) continue;
      opset_ = static_cast<int>(std::clamp<int64_t>(import.version(), -1, 100000));
      found = true;
    }
    if (!found) return Malformed("the model imports no version of the ONNX operators");
    if (opset_ < ir::kOldestOpset || opset_ > ir::kNewestOpset) {
      return Unsupported("opset ", opset_, " is not supported, only ", ir::kOldestOpset, " to ",
                         ir::kNewestOpset);
    }
    if (model_.graph().sparse_initializer_size() > 0) {
      return Unsupported("sparse initializers are not supported");
    }
    if (model_.graph().output_size() == 0) return Malformed("the graph has no outputs");
    return {};
  }

  static bool IsDefaultDomain(const std::string& domain) {
    return domain.empty() || domain == "ai.onnx";
  }

  // A value of this name; kNoValue if the name is taken.
  ValueId Define(const std::string& name, ir::TensorType type) {
    if (values_.contains(name)) return kNoValue;
    const ValueId id = rewriter_.AddValue(name, std::move(type));
    values_[name] = id;
    return id;
  }

  Status AddInitializers() {
    for (const onnx::TensorProto& tensor : model_.graph().initializer()) {
      const std::string where = Concat("initializer '", tensor.name(), "'");
      const Result<ImportedTensor> result = tensors_.Read(tensor);
      if (!result.ok() && result.status().code() == ErrorCode::kUnsupported) {
        // Only a problem if somebody uses it.
        unusable_[tensor.name()] = result.status().message();
        values_[tensor.name()] = kNoValue;
        continue;
      }
      if (!result.ok()) return result.status().At(where);
      const ValueId id = Define(tensor.name(), result->type);
      if (id == kNoValue) return Malformed(where, ": the name occurs twice");
      graph_.values[Idx(id)].constant = result->constant;
    }
    return {};
  }

  Status AddInputs() {
    std::vector<const onnx::ValueInfoProto*> inputs;
    for (const onnx::ValueInfoProto& input : model_.graph().input()) {
      // Initializers listed as inputs are constants.
      if (!values_.contains(input.name())) inputs.push_back(&input);
    }
    DLA_ASSIGN_OR_RETURN(const auto shapes, ResolveInputShapes(inputs, options_));
    for (const onnx::ValueInfoProto* input : inputs) {
      const std::string where = Concat("input '", input->name(), "'");
      if (!input->type().has_tensor_type()) return Unsupported(where, ": it is no tensor");
      const auto type = TypeOfNumber(input->type().tensor_type().elem_type());
      if (!type.ok()) return type.status().At(where);
      const ir::Shape& shape = shapes.at(input->name());
      const Status sound = CheckRunTimeShape(shape);
      if (!sound.ok()) return sound.At(where + Symbols(*input));
      const ValueId id = Define(input->name(), {*type, shape});
      if (id == kNoValue) return Malformed(where, ": the name occurs twice");
      graph_.inputs.push_back(id);
    }
    return {};
  }

  // " (N, height)": the names of the input's dimensions, where it has any.
  static std::string Symbols(const onnx::ValueInfoProto& input) {
    std::string text;
    for (const auto& dim : input.type().tensor_type().shape().dim()) {
      if (!dim.dim_param().empty()) text += (text.empty() ? "" : ", ") + dim.dim_param();
    }
    return text.empty() ? text : " (" + text + ")";
  }

  static Status CheckRunTimeShape(const ir::Shape& shape) {
    const auto count = ir::CheckedElementCount(shape);
    if (!count || *count > kMostElements) {
      return Unsupported("the shape ", ir::ShapeText(shape), " is too large");
    }
    if (*count == 0) {
      return Unsupported("the shape ", ir::ShapeText(shape),
                         " has no elements; that is supported for constants only");
    }
    return {};
  }

  // Adds the node, folds it, or notes why neither is possible.
  void AddNode(const onnx::NodeProto& proto) {
    const Status status = TryNode(proto);
    if (status.ok()) return;
    if (status.code() != ErrorCode::kOk && !status.message().empty()) {
      problems_.Add(status.At(
          Concat("node '", NodeName(proto), "' (", OpName(proto), ", opset ", opset_, ")")));
    }
    // Users of its results are not reported: the cause is.
    for (const std::string& name : proto.output()) {
      if (!name.empty()) values_.try_emplace(name, kNoValue);
    }
  }

  static std::string NodeName(const onnx::NodeProto& proto) {
    if (!proto.name().empty()) return proto.name();
    return proto.output_size() > 0 ? proto.output(0) : "";
  }

  static std::string OpName(const onnx::NodeProto& proto) {
    return IsDefaultDomain(proto.domain()) ? proto.op_type()
                                           : proto.domain() + "." + proto.op_type();
  }

  Status TryNode(const onnx::NodeProto& proto) {
    for (const std::string& name : proto.output()) {
      if (!name.empty() && values_.contains(name)) {
        return Malformed("its result '", name, "' has a name that is taken");
      }
    }
    if (proto.output_size() == 0) return Malformed("it has no outputs");
    if (!IsDefaultDomain(proto.domain())) return Unsupported("the operator is not supported");
    if (proto.op_type() == "Constant") return AddConstantNode(proto);
    const ir::OpDef* def = ir::FindOperator(proto.op_type());
    if (def == nullptr || !def->onnx) return Unsupported("the operator is not supported");
    if (opset_ < def->first_opset) {
      return Malformed("the operator exists since opset ", def->first_opset);
    }
    ir::Node node;
    node.name = NodeName(proto);
    node.op = proto.op_type();
    node.onnx_nodes = {node.name};
    node.opset = opset_;
    bool poisoned = false;
    DLA_RETURN_IF_ERROR(ReadOperands(proto, *def, &node, &poisoned));
    DLA_ASSIGN_OR_RETURN(node.attributes, ReadAttributes(proto, *def, &tensors_));
    if (poisoned) return Status(ErrorCode::kUnsupported, "");
    return Infer(proto, *def, std::move(node));
  }

  Status AddConstantNode(const onnx::NodeProto& proto) {
    DLA_ASSIGN_OR_RETURN(const ImportedTensor tensor, ReadConstantNode(proto, &tensors_));
    const ValueId id = Define(proto.output(0), tensor.type);
    graph_.values[Idx(id)].constant = tensor.constant;
    return {};
  }

  Status ReadOperands(const onnx::NodeProto& proto, const ir::OpDef& def, ir::Node* node,
                      bool* poisoned) {
    for (const std::string& name : proto.input()) {
      if (name.empty()) {
        node->inputs.push_back(kNoValue);
        continue;
      }
      const auto it = values_.find(name);
      if (it == values_.end()) return Malformed("its input '", name, "' is not defined before it");
      if (const auto why = unusable_.find(name); why != unusable_.end()) {
        return Unsupported("its input '", name, "': ", why->second);
      }
      if (it->second == kNoValue) *poisoned = true;
      node->inputs.push_back(it->second);
    }
    if (*poisoned) return {};
    while (!node->inputs.empty() && node->inputs.back() == kNoValue) node->inputs.pop_back();
    const int count = static_cast<int>(node->inputs.size());
    const int most = std::max(def.max_inputs, def.max_file_inputs);
    const bool any =
        def.max_inputs == ir::OpDef::kVariadic || def.max_file_inputs == ir::OpDef::kVariadic;
    if (count < def.min_inputs || (!any && count > most)) {
      return Malformed("it has ", count, " inputs; ", def.min_inputs,
                       any ? " or more" : Concat(" to ", most), " are possible");
    }
    for (int i = 0; i < count; ++i) {
      if (node->inputs[Idx(i)] == kNoValue && (i < def.min_inputs || any)) {
        return Malformed("its input ", i, " is missing");
      }
    }
    if (def.max_outputs != ir::OpDef::kVariadic && proto.output_size() > def.max_outputs) {
      return Malformed("it has ", proto.output_size(), " outputs; at most ", def.max_outputs,
                       " are possible");
    }
    return {};
  }

  Status Infer(const onnx::NodeProto& proto, const ir::OpDef& def, ir::Node node) {
    // Inference asks which outputs are used; their values do not exist yet.
    for (const std::string& name : proto.output())
      node.outputs.push_back(name.empty() ? kNoValue : 0);
    std::vector<ir::TensorType> types;
    DLA_RETURN_IF_ERROR(def.infer(graph_, node, &types));
    for (const ir::TensorType& type : types) {
      if (type.shape.size() > 16) return Unsupported("a result has rank ", type.shape.size());
      if (!ir::CheckedElementCount(type.shape)) {
        return Unsupported("a result has the shape ", ir::ShapeText(type.shape),
                           ", which is too large");
      }
    }
    std::set<std::string> names;
    for (const std::string& name : proto.output()) {
      if (!name.empty() && !names.insert(name).second) {
        return Malformed("its result '", name, "' has a name that is taken");
      }
    }
    for (int i = 0; i < proto.output_size(); ++i) {
      const bool used = !proto.output(i).empty() && Idx(i) < types.size();
      node.outputs[Idx(i)] = used ? rewriter_.AddValue(proto.output(i), types[Idx(i)]) : kNoValue;
    }
    while (!node.outputs.empty() && node.outputs.back() == kNoValue) node.outputs.pop_back();
    const Status status = Place(def, node);
    if (!status.ok()) return status;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != kNoValue) values_[proto.output(static_cast<int>(i))] = node.outputs[i];
    }
    return {};
  }

  // Computes the node now if it can be, or adds it to the graph if it can run later.
  Status Place(const ir::OpDef& def, const ir::Node& node) {
    if (ir::IsFoldable(graph_, node)) return ir::FoldOnnxNode(&graph_, &rewriter_, node);
    for (const ValueId id : node.outputs) {
      if (id != kNoValue) DLA_RETURN_IF_ERROR(CheckRunTimeShape(graph_.values[Idx(id)].shape));
    }
    const ElementType type = graph_.values[Idx(node.inputs[0])].type;
    if (type != ElementType::kF32 && !MovesOnly(def)) {
      return Unsupported("arithmetic in ", TypeName(type),
                         " when the model runs is not supported, only f32");
    }
    if (TypeBits(type) < 8) return Unsupported(TypeName(type), " is not supported");
    graph_.nodes.push_back(node);
    return {};
  }

  // Whether the operator takes elements of any type.
  static bool MovesOnly(const ir::OpDef& def) {
    static constexpr std::string_view kMoves[] = {"Concat",   "Dropout", "Flatten",   "Gather",
                                                  "Identity", "Reshape", "Slice",     "Split",
                                                  "Squeeze",  "Cast",    "Transpose", "Unsqueeze"};
    return std::find(std::begin(kMoves), std::end(kMoves), def.name) != std::end(kMoves);
  }

  void AddOutputs() {
    for (const onnx::ValueInfoProto& output : model_.graph().output()) {
      const auto it = values_.find(output.name());
      if (it == values_.end()) {
        problems_.Add(Malformed("output '", output.name(), "' is not computed by any node"));
      } else if (it->second != kNoValue) {
        graph_.outputs.push_back(it->second);
      } else if (const auto why = unusable_.find(output.name()); why != unusable_.end()) {
        problems_.Add(Unsupported("output '", output.name(), "': ", why->second));
      }
    }
  }

  const onnx::ModelProto& model_;
  const ImportOptions& options_;
  TensorReader tensors_;
  ir::Graph graph_;
  ir::Rewriter rewriter_;
  int opset_ = 0;
  std::map<std::string, ValueId> values_;        // kNoValue: a node with a problem makes it
  std::map<std::string, std::string> unusable_;  // initializers of no use, and why
  Problems problems_;
};

// Parses the file; the message owns all of its bytes.
Result<std::shared_ptr<const onnx::ModelProto>> ParseModel(const std::string& path) {
  DLA_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  const size_t size = file->bytes().size();
  if (size > static_cast<size_t>(std::numeric_limits<int>::max())) {
    return Unsupported("the file has ", size,
                       " bytes; ONNX files end at 2 GiB (larger weights "
                       "belong into external data)");
  }
  auto model = std::make_shared<onnx::ModelProto>();
  google::protobuf::io::CodedInputStream stream(file->bytes().data(), static_cast<int>(size));
  // Protobuf would print its own message beside ours.
  const google::protobuf::LogSilencer silence;
  if (!model->ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage()) {
    return Malformed("this is no ONNX model, or it is damaged (protobuf cannot parse it)");
  }
  return std::shared_ptr<const onnx::ModelProto>(model);
}

}  // namespace

Result<ir::Graph> ImportOnnx(const std::string& path, const ImportOptions& options) {
  try {
    const auto model = ParseModel(path);
    if (!model.ok()) {
      const bool io = model.status().code() == ErrorCode::kIo;  // names the path already
      return io ? model.status() : model.status().At(path);
    }
    Result<ir::Graph> graph = Importer(**model, path, *model, options).Run();
    if (!graph.ok() && graph.status().code() != ErrorCode::kUsage) return graph.status().At(path);
    return graph;
  } catch (const std::bad_alloc&) {
    return Unsupported(path, ": the model needs more memory than there is");
  } catch (const std::exception& error) {
    return Malformed(path, ": ", error.what());
  }
}

}  // namespace dla::frontend
