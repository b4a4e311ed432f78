#include "machine/program_json.h"

#include <cmath>
#include <type_traits>

#include "machine/json_fields.h"
#include "machine/program_layout.h"
#include "machine/target_file.h"

namespace dla::machine {
namespace {

template <typename E>
std::string EnumName(E value) {
  static constexpr const char* kRegionKinds[] = {"input", "output", "constant", "temporary"};
  static constexpr const char* kDramLayouts[] = {"none", "strided", "packed"};
  if constexpr (std::is_same_v<E, ElementType>) return std::string(TypeName(value));
  if constexpr (std::is_same_v<E, OperandClass>) return std::string(ClassName(value));
  if constexpr (std::is_same_v<E, Engine>) return std::string(EngineName(value));
  if constexpr (std::is_same_v<E, Opcode>) return std::string(Row(value).name);
  if constexpr (std::is_same_v<E, MicroOp>) return std::string(Info(value).name);
  if constexpr (std::is_same_v<E, RegionKind>) return kRegionKinds[static_cast<size_t>(value)];
  if constexpr (std::is_same_v<E, DramLayout>) return kDramLayouts[static_cast<size_t>(value)];
  if constexpr (std::is_same_v<E, LocalLayout>) {
    return value == LocalLayout::kDense ? "dense" : "panels";
  }
  return "";
}

// An archive (program_layout.h) that fills one JSON object.
class JsonWriter {
 public:
  static constexpr bool kReads = false;

  template <typename T>
  void Int(const char* what, const T& value) {
    Put(what, static_cast<int64_t>(value));
  }
  template <typename E>
  void Enum(const char* what, const E& value, int) {
    Put(what, EnumName(value));
  }
  void Bool(const char* what, const bool& value) { Put(what, value); }
  void Float(const char* what, const double& value) {
    // JSON has no infinities: as text.
    if (std::isfinite(value)) return Put(what, value);
    Put(what, std::string(std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf"));
  }
  void Text(const char* what, const std::string& value) { Put(what, value); }
  template <typename T, typename Visit>
  void List(const char* what, const std::vector<T>& items, size_t, size_t, Visit visit) {
    Json list = Json::array();
    for (const T& item : items) {
      JsonWriter writer;
      visit(writer, item);
      const bool scalar = !std::is_class_v<T> || std::is_same_v<T, std::string>;
      list.push_back(scalar ? writer.json_.front() : std::move(writer.json_));
    }
    Put(what, std::move(list));
  }
  Json& json() { return json_; }

 private:
  void Put(const char* what, Json value) {
    std::string key(what);
    for (char& letter : key) {
      if (letter == ' ') letter = '_';
    }
    const auto it = json_.find(key);
    if (it == json_.end()) {
      json_[key] = std::move(value);
    } else if (it->is_array()) {
      it->push_back(std::move(value));
    } else {
      *it = Json::array({*it, std::move(value)});
    }
  }
  Json json_ = Json::object();
};

}  // namespace

std::string ProgramJson(const Program& program) {
  JsonWriter w;
  using W = JsonWriter;
  w.Text("producer", program.producer);
  w.Text("command line", program.command_line);
  w.json()["target"] = Json::parse(TargetJson(program.target));
  w.List("regions", program.regions, 0, 0, [](W& a, auto& r) { DescribeRegion(a, r); });
  w.List("inputs", program.inputs, 0, 0, [](W& a, auto& p) { DescribePort(a, p); });
  w.List("outputs", program.outputs, 0, 0, [](W& a, auto& p) { DescribePort(a, p); });
  w.List("groups", program.groups, 0, 0, [](W& a, auto& g) { DescribeGroup(a, g); });
  w.List("predicted", program.predicted, 0, 0, [](W& a, auto& c) { DescribeCounters(a, c); });
  w.List("steady", program.steady, 0, 0, [](W& a, auto& c) { DescribeCounters(a, c); });
  w.List("buffers", program.buffers, 0, 0, [](W& a, auto& b) { DescribeBuffer(a, b); });
  w.List("values", program.values, 0, 0, [](W& a, auto& v) { DescribeValue(a, v); });
  return w.json().dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace dla::machine
