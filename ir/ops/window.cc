#include "ir/ops/window.h"

#include <algorithm>

#include "support/checked.h"

namespace dla::ir {
namespace {

// Windows are small; larger figures come from broken files and would overflow further on.
constexpr int64_t kMostWindow = (int64_t{1} << 31) - 1;

Result<std::vector<int64_t>> ReadPerAxis(const Node& node, const char* name, size_t entries,
                                         size_t axes, int64_t fallback, int64_t least) {
  std::vector<int64_t> values =
      GetInts(node.attributes, name, std::vector<int64_t>(entries, fallback));
  if (values.size() != entries) {
    return Malformed("attribute '", name, "' has ", values.size(), " entries, the input has ", axes,
                     " spatial axes");
  }
  for (const int64_t value : values) {
    if (value < 0 && least == 0) {
      return Unsupported("attribute '", name, "' has the negative entry ", value,
                         "; only entries >= 0 are supported");
    }
    if (value < least || value > kMostWindow) {
      return Malformed("attribute '", name, "' has the entry ", value, "; ", least, " to ",
                       kMostWindow, " are possible");
    }
  }
  return values;
}

// Padding so that the output has ceil(input / stride) entries; the odd one at the end (UPPER) or
// at the beginning (LOWER).
void PadSame(const std::vector<int64_t>& input, bool upper, Window* window) {
  for (size_t i = 0; i < input.size(); ++i) {
    const int64_t output = CeilDiv(input[i], window->strides[i]);
    const int64_t reach = (window->kernel[i] - 1) * window->dilations[i] + 1;
    const int64_t total =
        std::max<int64_t>(0, (output - 1) * window->strides[i] + reach - input[i]);
    const int64_t less = total / 2;
    window->pads_begin[i] = upper ? less : total - less;
    window->pads_end[i] = upper ? total - less : less;
  }
}

Status ResolveOutput(const std::vector<int64_t>& input, bool ceil_mode, Window* window) {
  for (size_t i = 0; i < input.size(); ++i) {
    const auto extra = CheckedMul(window->kernel[i] - 1, window->dilations[i]);
    if (!extra || *extra > kMostWindow) {
      return Malformed("the dilated kernel of spatial axis ", i, " is too large");
    }
    const int64_t padded = input[i] + window->pads_begin[i] + window->pads_end[i];
    const int64_t room = padded - *extra - 1;
    if (room < 0) {
      return Malformed("the kernel covers ", *extra + 1, " entries of spatial axis ", i,
                       ", the padded input has ", padded);
    }
    const int64_t stride = window->strides[i];
    int64_t output = (ceil_mode ? CeilDiv(room, stride) : room / stride) + 1;
    // A window that begins behind the input and its padding at the front does not count.
    if (ceil_mode && (output - 1) * stride >= input[i] + window->pads_begin[i]) --output;
    window->output.push_back(output);
  }
  return {};
}

}  // namespace

Result<Window> ResolveWindow(const Node& node, const std::vector<int64_t>& input,
                             const std::vector<int64_t>& kernel) {
  const size_t axes = input.size();
  Window window;
  window.kernel = kernel;
  for (const int64_t extent : kernel) {
    if (extent < 1 || extent > kMostWindow) return Malformed("a kernel extent is ", extent);
  }
  DLA_ASSIGN_OR_RETURN(window.strides, ReadPerAxis(node, "strides", axes, axes, 1, 1));
  DLA_ASSIGN_OR_RETURN(window.dilations, ReadPerAxis(node, "dilations", axes, axes, 1, 1));
  const std::string mode = GetString(node.attributes, "auto_pad", "NOTSET");
  window.pads_begin.assign(axes, 0);
  window.pads_end.assign(axes, 0);
  if (mode == "NOTSET") {
    DLA_ASSIGN_OR_RETURN(const std::vector<int64_t> pads,
                         ReadPerAxis(node, "pads", 2 * axes, axes, 0, 0));
    for (size_t i = 0; i < axes; ++i) {
      window.pads_begin[i] = pads[i];
      window.pads_end[i] = pads[axes + i];
    }
  } else if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
    PadSame(input, mode == "SAME_UPPER", &window);
  } else if (mode != "VALID") {
    return Malformed("attribute 'auto_pad' is '", mode,
                     "'; NOTSET, SAME_UPPER, SAME_LOWER and VALID are possible");
  }
  const bool ceil_mode = GetInt(node.attributes, "ceil_mode", 0) != 0;
  DLA_RETURN_IF_ERROR(ResolveOutput(input, ceil_mode, &window));
  return window;
}

AttributeMap WindowAttributes(const Window& window) {
  std::vector<int64_t> pads = window.pads_begin;
  pads.insert(pads.end(), window.pads_end.begin(), window.pads_end.end());
  return {{"dilations", window.dilations}, {"pads", pads}, {"strides", window.strides}};
}

Status CheckSpatialRank(const Shape& input) {
  if (input.size() < 3) {
    return Malformed("the input has rank ", input.size(), "; at least 3 is needed");
  }
  if (input.size() > 2 + ConvShape::kSpatial) {
    return Unsupported("the input has ", input.size() - 2,
                       " spatial axes; one to three are supported");
  }
  return {};
}

void FillWindow(const Window& window, const std::vector<int64_t>& input, ConvShape* shape) {
  const size_t lead = ConvShape::kSpatial - input.size();
  for (size_t i = 0; i < input.size(); ++i) {
    shape->input[lead + i] = input[i];
    shape->output[lead + i] = window.output[i];
    shape->kernel[lead + i] = window.kernel[i];
    shape->stride[lead + i] = window.strides[i];
    shape->dilation[lead + i] = window.dilations[i];
    shape->pad[lead + i] = window.pads_begin[i];
  }
}

}  // namespace dla::ir
