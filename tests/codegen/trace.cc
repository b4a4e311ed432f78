#include "tests/codegen/trace.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <sstream>

#include "runtime/cursor.h"
#include "runtime/shadow_cells.h"
#include "runtime/tile.h"
#include "support/status.h"

namespace dla::testing {
namespace {

using machine::Engine;
using machine::Group;
using machine::Instruction;
using machine::kNone;
using machine::Opcode;
using machine::OperandDesc;
using runtime::Step;
using runtime::Tile;

// A set of items, by number.
using ItemSet = std::vector<uint64_t>;
bool Contains(const ItemSet& set, size_t item) { return (set[item / 64] >> item % 64 & 1) != 0; }
void Insert(ItemSet* set, size_t item) { set->at(item / 64) |= uint64_t{1} << item % 64; }
void Unite(ItemSet* set, const ItemSet& other) {
  for (size_t i = 0; i < set->size(); ++i) (*set)[i] |= other[i];
}

// A transfer or a computation.
struct WorkItem {
  Engine engine = Engine::kLoad;
  std::string content;  // equal contents compute the same of the same
};

void Mix(uint64_t* digest, uint64_t value) { *digest = (*digest ^ value) * 0x100000001b3ULL; }

// A row of elements that an item reads or writes. Memories come first as spaces, then regions.
struct Touch {
  size_t space = 0;
  int64_t first = 0, step = 0, count = 0, bytes = 0;  // of the row; bytes of an element
  bool writes = false;
};

struct Descriptor {
  uint8_t operand = 0;
  bool load = false;
  Tile tile;
};

// What a byte holds: the number-th of a computation (a digest of all that it depends on), or what a
// region or memory held before. Transfers do not change values.
struct Value {
  uint64_t origin = 0, number = 0;
  bool operator==(const Value&) const = default;
};

// A byte, and who touched it last.
struct Place {
  std::optional<Value> value;  // nothing: not touched yet
  int64_t writer = -1;         // of the value
  std::vector<size_t> users;   // have read it since then, or written the same again
};

// A moment in an engine's sequence: not before all of `after`.
struct Node {
  std::vector<size_t> after;
  int64_t ended = -1;  // the item that is over then
};

class Tracer {
 public:
  explicit Tracer(const machine::Program& program) : program_(program), group_(program.groups[0]) {}

  Trace Run() {
    for (int e = 0; e < machine::kEngineCount; ++e) WalkEngine(static_cast<Engine>(e));
    for (const auto& [token, waits] : waits_) {
      const std::vector<size_t>& signals = signals_[token];
      if (signals.size() < waits.size()) return {0, "a token is never given"};
      for (size_t k = 0; k < waits.size(); ++k) nodes_[waits[k]].after.push_back(signals[k]);
    }
    for (auto at = bus_.begin(); at != bus_.end(); ++at) {
      if (at != bus_.begin()) nodes_[at->second].after.push_back(std::prev(at)->second);
    }
    if (!FindOrder()) return {0, "engines wait for each other for ever"};
    FollowData();
    return std::move(trace_);
  }

 private:
  size_t AddNode(std::vector<size_t> after) {
    nodes_.push_back({std::move(after), -1});
    return nodes_.size() - 1;
  }
  void AddItem(Engine engine, std::string content, size_t begin, size_t end) {
    nodes_[end].ended = static_cast<int64_t>(items_.size());
    begin_.push_back(begin);
    items_.push_back({engine, std::move(content)});
    touches_.push_back(std::move(open_touches_));
    open_touches_.clear();
  }

