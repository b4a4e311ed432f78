// Program -> text. Comments help people: longest tiles, names of operands.
#include <charconv>
#include <sstream>

#include "machine/assembly.h"
#include "machine/isa.h"
#include "machine/target_file.h"
#include "machine/tile.h"
#include "machine/verify_parts.h"

namespace dla::machine {
namespace {

std::string Quoted(const std::string& text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (letter == '"' || letter == '\\') {
      out += '\\';
      out += letter;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += letter;
    }
  }
  out += '"';
  return out;
}

std::string NumberText(double value) {
  char buffer[64];
  return std::string(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr);
}

bool IsIdentifier(const std::string& name) {
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
  return name.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
         std::string::npos;
}

class Printer {
 public:
  explicit Printer(const Program& program) : program_(program) {}

  std::string Print() {
    out_ << "producer " << Quoted(program_.producer) << "\noptions "
         << Quoted(program_.command_line) << "\ntarget\n";
    std::istringstream target(TargetJson(program_.target));
    for (std::string line; std::getline(target, line);) out_ << "| " << line << "\n";
    out_ << "\n";
    for (size_t r = 0; r < program_.regions.size(); ++r) PrintRegion(r);
    for (const Port& port : program_.inputs) PrintPort("input", port);
    for (const Port& port : program_.outputs) PrintPort("output", port);
    for (const BufferUse& buffer : program_.buffers) {
      out_ << "buffer " << Quoted(buffer.name) << " memory " << MemoryText(buffer.memory)
           << " address " << buffer.address << " bytes " << buffer.bytes << " groups "
           << buffer.first_group << " " << buffer.end_group << "\n";
    }
    for (const ValueDesc& value : program_.values) PrintValue(value);
    for (size_t g = 0; g < program_.groups.size(); ++g) PrintGroup(g);
    for (size_t g = 0; g < program_.predicted.size(); ++g) {
      PrintCounters("predicted", g, program_.predicted[g]);
    }
    for (size_t g = 0; g < program_.steady.size(); ++g) {
      PrintCounters("steady", g, program_.steady[g]);
    }
    return out_.str();
  }

 private:
  void PrintRegion(size_t index) {
    static constexpr const char* kKinds[] = {"input", "output", "constant", "temporary"};
    const Region& region = program_.regions[index];
    out_ << "region " << kKinds[static_cast<size_t>(region.kind)] << " " << Quoted(region.name)
         << " address " << region.address << " bytes " << region.bytes << "  // " << index << "\n";
  }

  void PrintPort(const char* kind, const Port& port) {
    out_ << kind << " " << Quoted(port.name) << " " << TypeName(port.type) << " "
         << ListText(port.shape) << " region " << port.region << "\n";
  }

  static std::string ListText(const std::vector<int64_t>& numbers) {
    std::string text = "[";
    for (const int64_t number : numbers) text += Concat(text.size() == 1 ? "" : ", ", number);
    return text + "]";
  }

  void PrintValue(const ValueDesc& value) {
    static constexpr const char* kPlaces[] = {"nowhere", "region", "memory"};
    out_ << "value " << Quoted(value.name) << " node " << Quoted(value.node) << " after "
         << value.group << " " << TypeName(value.type) << " " << ListText(value.shape)
         << " strides " << ListText(value.strides) << " "
         << kPlaces[static_cast<size_t>(value.place)] << " " << value.space << " base "
         << value.base << "\n";
  }

  // A memory of the target by name, another number as #N.
  std::string MemoryText(uint8_t memory) const {
    if (memory < program_.target.memories.size()) {
      return Quoted(program_.target.memories[memory].name);
    }
    return Concat("#", static_cast<int>(memory));
  }

