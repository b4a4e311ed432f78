// Text -> program. One method a kind of line; a line belongs to the last group, operand or piece of
// code that was begun before it.
#include <array>

#include "machine/assembly.h"
#include "machine/isa.h"
#include "machine/target_file.h"
#include "machine/text_cursor.h"

namespace dla::machine {
namespace {

class Assembler {
 public:
  Result<Program> Run(std::string_view text) {
    for (int64_t number = 1; !text.empty(); ++number) {
      const size_t end = std::min(text.find('\n'), text.size());
      TextCursor line(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
      Status status = Line(&line);
      if (status.ok() && !line.AtEnd()) {
        status = Malformed("'", line.remaining().substr(0, 40), "' is not expected here");
      }
      if (!status.ok()) return status.At(Concat("line ", number));
    }
    DLA_RETURN_IF_ERROR(EndTarget());
    return std::move(program_);
  }

 private:
  // The value of an enumerator's name in a list, or -1.
  template <size_t N>
  static int Find(const std::array<std::string_view, N>& names, std::string_view name) {
    for (size_t i = 0; i < N; ++i) {
      if (names[i] == name) return static_cast<int>(i);
    }
    return -1;
  }

  Status Line(TextCursor* line) {
    if (in_target_ && line->Take("|")) {
      target_text_ += std::string(line->remaining()) + "\n";
      *line = TextCursor("");
      return {};
    }
    if (line->AtEnd()) return {};
    const std::string_view word = line->Word();
    if (word == "producer") return Check(line->Quoted(&program_.producer), "producer \"...\"");
    if (word == "options") return Check(line->Quoted(&program_.command_line), "options \"...\"");
    if (word == "target") {
      in_target_ = true;
      return {};
    }
    DLA_RETURN_IF_ERROR(EndTarget());
    if (word == "region") return RegionLine(line);
    if (word == "input" && !group_) return PortLine(line, &program_.inputs);
    if (word == "output" && !group_) return PortLine(line, &program_.outputs);
    if (word == "value") return ValueLine(line);
    if (word == "buffer") return BufferLine(line);
    if (word == "group") return GroupLine(line);
    if (word == "predicted") return PredictedLine(line, &program_.predicted);
    if (word == "steady") return PredictedLine(line, &program_.steady);
    if (word == "traffic" || (word == "memory" && counters_ != nullptr)) {
      return CountersLine(word, line);
    }
    if (!group_) return Malformed("'", word, "' is no line of a program");
    return LineOfGroup(word, line);
  }

  Status LineOfGroup(std::string_view word, TextCursor* line) {
    if (word == "node") {
      return Check(line->Quoted(&group_->onnx_nodes.emplace_back()), "node \"...\"");
    }
    if (word == "dim") return DimLine(line);
    if (word == "loop") {
      const auto dim = Dim(line);
      if (dim) group_->loops.push_back(*dim);
      return Check(dim.has_value(), "loop DIMENSION");
    }
    if (word == "cascade") {
      std::optional<uint8_t> dim;
      const bool good = line->Number(&group_->cascade) && line->TakeWord("stripes");
      if (good) dim = Dim(line);
      group_->stripe_dim = dim.value_or(kNone);
      return Check(dim.has_value(), "cascade N stripes DIMENSION");
    }
    if (word == "joined") {
      group_->joined = true;
      return {};
    }
    if (word == "prefetch") {
      return Check(line->Number(&group_->prefetch.emplace_back()), "prefetch OPERAND");
    }
    if (word == "operand") return OperandLine(line);
    if (word == "program") {
      std::string error;
      const auto program = ParseMicroProgram(line->Rest(), &error);
      if (!program) return Malformed(error);
      group_->programs.push_back(*program);
      return {};
    }
    if (word == "prologue" || word == "body" || word == "epilogue") {
      code_ = word == "prologue" ? &group_->prologue
              : word == "body"   ? &group_->body
                                 : &group_->epilogue;
      return {};
    }
    if (code_ != nullptr) return InstructionLine(word, line);
    if (!group_->operands.empty()) return LineOfOperand(word, line);
    return Malformed("'", word, "' is no line of a group");
  }

  static Status Check(bool good, const char* expected) {
    return good ? Status() : Malformed("expected: ", expected);
  }

  Status EndTarget() {
    if (!in_target_) return {};
    in_target_ = false;
    auto target = ParseTarget(target_text_, "target", [](const std::string& name) {
      return Result<Target>(Malformed("'", name, "': a program's target is complete"));
    });
    if (!target.ok()) return target.status();
    program_.target = std::move(*target);
    return {};
  }

  Status RegionLine(TextCursor* line) {
    Region& region = program_.regions.emplace_back();
    const int kind = Find<4>({"input", "output", "constant", "temporary"}, line->Word());
    if (kind >= 0) region.kind = static_cast<RegionKind>(kind);
    return Check(kind >= 0 && line->Quoted(&region.name) && line->TakeWord("address") &&
                     line->Number(&region.address) && line->TakeWord("bytes") &&
                     line->Number(&region.bytes),
                 "region input|output|constant|temporary \"NAME\" address N bytes N");
  }

  Status PortLine(TextCursor* line, std::vector<Port>* ports) {
    Port& port = ports->emplace_back();
    constexpr const char* kForm = "input|output \"NAME\" TYPE [N, ...] region N";
    if (!line->Quoted(&port.name)) return Check(false, kForm);
    const auto type = ParseElementType(line->Word());
    if (!type || !line->Take("[")) return Check(false, kForm);
    port.type = *type;
    return Check(Rest(line, &port.shape) && line->TakeWord("region") && line->Number(&port.region),
                 kForm);
  }

  // "N, ...]": a list whose bracket was taken.
  static bool Rest(TextCursor* line, std::vector<int64_t>* numbers) {
    while (!line->Take("]")) {
      if (!line->Number(&numbers->emplace_back())) return false;
      line->Take(",");
    }
    return true;
  }

  Status ValueLine(TextCursor* line) {
    ValueDesc& value = program_.values.emplace_back();
    constexpr const char* kForm =
        "value \"NAME\" node \"NAME\" after N TYPE [N, ...] strides [N, ...] nowhere|region|memory "
        "N "
        "base N";
    if (!line->Quoted(&value.name) || !line->TakeWord("node") || !line->Quoted(&value.node) ||
        !line->TakeWord("after") || !line->Number(&value.group)) {
      return Check(false, kForm);
    }
    const auto type = ParseElementType(line->Word());
    if (!type || !line->Take("[") || !Rest(line, &value.shape) || !line->TakeWord("strides") ||
        !line->Take("[") || !Rest(line, &value.strides)) {
      return Check(false, kForm);
    }
    value.type = *type;
    const int place = Find<3>({"nowhere", "region", "memory"}, line->Word());
    if (place >= 0) value.place = static_cast<ValuePlace>(place);
    return Check(place >= 0 && line->Number(&value.space) && line->TakeWord("base") &&
                     line->Number(&value.base),
                 kForm);
  }

  // "NAME" of the target, or #N.
  bool Memory(TextCursor* line, uint8_t* memory) {
    if (line->Take("#")) return line->Number(memory);
    std::string name;
    if (!line->Quoted(&name)) return false;
    const int index = program_.target.MemoryIndex(name);
    if (index >= 0) *memory = static_cast<uint8_t>(index);
    return index >= 0;
  }

  Status BufferLine(TextCursor* line) {
    BufferUse& buffer = program_.buffers.emplace_back();
    return Check(line->Quoted(&buffer.name) && line->TakeWord("memory") &&
                     Memory(line, &buffer.memory) && line->TakeWord("address") &&
                     line->Number(&buffer.address) && line->TakeWord("bytes") &&
                     line->Number(&buffer.bytes) && line->TakeWord("groups") &&
                     line->Number(&buffer.first_group) && line->Number(&buffer.end_group),
                 "buffer \"NAME\" memory \"NAME\" address N bytes N groups FIRST END");
  }

  Status GroupLine(TextCursor* line) {
    group_ = &program_.groups.emplace_back();
    code_ = nullptr;
    return Check(line->Quoted(&group_->name), "group \"NAME\"");
  }

  Status DimLine(TextCursor* line) {
    DimDesc& dim = group_->dims.emplace_back();
    bool good = line->Quoted(&dim.name) && line->TakeWord("extent") && line->Number(&dim.extent) &&
                line->TakeWord("block") && line->Number(&dim.block);
    if (good && line->TakeWord("lead")) good = line->Number(&dim.lead);
    if (good && line->TakeWord("repeated")) good = line->Number(&dim.repeated);
    return Check(good, "dim \"NAME\" extent N block N [lead N] [repeated N]");
  }

  // A dimension's name or #N.
  std::optional<uint8_t> Dim(TextCursor* line) {
    uint8_t dim = 0;
    if (line->Take("#")) return line->Number(&dim) ? std::optional(dim) : std::nullopt;
    const std::string_view name = line->Word();
    for (size_t d = 0; d < group_->dims.size() && d < 256; ++d) {
      if (group_->dims[d].name == name) return static_cast<uint8_t>(d);
    }
    return std::nullopt;
  }

  // (A, B, ...)
  bool Mask(TextCursor* line, int64_t* mask) {
    *mask = 0;
    if (!line->Take("(")) return false;
    while (!line->Take(")")) {
      const auto dim = Dim(line);
      if (!dim || *dim > 15) return false;
      *mask |= int64_t{1} << *dim;
      line->Take(",");
    }
    return true;
  }

  Status OperandLine(TextCursor* line) {
    OperandDesc& operand = group_->operands.emplace_back();
    constexpr const char* kForm = "operand CLASS \"VALUE\" TYPE [as TYPE]";
    const auto cls = ParseOperandClass(line->Word());
    if (!cls || !line->Quoted(&operand.value)) return Check(false, kForm);
    const auto type = ParseElementType(line->Word());
    operand.cls = *cls;
    operand.type = type.value_or(ElementType::kF32);
    if (!type || !line->TakeWord("as")) return Check(type.has_value(), kForm);
    operand.read_as = ParseElementType(line->Word());
    return Check(operand.read_as.has_value(), kForm);
  }

  Status LineOfOperand(std::string_view word, TextCursor* line) {
    OperandDesc& operand = group_->operands.back();
    if (word == "pad") return Check(line->Number(&operand.pad_value), "pad NUMBER");
    if (word == "axis") return AxisLine(line, &operand.axes.emplace_back());
    if (word == "dram") {
      const int layout = Find<3>({"none", "strided", "packed"}, line->Word());
      if (layout >= 0) operand.dram_layout = static_cast<DramLayout>(layout);
      return Check(layout >= 0 && line->TakeWord("region") && line->Number(&operand.region) &&
                       line->TakeWord("base") && line->Number(&operand.dram_base),
                   "dram none|strided|packed region N base N");
    }
    if (word == "gather") {
      GatherDesc& gather = operand.gather.emplace();
      return Check(line->TakeWord("operand") && line->Number(&gather.indices) &&
                       line->TakeWord("bound") && line->Number(&gather.bound) &&
                       line->TakeWord("stride") && line->Number(&gather.stride),
                   "gather operand N bound N stride N");
    }
    if (word == "diagonal") return DiagonalLine(line, &operand.diagonal.emplace());
    if (word != "place") return Malformed("'", word, "' is no line of an operand");
    const int layout = Find<2>({"dense", "panels"}, line->Word());
    if (layout >= 0) operand.local_layout = static_cast<LocalLayout>(layout);
    int64_t mask = 0;
    const bool good = layout >= 0 && line->TakeWord("memory") && Memory(line, &operand.memory) &&
                      line->TakeWord("address") && line->Number(&operand.address) &&
                      line->TakeWord("slot") && line->Number(&operand.slot_bytes) &&
                      line->TakeWord("ring") && line->Number(&operand.ring_slots) &&
                      line->TakeWord("generation") && Mask(line, &mask);
    operand.generation_dims = static_cast<uint16_t>(mask);
    operand.resident = line->TakeWord("resident");
    int64_t rolling = 0;
    const bool rolls = line->TakeWord("rolling");
    const bool masked = !rolls || Mask(line, &rolling);
    operand.rolling_dims = static_cast<uint16_t>(rolling);
    operand.once = line->TakeWord("once");
    return Check(good && masked,
                 "place dense|panels memory \"NAME\" address N slot N ring N generation (D, ...) "
                 "[resident] [rolling (D, ...)] [once]");
  }

  Status DiagonalLine(TextCursor* line, DiagonalDesc* diagonal) {
    const auto channel = Dim(line);
    const bool has_channels = channel && line->Number(&diagonal->channels);
    const auto depth = has_channels ? Dim(line) : std::nullopt;
    if (!depth || !line->Number(&diagonal->depths)) {
      return Check(false, "diagonal CHANNEL_DIMENSION N DEPTH_DIMENSION N");
    }
    diagonal->channel_dim = *channel;
    diagonal->depth_dim = *depth;
    return Status();
  }

  // [N*]D + ... [+ N | - N] of N dram N local N
  Status AxisLine(TextCursor* line, AxisDesc* axis) {
    constexpr const char* kForm =
        "axis N*DIMENSION + ... - N of BOUND dram STRIDE local STRIDE "
        "[ring N]";
    bool negative = false;
    do {
      int64_t number = 1;
      const bool has_number = line->Number(&number);
      if (has_number && !line->Take("*")) {
        if (negative && number < 0) return Check(false, kForm);
        axis->offset = negative ? -number : number;
        negative = false;
        continue;
      }
      const auto dim = Dim(line);
      if (!dim || negative || number > INT32_MAX || number < INT32_MIN) {
        return Check(false, kForm);
      }
      axis->terms.push_back({*dim, static_cast<int32_t>(number)});
    } while (line->Take("+") || (negative = line->Take("-")));
    bool good = line->TakeWord("of") && line->Number(&axis->bound) && line->TakeWord("dram") &&
                line->Number(&axis->dram_stride) && line->TakeWord("local") &&
                line->Number(&axis->local_stride);
    if (good && line->TakeWord("ring")) good = line->Number(&axis->ring);
    return Check(good, kForm);
  }

  // ENGINE: OPCODE name=value ...
  Status InstructionLine(std::string_view word, TextCursor* line) {
    Instruction& instruction = code_->emplace_back();
    const auto engine = ParseEngine(word);
    if (!engine || !line->Take(":")) return Malformed("'", word, "' is no engine");
    const std::string_view name = line->Word();
    const OpcodeRow* row = FindOpcode(name);
    if (row == nullptr) return Malformed("'", name, "' is no instruction");
    instruction.op = row->op;
    instruction.engine = *engine;
    while (!line->AtEnd()) DLA_RETURN_IF_ERROR(ArgumentOf(*row, line, &instruction));
    return {};
  }

  Status ArgumentOf(const OpcodeRow& row, TextCursor* line, Instruction* instruction) {
    const std::string_view name = line->Word();
    std::optional<Field> field;
    for (const ArgumentRow& argument : row.arguments) {
      if (argument.name == name) field = argument.field;
    }
    for (const Field predicate : {Field::kFirst, Field::kLast, Field::kNotFirst, Field::kNotLast}) {
      if (row.predicated && Row(predicate).name == name) field = predicate;
    }
    if (!field) return Malformed("'", row.name, "' has no argument '", name, "'");
    int64_t value = 0;
    const bool dims = Row(*field).kind == FieldKind::kDims;
    if (!line->Take("=") || !(dims ? Mask(line, &value) : line->Number(&value)) ||
        !SetField(instruction, *field, value)) {
      return Malformed("'", name, "' wants ", dims ? "=(DIMENSION, ...)" : "=NUMBER");
    }
    return {};
  }

  // name=value for each of the names, in this order.
  template <size_t N>
  static bool Pairs(TextCursor* line, const std::array<std::pair<const char*, int64_t*>, N>& list) {
    for (const auto& [name, value] : list) {
      if (!line->TakeWord(name) || !line->Take("=") || !line->Number(value)) return false;
    }
    return true;
  }

  Status PredictedLine(TextCursor* line, std::vector<Counters>* list) {
    group_ = nullptr;
    counters_ = list;
    Counters& c = list->emplace_back();
    return Check(Pairs<10>(line, {{{"cycles", &c.cycles},
                                   {"descriptors", &c.descriptors},
                                   {"move_bytes", &c.move_bytes},
                                   {"macs_array", &c.macs_array},
                                   {"macs_vector", &c.macs_vector},
                                   {"macs_host", &c.macs_host},
                                   {"macs_issued", &c.macs_issued},
                                   {"vector_ops", &c.vector_ops},
                                   {"host_calls", &c.host_calls},
                                   {"host_elements", &c.host_elements}}}),
                 "predicted|steady cycles=N descriptors=N move_bytes=N macs_array=N macs_vector=N "
                 "macs_host=N macs_issued=N vector_ops=N host_calls=N host_elements=N");
  }

  Status CountersLine(std::string_view word, TextCursor* line) {
    if (counters_ == nullptr) return Malformed("'traffic' without 'predicted'");
    Counters& c = counters_->back();
    if (word == "memory") {
      Counters::Access& m = c.memory.emplace_back();
      return Check(Pairs<4>(line, {{{"read", &m.read_bytes},
                                    {"write", &m.write_bytes},
                                    {"load", &m.load_bytes},
                                    {"store", &m.store_bytes}}}),
                   "memory read=N write=N load=N store=N");
    }
    const auto cls = ParseOperandClass(line->Word());
    if (!cls) return Malformed("'traffic' wants an operand class");
    Counters::Traffic& t = c.traffic[static_cast<size_t>(*cls)];
    return Check(Pairs<4>(line, {{{"load", &t.load_bytes},
                                  {"store", &t.store_bytes},
                                  {"load_bus", &t.load_bus_bytes},
                                  {"store_bus", &t.store_bus_bytes}}}),
                 "traffic CLASS load=N store=N load_bus=N store_bus=N");
  }

  Program program_;
  bool in_target_ = false;
  std::string target_text_;
  Group* group_ = nullptr;  // groups only grow at GroupLine, which sets it anew
  std::vector<Instruction>* code_ = nullptr;
  std::vector<Counters>* counters_ = nullptr;  // to whose last entry lines of counters belong
};

}  // namespace

Result<Program> Assemble(std::string_view text) { return Assembler().Run(text); }

}  // namespace dla::machine