  void WalkEngine(Engine engine) {
    size_t now = AddNode({});
    size_t arrived = now;  // all that the load engine has fetched is usable
    std::vector<Descriptor> open;
    for (runtime::Cursor cursor(group_, engine, 0); !cursor.done(); cursor.Advance()) {
      const Instruction& i = cursor.instruction();
      switch (i.op) {
        case Opcode::kWait:
          now = AddNode({now});
          waits_[i.token].insert(waits_[i.token].end(), i.count, now);
          break;
        case Opcode::kSignal:
          signals_[i.token].insert(signals_[i.token].end(), i.count, AddNode({now, arrived}));
          break;
        case Opcode::kLoad:
        case Opcode::kStore:
          open.push_back({i.operand, i.op == Opcode::kLoad,
                          runtime::TileOf(group_, group_.operands[i.operand], cursor.step())});
          if (open.back().tile.elements == 0) open.pop_back();
          break;
        case Opcode::kBus:
          now = AddNode({now});
          bus_[4 * (cursor.step().number + i.lag) + i.slot] = now;
          if (open.empty()) break;
          if (engine == Engine::kLoad) arrived = AddNode({now, arrived});
          AddItem(engine, Join(&open), now, engine == Engine::kLoad ? arrived : now);
          break;
        default:
          now = AddNode({now});
          AddItem(engine, Compute(i, cursor.step()), now, now);
          break;
      }
    }
  }

  // The descriptors of a transfer are one item, whatever their order.
  std::string Join(std::vector<Descriptor>* open) {
    std::sort(open->begin(), open->end(),
              [](const Descriptor& a, const Descriptor& b) { return a.operand < b.operand; });
    std::string text;
    for (const Descriptor& d : *open) {
      text += Concat(int{d.operand}, d.load ? " loads " : " stores ", d.tile.elements, "; ");
      TouchRows(group_.operands[d.operand], d.tile, true, d.load);
      TouchRows(group_.operands[d.operand], d.tile, false, !d.load);
    }
    open->clear();
    return text;
  }

  // What the tile covers, and how the dimensions run through it.
  void Describe(const OperandDesc& operand, const Tile& tile, const Step& step,
                std::ostringstream* out) const {
    *out << "[";
    bool exists = true;
    for (const machine::AxisDesc& axis : operand.axes) {
      exists = exists && !UsedIndices(axis, step).empty();
    }
    if (!exists) *out << "nothing but pad " << operand.pad_value << "]";
    if (!exists) return;
    for (size_t a = 0; a < operand.axes.size(); ++a) {
      const machine::AxisDesc& axis = operand.axes[a];
      *out << ", " << tile.first[a] - tile.begin[a] << ":" << tile.hull[a] << " exists "
           << tile.length[a];
      for (const machine::TermDesc& term : axis.terms) {
        if (step.length[term.dim] > 1) *out << " " << int{term.dim} << "*" << term.coefficient;
      }
    }
    if (tile.clipped()) *out << " pad " << operand.pad_value;
    *out << "]";
  }

  std::string Compute(const Instruction& i, const Step& step) {
    std::ostringstream out;
    out << static_cast<int>(i.op) << " lengths";
    for (size_t d = 0; d < group_.dims.size(); ++d) out << " " << step.length[d];
    const auto use = [&](uint8_t number, bool writes) {
      const OperandDesc& operand = group_.operands[number];
      const Tile tile = runtime::TileOf(group_, operand, step);
      Describe(operand, tile, step, &out);
      if (operand.local_layout == machine::LocalLayout::kDense) {
        TouchUsed(operand, tile, step, writes);
      } else {
        TouchRows(operand, tile, true, writes);
      }
    };
    const auto run = [&](uint8_t number) {
      out << ToText(group_.programs[number]);
      for (const MicroInstruction& op : group_.programs[number].ops) {
        if (op.op == MicroOp::kLoad) use(op.operand, false);
      }
    };
    if (i.op == Opcode::kMove) {
      use(i.operand, false), use(i.operand2, true);
    } else if (i.op == Opcode::kVector) {
      run(i.program), use(i.operand, true);
      out << " reduces " << i.reduce_dims;
    } else {
      const unsigned reduced = ReducedBy(i);
      const bool sets = (reduced & ~unsigned{step.at_first}) == 0;
      const bool drains = (reduced & ~unsigned{step.at_last}) == 0;
      out << " sets " << sets << " drains " << drains;
      use(i.operand, false), use(i.operand2, false), use(i.operand3, true);
      if (!sets) use(i.operand3, false);
      if (sets && i.operand4 != kNone) use(i.operand4, false);
      if (drains) run(i.program), use(i.operand5, true);
    }
    return out.str();
  }