  // A dimension by name where all names of the group are different identifiers, else #N.
  static bool HasNamedDims(const Group& group) {
    for (size_t d = 0; d < group.dims.size(); ++d) {
      if (!IsIdentifier(group.dims[d].name)) return false;
      for (size_t e = 0; e < d; ++e) {
        if (group.dims[d].name == group.dims[e].name) return false;
      }
    }
    return true;
  }
  std::string DimText(const Group& group, size_t dim) const {
    if (dim < group.dims.size() && named_dims_) return group.dims[dim].name;
    return Concat("#", dim);
  }
  std::string MaskText(const Group& group, unsigned mask) const {
    std::string text = "(";
    for (size_t d = 0; d < 16; ++d) {
      if ((mask >> d & 1) != 0) text += Concat(text.size() == 1 ? "" : ", ", DimText(group, d));
    }
    return text + ")";
  }

  void PrintAxis(const Group& group, const OperandDesc& operand, const AxisDesc& axis) {
    out_ << "    axis ";
    const char* separator = "";
    for (const TermDesc& term : axis.terms) {
      out_ << separator;
      if (term.coefficient != 1) out_ << term.coefficient << "*";
      out_ << DimText(group, term.dim);
      separator = " + ";
    }
    if (axis.terms.empty()) {
      out_ << axis.offset;
    } else if (axis.offset != 0) {
      out_ << (axis.offset < 0 ? " - " : " + ")
           << (axis.offset < 0 ? -static_cast<uint64_t>(axis.offset)
                               : static_cast<uint64_t>(axis.offset));
    }
    out_ << " of " << axis.bound << " dram " << axis.dram_stride << " local " << axis.local_stride;
    if (axis.ring != 0) out_ << " ring " << axis.ring;
    if (safe_dims_ && !operand.resident) out_ << "  // tile " << LongestExtent(group, axis);
    out_ << "\n";
  }

  void PrintOperand(const Group& group, size_t index) {
    static constexpr const char* kDram[] = {"none", "strided", "packed"};
    const OperandDesc& o = group.operands[index];
    out_ << "  operand " << ClassName(o.cls) << " " << Quoted(o.value) << " " << TypeName(o.type)
         << (o.read_as ? Concat(" as ", TypeName(*o.read_as)) : "") << "  // " << index
         << "\n    dram " << kDram[static_cast<size_t>(o.dram_layout)] << " region " << o.region
         << " base " << o.dram_base << "\n";
    if (o.gather) {
      out_ << "    gather operand " << static_cast<int>(o.gather->indices) << " bound "
           << o.gather->bound << " stride " << o.gather->stride << "\n";
    }
    if (o.diagonal) {
      out_ << "    diagonal " << DimText(group, o.diagonal->channel_dim) << " "
           << o.diagonal->channels << " " << DimText(group, o.diagonal->depth_dim) << " "
           << o.diagonal->depths << "\n";
    }
    out_ << "    place " << (o.local_layout == LocalLayout::kDense ? "dense" : "panels")
         << " memory " << MemoryText(o.memory) << " address " << o.address << " slot "
         << o.slot_bytes << " ring " << static_cast<int>(o.ring_slots) << " generation "
         << MaskText(group, o.generation_dims) << (o.resident ? " resident" : "")
         << (o.rolling_dims != 0 ? " rolling " + MaskText(group, o.rolling_dims) : "")
         << (o.once ? " once" : "") << "\n    pad " << NumberText(o.pad_value) << "\n";
    for (const AxisDesc& axis : o.axes) PrintAxis(group, o, axis);
  }

  void PrintInstruction(const Group& group, const Instruction& instruction) {
    const OpcodeRow& row = Row(instruction.op);
    out_ << "    " << EngineName(instruction.engine) << ": " << row.name;
    std::string names;
    const Instruction plain;
    for (const ArgumentRow& argument : row.arguments) {
      const uint16_t value = GetField(instruction, argument.field);
      if (argument.optional && value == GetField(plain, argument.field)) continue;
      const FieldKind kind = Row(argument.field).kind;
      out_ << " " << argument.name << "=";
      out_ << (kind == FieldKind::kDims ? MaskText(group, value) : Concat(value));
      if (kind == FieldKind::kOperand && value < group.operands.size()) {
        names += Concat(" ", Quoted(group.operands[value].value));
      }
    }
    for (const Field field : {Field::kFirst, Field::kLast, Field::kNotFirst, Field::kNotLast}) {
      const uint16_t mask = GetField(instruction, field);
      if (mask != 0) out_ << " " << Row(field).name << "=" << MaskText(group, mask);
    }
    out_ << (names.empty() ? "" : "  //" + names) << "\n";
  }

