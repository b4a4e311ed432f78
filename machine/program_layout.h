// What a program's sections consist of: each structure described once, for writing and reading.
//
// The order of the visits is the order of the bytes. A change here is a change of the format:
// raise kMinorVersion (machine/sections.h) for what old readers may ignore, kMajorVersion for the
// rest.
#pragma once

#include "machine/isa.h"
#include "machine/program.h"
#include "machine/sections.h"

namespace dla::machine {

// The most there can be of what is not bounded by machine/program.h.
inline constexpr size_t kMaxRegions = size_t{1} << 20;
inline constexpr size_t kMaxPorts = size_t{1} << 16;
inline constexpr size_t kMaxGroups = size_t{1} << 20;
inline constexpr size_t kMaxBuffers = size_t{1} << 22;
inline constexpr size_t kMaxValues = size_t{1} << 22;
inline constexpr size_t kMaxRank = 64;
inline constexpr size_t kMaxProgramsOfGroup = 64;
inline constexpr size_t kMaxInstructions = 4096;  // of a prologue, body or epilogue
inline constexpr size_t kMaxNodesOfGroup = size_t{1} << 16;

template <typename A, typename T>
void DescribeTraffic(A& a, T& t) {
  a.Int("load bytes", t.load_bytes);
  a.Int("store bytes", t.store_bytes);
  a.Int("load bus bytes", t.load_bus_bytes);
  a.Int("store bus bytes", t.store_bus_bytes);
}

template <typename A, typename C>
void DescribeCounters(A& a, C& c) {
  a.Int("cycles", c.cycles);
  for (auto& traffic : c.traffic) DescribeTraffic(a, traffic);
  a.List("memory counters", c.memory, 32, 256, [](A& b, auto& m) {
    b.Int("read bytes", m.read_bytes);
    b.Int("write bytes", m.write_bytes);
    b.Int("load bytes", m.load_bytes);
    b.Int("store bytes", m.store_bytes);
  });
  a.Int("descriptors", c.descriptors);
  a.Int("move bytes", c.move_bytes);
  a.Int("macs array", c.macs_array);
  a.Int("macs vector", c.macs_vector);
  a.Int("macs host", c.macs_host);
  a.Int("macs issued", c.macs_issued);
  a.Int("vector operations", c.vector_ops);
  a.Int("host calls", c.host_calls);
  a.Int("host elements", c.host_elements);
}

template <typename A, typename R>
void DescribeRegion(A& a, R& r) {
  a.Text("region name", r.name);
  a.Enum("region kind", r.kind, 4);
  a.Int("region address", r.address);
  a.Int("region bytes", r.bytes);
}

template <typename A, typename P>
void DescribePort(A& a, P& p) {
  a.Text("port name", p.name);
  a.Enum("port type", p.type, kElementTypeCount);
  a.List("port shape", p.shape, 8, kMaxRank, [](A& b, auto& d) { b.Int("extent", d); });
  a.Int("port region", p.region);
}

template <typename A, typename X>
void DescribeAxis(A& a, X& x) {
  a.List("axis terms", x.terms, 5, kMaxTerms, [](A& b, auto& t) {
    b.Int("term dimension", t.dim);
    b.Int("term coefficient", t.coefficient);
  });
  a.Int("axis offset", x.offset);
  a.Int("axis bound", x.bound);
  a.Int("DRAM stride", x.dram_stride);
  a.Int("local stride", x.local_stride);
  a.Int("ring lines", x.ring);
}

template <typename A, typename O>
void DescribeOperand(A& a, O& o) {
  a.Text("operand value", o.value);
  a.Enum("operand class", o.cls, kOperandClassCount);
  a.Enum("operand type", o.type, kElementTypeCount);
  bool rounds = o.read_as.has_value();
  ElementType read_as = o.ReadType();
  a.Bool("rounds when read", rounds);
  a.Enum("type when read", read_as, kElementTypeCount);
  if constexpr (A::kReads) {
    o.read_as = rounds ? std::optional<ElementType>(read_as) : std::nullopt;
    if (!rounds && read_as != o.type) a.Fail("type when read", "is not the operand's");
  }
  a.List("operand axes", o.axes, 44, kMaxAxes, [](A& b, auto& x) { DescribeAxis(b, x); });
  a.Float("pad value", o.pad_value);
  a.Enum("DRAM layout", o.dram_layout, 3);
  a.Int("operand region", o.region);
  a.Int("DRAM base", o.dram_base);
  bool gathers = o.gather.has_value();
  GatherDesc gather = o.gather.value_or(GatherDesc{});
  a.Bool("gathered", gathers);
  a.Int("indices", gather.indices);
  a.Int("gathered bound", gather.bound);
  a.Int("gathered stride", gather.stride);
  if constexpr (A::kReads) {
    o.gather = gathers ? std::optional(gather) : std::nullopt;
    if (!gathers && !(gather == GatherDesc{})) a.Fail("gathered", "is no, but there is more of it");
  }
  bool is_diagonal = o.diagonal.has_value();
  DiagonalDesc diagonal = o.diagonal.value_or(DiagonalDesc{});
  a.Bool("diagonal", is_diagonal);
  a.Int("channel dimension", diagonal.channel_dim);
  a.Int("depth dimension", diagonal.depth_dim);
  a.Int("channels", diagonal.channels);
  a.Int("depths", diagonal.depths);
  if constexpr (A::kReads) {
    o.diagonal = is_diagonal ? std::optional(diagonal) : std::nullopt;
    if (!is_diagonal && !(diagonal == DiagonalDesc{})) {
      a.Fail("diagonal", "is no, but there is more of it");
    }
  }
  a.Int("operand memory", o.memory);
  a.Enum("local layout", o.local_layout, 2);
  a.Bool("resident", o.resident);
  a.Int("address", o.address);
  a.Int("slot bytes", o.slot_bytes);
  a.Int("ring slots", o.ring_slots);
  a.Int("generation dimensions", o.generation_dims);
  a.Int("rolling dimensions", o.rolling_dims);
  a.Bool("loaded once", o.once);
}

template <typename A, typename M>
void DescribeMicroProgram(A& a, M& m) {
  a.List("operations", m.ops, 23, kMaxMicroOps, [](A& b, auto& op) {
    b.Enum("operation", op.op, kMicroOpCount);
    b.Enum("type", op.type, kElementTypeCount);
    b.Bool("output stage", op.stage);
    b.Int("operand", op.operand);
    for (auto& argument : op.argument) b.Int("argument", argument);
    for (auto& immediate : op.immediate) b.Float("immediate", immediate);
  });
}

template <typename A, typename I>
void DescribeInstruction(A& a, I& instruction) {
  a.Enum("opcode", instruction.op, kOpcodeCount);
  a.Enum("engine", instruction.engine, kEngineCount);
  size_t position = 2;
  for (const FieldRow& row : Fields()) {
    uint16_t value = GetField(instruction, row.field);
    uint8_t low = static_cast<uint8_t>(value);
    if (row.width == 1) {
      a.Int(row.name.data(), low);
      value = low;
    } else {
      a.Int(row.name.data(), value);
    }
    if constexpr (A::kReads) SetField(&instruction, row.field, value);
    position += row.width;
  }
  for (; position < kInstructionBytes; ++position) {
    uint8_t zero = 0;
    a.Int("instruction padding", zero);
    if constexpr (A::kReads) {
      if (zero != 0) a.Fail("instruction padding", "is not zero");
    }
  }
}

template <typename A, typename G>
void DescribeGroup(A& a, G& g) {
  a.Text("group name", g.name);
  a.List("node names", g.onnx_nodes, 4, kMaxNodesOfGroup,
         [](A& b, auto& n) { b.Text("node name", n); });
  a.List("dimensions", g.dims, 36, kMaxDims, [](A& b, auto& d) {
    b.Text("dimension name", d.name);
    b.Int("extent", d.extent);
    b.Int("block", d.block);
    b.Int("lead", d.lead);
    b.Int("repeated", d.repeated);
  });
  a.List("loops", g.loops, 1, kMaxDims, [](A& b, auto& d) { b.Int("loop dimension", d); });
  a.Int("cascade", g.cascade);
  a.Int("stripe dimension", g.stripe_dim);
  a.Bool("joined", g.joined);
  a.List("prefetched operands", g.prefetch, 1, kMaxOperands,
         [](A& b, auto& o) { b.Int("operand", o); });
  a.List("operands", g.operands, 95, kMaxOperands, [](A& b, auto& o) { DescribeOperand(b, o); });
  a.List("programs", g.programs, 4, kMaxProgramsOfGroup,
         [](A& b, auto& m) { DescribeMicroProgram(b, m); });
  const auto code = [](A& b, auto& i) { DescribeInstruction(b, i); };
  a.List("prologue", g.prologue, kInstructionBytes, kMaxInstructions, code);
  a.List("body", g.body, kInstructionBytes, kMaxInstructions, code);
  a.List("epilogue", g.epilogue, kInstructionBytes, kMaxInstructions, code);
}

template <typename A, typename B>
void DescribeBuffer(A& a, B& buffer) {
  a.Text("buffer name", buffer.name);
  a.Int("buffer memory", buffer.memory);
  a.Int("buffer address", buffer.address);
  a.Int("buffer bytes", buffer.bytes);
  a.Int("first group", buffer.first_group);
  a.Int("end group", buffer.end_group);
}

template <typename A, typename V>
void DescribeValue(A& a, V& v) {
  const auto number = [](A& b, auto& n) { b.Int("number", n); };
  a.Text("value name", v.name);
  a.Text("value node", v.node);
  a.Enum("value place", v.place, 3);
  a.Int("value group", v.group);
  a.Enum("value type", v.type, kElementTypeCount);
  a.List("value shape", v.shape, 8, kMaxRank, number);
  a.Int("value space", v.space);
  a.Int("value base", v.base);
  a.List("value strides", v.strides, 8, kMaxRank, number);
}

}  // namespace dla::machine