  // Dimensions of input and weight that the accumulators do not have.
  unsigned ReducedBy(const Instruction& i) const {
    std::array<unsigned, 3> masks{};
    const std::array<uint8_t, 3> operands = {i.operand, i.operand2, i.operand3};
    for (size_t k = 0; k < 3; ++k) {
      for (const machine::AxisDesc& axis : group_.operands[operands[k]].axes) {
        for (const machine::TermDesc& term : axis.terms) masks[k] |= 1u << term.dim;
      }
    }
    return (masks[0] | masks[1]) & ~masks[2];
  }

  // The indices of an axis that exist and that some point of the tile uses; a stride leaves gaps.
  std::vector<int64_t> UsedIndices(const machine::AxisDesc& axis, const Step& step) const {
    std::vector<int64_t> indices = {axis.offset};
    for (const machine::TermDesc& term : axis.terms) {
      std::vector<int64_t> sums;
      for (const int64_t index : indices) {
        for (int64_t k = 0; k < step.length[term.dim]; ++k) {
          sums.push_back(index + term.coefficient * (step.start[term.dim] + k));
        }
      }
      std::sort(sums.begin(), sums.end());
      sums.erase(std::unique(sums.begin(), sums.end()), sums.end());
      indices = std::move(sums);
    }
    const auto outside = [&](int64_t i) { return i < 0 || i >= axis.bound; };
    indices.erase(std::remove_if(indices.begin(), indices.end(), outside), indices.end());
    return indices;
  }

  void TouchUsed(const OperandDesc& operand, const Tile& tile, const Step& step, bool writes) {
    const int64_t bytes = runtime::ElementBytes(operand);
    std::vector<int64_t> places = {tile.address};
    for (size_t a = 0; a < operand.axes.size(); ++a) {
      std::vector<int64_t> next;
      for (const int64_t place : places) {
        for (const int64_t index : UsedIndices(operand.axes[a], step)) {
          next.push_back(place +
                         (index - tile.local_begin[a]) * operand.axes[a].local_stride * bytes);
        }
      }
      places = std::move(next);
    }
    for (const int64_t place : places) {
      open_touches_.push_back({operand.memory, place, 0, 1, bytes, writes});
    }
  }

  void TouchRows(const OperandDesc& operand, const Tile& tile, bool on_chip, bool writes) {
    const size_t space =
        on_chip ? operand.memory : program_.target.memories.size() + operand.region;
    for (const runtime::ElementRow& row : runtime::RowsOf(operand, tile)) {
      open_touches_.push_back({space, on_chip ? row.chip : row.element,
                               on_chip ? row.chip_step : row.element_step, row.count,
                               runtime::ElementBytes(operand), writes});
    }
  }

  Place& PlaceOf(size_t space, int64_t byte) {
    std::vector<Place>& places = places_[space];
    if (places.size() <= static_cast<size_t>(byte)) places.resize(static_cast<size_t>(byte) + 256);
    Place& place = places[static_cast<size_t>(byte)];
    if (!place.value) place.value = {space + (uint64_t{1} << 32), static_cast<uint64_t>(byte)};
    return place;
  }

  template <typename Visit>
  void ForEachByte(size_t item, bool writes, const Visit& visit) {
    for (const Touch& touch : touches_[item]) {
      if (touch.writes != writes) continue;
      for (int64_t k = 0; k < touch.count; ++k) {
        for (int64_t b = 0; b < touch.bytes; b += unit_) {
          visit(touch.space, touch.first + k * touch.step + b);
        }
      }
    }
  }

  // Lets the items read and write in a possible order; where nothing races, any other order gives
  // the same.
  void FollowData() {
    for (const auto& touches : touches_) {
      for (const Touch& t : touches) unit_ = std::gcd(unit_, std::gcd(t.first, t.step));
    }
    for (const size_t item : order_) {
      const bool moves =
          items_[item].engine == Engine::kLoad || items_[item].engine == Engine::kStore;
      std::vector<Value> values;
      ForEachByte(item, false, [&](size_t space, int64_t byte) {
        Place& place = PlaceOf(space, byte);
        NoRace(place.writer, item);
        place.users.push_back(item);
        values.push_back(*place.value);
      });
      uint64_t origin = std::hash<std::string>()(items_[item].content);
      for (const Value& value : values) MixValue(&origin, value);
      uint64_t number = 0;
      ForEachByte(item, true, [&](size_t space, int64_t byte) {
        const uint64_t k = number++;
        Write(item, moves ? values.at(k) : Value{origin, k}, &PlaceOf(space, byte));
      });
    }
    for (const machine::Port& port : program_.outputs) {
      const size_t space = program_.target.memories.size() + port.region;
      for (int64_t byte = 0; byte < program_.regions[port.region].bytes; byte += unit_) {
        MixValue(&trace_.outputs, *PlaceOf(space, byte).value);
      }
    }
  }