  void PrintCode(const Group& group, const char* name, const std::vector<Instruction>& code) {
    out_ << "  " << name << "\n";
    for (const Instruction& instruction : code) PrintInstruction(group, instruction);
  }

  void PrintGroup(size_t index) {
    const Group& group = program_.groups[index];
    named_dims_ = HasNamedDims(group);
    // Comments on tiles are for sound groups only.
    Faults faults;
    VerifyGroupTables(program_, group, "", &faults);
    safe_dims_ = faults.count() == 0;
    out_ << "\ngroup " << Quoted(group.name) << "  // " << index << "\n";
    for (const std::string& node : group.onnx_nodes) out_ << "  node " << Quoted(node) << "\n";
    for (const DimDesc& dim : group.dims) {
      out_ << "  dim " << Quoted(dim.name) << " extent " << dim.extent << " block " << dim.block
           << (dim.lead != 0 ? Concat(" lead ", dim.lead) : "")
           << (dim.repeated != 0 ? Concat(" repeated ", dim.repeated) : "") << "\n";
    }
    if (group.cascade >= 0) {
      out_ << "  cascade " << group.cascade << " stripes " << DimText(group, group.stripe_dim)
           << "\n";
    }
    for (const uint8_t dim : group.loops) {
      out_ << "  loop " << DimText(group, dim);
      if (safe_dims_) out_ << "  // " << group.dims[dim].count() << " blocks";
      out_ << "\n";
    }
    if (group.joined) out_ << "  joined\n";
    for (const uint8_t o : group.prefetch) out_ << "  prefetch " << static_cast<int>(o) << "\n";
    for (size_t o = 0; o < group.operands.size(); ++o) PrintOperand(group, o);
    for (size_t p = 0; p < group.programs.size(); ++p) {
      out_ << "  program " << ToText(group.programs[p]) << "  // " << p << "\n";
    }
    PrintCode(group, "prologue", group.prologue);
    PrintCode(group, "body", group.body);
    PrintCode(group, "epilogue", group.epilogue);
  }

  void PrintCounters(const char* word, size_t index, const Counters& c) {
    out_ << "\n"
         << word << " cycles=" << c.cycles << " descriptors=" << c.descriptors
         << " move_bytes=" << c.move_bytes << " macs_array=" << c.macs_array
         << " macs_vector=" << c.macs_vector << " macs_host=" << c.macs_host
         << " macs_issued=" << c.macs_issued << " vector_ops=" << c.vector_ops
         << " host_calls=" << c.host_calls << " host_elements=" << c.host_elements << "  // "
         << index << "\n";
    for (size_t k = 0; k < c.traffic.size(); ++k) {
      const Counters::Traffic& t = c.traffic[k];
      if (t == Counters::Traffic()) continue;
      out_ << "  traffic " << ClassName(static_cast<OperandClass>(k)) << " load=" << t.load_bytes
           << " store=" << t.store_bytes << " load_bus=" << t.load_bus_bytes
           << " store_bus=" << t.store_bus_bytes << "\n";
    }
    for (const Counters::Access& m : c.memory) {
      out_ << "  memory read=" << m.read_bytes << " write=" << m.write_bytes
           << " load=" << m.load_bytes << " store=" << m.store_bytes << "\n";
    }
  }

  const Program& program_;
  std::ostringstream out_;
  bool named_dims_ = false;
  bool safe_dims_ = false;
};

}  // namespace

std::string Disassemble(const Program& program) { return Printer(program).Print(); }

}  // namespace dla::machine
