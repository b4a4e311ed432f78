#include "frontend/input_shapes.h"

#include <set>

#include "ir/tensor.h"

namespace dla::frontend {
namespace {

using Dimension = onnx::TensorShapeProto::Dimension;

class ShapeResolver {
 public:
  explicit ShapeResolver(const ImportOptions& options) : options_(options) {}

  Status Bind(const std::vector<const onnx::ValueInfoProto*>& inputs) {
    for (const auto& [name, size] : options_.dims) {
      if (size < 0) return Usage("--dim ", name, "=", size, ": a size is 0 or more");
      symbols_[name] = {size, "--dim " + name};
    }
    std::set<std::string> input_names, symbol_names;
    for (const onnx::ValueInfoProto* input : inputs) {
      input_names.insert(input->name());
      for (const Dimension& dim : input->type().tensor_type().shape().dim()) {
        if (dim.has_dim_param()) symbol_names.insert(dim.dim_param());
      }
    }
    for (const auto& [name, size] : options_.dims) {
      if (!symbol_names.contains(name))
        return Usage("--dim ", name, ": no input has a dimension of this name");
    }
    for (const auto& [name, shape] : options_.shapes) {
      if (!input_names.contains(name)) return Usage("--shape ", name, ": there is no such input");
    }
    for (const onnx::ValueInfoProto* input : inputs) {
      const auto shape = options_.shapes.find(input->name());
      if (shape != options_.shapes.end()) DLA_RETURN_IF_ERROR(BindShape(*input, shape->second));
    }
    return {};
  }

  // The input's shape; what is free is added to `problems`.
  Result<ir::Shape> Resolve(const onnx::ValueInfoProto& input, std::string* problems) {
    const auto given = options_.shapes.find(input.name());
    if (given != options_.shapes.end()) return given->second;
    const auto& type = input.type().tensor_type();
    if (!type.has_shape()) {
      Add(problems, Concat("input '", input.name(), "' has no shape: --shape ", input.name(),
                           "=1x2x3 (with the sizes you want)"));
      return ir::Shape();
    }
    ir::Shape shape;
    for (int i = 0; i < type.shape().dim_size(); ++i) {
      const Dimension& dim = type.shape().dim(i);
      shape.push_back(1);
      if (dim.has_dim_value()) {
        if (dim.dim_value() < 0) {
          return Malformed("input '", input.name(), "': dimension ", i, " is ", dim.dim_value());
        }
        shape.back() = dim.dim_value();
      } else if (const auto symbol = symbols_.find(dim.dim_param());
                 dim.has_dim_param() && symbol != symbols_.end()) {
        shape.back() = symbol->second.size;
      } else if (dim.has_dim_param() && !dim.dim_param().empty()) {
        if (named_.insert(dim.dim_param()).second) {
          Add(problems, Concat("input '", input.name(), "': dimension ", i, " ('", dim.dim_param(),
                               "') is free: --dim ", dim.dim_param(), "=VALUE"));
        }
      } else {
        Add(problems, Concat("input '", input.name(), "': dimension ", i, " is free: --shape ",
                             input.name(), "=", Pattern(input)));
      }
    }
    return shape;
  }

 private:
  struct Binding {
    int64_t size = 0;
    std::string source;
  };

  static void Add(std::string* problems, const std::string& line) {
    *problems += (problems->empty() ? "" : "\n") + line;
  }

  // "?x3x224x224": what to type, with a mark for each free dimension.
  static std::string Pattern(const onnx::ValueInfoProto& input) {
    std::string text;
    for (const Dimension& dim : input.type().tensor_type().shape().dim()) {
      if (!text.empty()) text += 'x';
      text += dim.has_dim_value() ? std::to_string(dim.dim_value()) : "?";
    }
    return text;
  }

  Status BindShape(const onnx::ValueInfoProto& input, const ir::Shape& shape) {
    const std::string flag = Concat("--shape ", input.name(), "=", ir::ShapeText(shape));
    for (const int64_t extent : shape) {
      if (extent < 0) return Usage(flag, ": a size is 0 or more");
    }
    const auto& type = input.type().tensor_type();
    if (!type.has_shape()) return {};
    if (static_cast<int>(shape.size()) != type.shape().dim_size()) {
      return Usage(flag, ": input '", input.name(), "' has rank ", type.shape().dim_size());
    }
    for (int i = 0; i < type.shape().dim_size(); ++i) {
      const Dimension& dim = type.shape().dim(i);
      const int64_t size = shape[ir::Idx(i)];
      if (dim.has_dim_value() && dim.dim_value() != size) {
        return Usage(flag, ": dimension ", i, " of input '", input.name(), "' is fixed at ",
                     dim.dim_value());
      }
      if (!dim.has_dim_param() || dim.dim_param().empty()) continue;
      const auto [it, is_new] = symbols_.try_emplace(dim.dim_param(), Binding{size, flag});
      if (!is_new && it->second.size != size) {
        return Usage(flag, ": dimension '", dim.dim_param(), "' is ", it->second.size, " by ",
                     it->second.source);
      }
    }
    return {};
  }

  const ImportOptions& options_;
  std::map<std::string, Binding> symbols_;
  std::set<std::string> named_;  // free symbols that were reported
};

}  // namespace

Result<std::map<std::string, ir::Shape>> ResolveInputShapes(
    const std::vector<const onnx::ValueInfoProto*>& inputs, const ImportOptions& options) {
  ShapeResolver resolver(options);
  DLA_RETURN_IF_ERROR(resolver.Bind(inputs));
  std::map<std::string, ir::Shape> shapes;
  std::string problems;
  for (const onnx::ValueInfoProto* input : inputs) {
    DLA_ASSIGN_OR_RETURN(shapes[input->name()], resolver.Resolve(*input, &problems));
  }
  if (!problems.empty()) return Unsupported(problems);
  return shapes;
}

}  // namespace dla::frontend