  void Write(size_t item, const Value& value, Place* place) {
    if (place->value == value) {  // whenever this happens, nobody can tell
      place->users.push_back(item);
      return;
    }
    NoRace(place->writer, item);
    for (const size_t user : place->users) NoRace(static_cast<int64_t>(user), item);
    *place = {value, static_cast<int64_t>(item), {}};
  }

  static void MixValue(uint64_t* digest, const Value& value) {
    Mix(digest, value.origin);
    Mix(digest, value.number);
  }

  void NoRace(int64_t earlier, size_t item) {
    const auto other = static_cast<size_t>(earlier);
    if (earlier < 0 || other == item || Contains(before_[item], other)) return;
    trace_.fault = items_[other].content + "\nraces with\n" + items_[item].content;
  }

  // Fills in `before_` and `order_`; false if the nodes wait for each other in a circle.
  bool FindOrder() {
    std::vector<ItemSet> over(nodes_.size(), ItemSet(items_.size() / 64 + 1, 0));
    std::vector<std::vector<size_t>> next(nodes_.size());
    std::vector<size_t> missing(nodes_.size(), 0), ready, place(nodes_.size(), 0);
    for (size_t n = 0; n < nodes_.size(); ++n) {
      for (const size_t p : nodes_[n].after) next[p].push_back(n);
      missing[n] = nodes_[n].after.size();
      if (missing[n] == 0) ready.push_back(n);
    }
    size_t done = 0;
    for (; !ready.empty(); ++done) {
      const size_t n = ready.back();
      ready.pop_back();
      place[n] = done;
      for (const size_t m : next[n]) {
        Unite(&over[m], over[n]);
        if (nodes_[n].ended >= 0) Insert(&over[m], static_cast<size_t>(nodes_[n].ended));
        if (--missing[m] == 0) ready.push_back(m);
      }
    }
    std::vector<size_t> loads;
    for (size_t i = 0; i < items_.size(); ++i) {
      before_.push_back(over[begin_[i]]);
      order_.push_back(i);
      if (items_[i].engine != Engine::kLoad) continue;
      // Loads arrive in the order in which they were asked for.
      for (const size_t load : loads) Insert(&before_[i], load);
      loads.push_back(i);
    }
    std::sort(order_.begin(), order_.end(),
              [&](size_t i, size_t j) { return place[begin_[i]] < place[begin_[j]]; });
    return done == nodes_.size();
  }

  const machine::Program& program_;
  const Group& group_;
  Trace trace_;
  std::vector<WorkItem> items_;  // engine by engine, in each engine's order
  std::vector<Node> nodes_;
  std::vector<size_t> begin_;                               // node at which an item begins
  std::map<int64_t, size_t> bus_;                           // by ticket
  std::map<uint8_t, std::vector<size_t>> waits_, signals_;  // by token, one a credit
  std::vector<Touch> open_touches_;                         // of the item that comes next
  std::vector<std::vector<Touch>> touches_;                 // by item
  std::vector<ItemSet> before_;  // by item: those that are over when it begins
  std::vector<size_t> order_;    // a possible order of the items
  std::map<size_t, std::vector<Place>> places_;
  int64_t unit_ = 4;  // bytes that are always touched together
};

}  // namespace

Trace TraceOf(const machine::Program& program) { return Tracer(program).Run(); }

bool SameEffect(const Trace& a, const Trace& b) {
  return a.fault.empty() && b.fault.empty() && a.outputs == b.outputs;
}

}  // namespace dla::testing
